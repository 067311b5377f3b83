"""Known trouble of the engine: each error is one sentence that can be shown as it is."""


class EngineError(Exception):
    """A known fault: what happened, to which object, and what to do about it."""


class ModelError(EngineError):
    """A model folder that cannot be loaded or computed; the sentence names the file and the key."""


class KernelError(EngineError):
    """The compiled kernels are absent, stale, or lack the instruction set that was asked for."""


class Cancelled(EngineError):
    """The caller asked to stop; the sentence says how far the work had come."""
