"""Text -> vectors -> ranked ids: pure computation, knows only its resources."""

from engine.encoder import Encoder, Role, TokenVectors
from engine.errors import EngineError, KernelError, ModelError

__all__ = ["Encoder", "EngineError", "KernelError", "ModelError", "Role", "TokenVectors"]
