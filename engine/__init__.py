"""Text -> vectors -> ranked ids: pure computation, knows only its resources."""

from engine.encoder import Encoder, TokenVectors
from engine.errors import Cancelled, EngineError, KernelError, ModelError
from engine.prompts import Role
from engine.reranker import CrossEncoder

__all__ = ["Cancelled", "CrossEncoder", "Encoder", "EngineError", "KernelError", "ModelError", "Role", "TokenVectors"]
