"""Text -> vectors -> ranked ids: pure computation, knows only its resources."""

from engine.encoder import Encoder, TokenVectors
from engine.errors import Cancelled, EngineError, KernelError, ModelError
from engine.prompts import Role
from engine.registry import Models
from engine.reranker import CrossEncoder
from engine.windows import LongVector

__all__ = [
    "Cancelled",
    "CrossEncoder",
    "Encoder",
    "EngineError",
    "KernelError",
    "LongVector",
    "ModelError",
    "Models",
    "Role",
    "TokenVectors",
]
