"""Known trouble of the engine: each error is one sentence that can be shown as it is."""

# Of a sentence, which may quote what a foreign file holds: so much of its start and of its end is shown.
START_CHARS, END_CHARS = 1000, 200


class EngineError(Exception):
    """A known fault: what happened, to which object, and what to do about it."""

    def __str__(self) -> str:
        sentence = super().__str__()
        if len(sentence) <= START_CHARS + END_CHARS:
            return sentence
        return f"{sentence[:START_CHARS]} ... {sentence[-END_CHARS:]}"


class ModelError(EngineError):
    """A model folder that cannot be loaded or computed; the sentence names the file and the key."""


class KernelError(EngineError):
    """The compiled kernels are absent, stale, or lack the instruction set that was asked for."""


class Cancelled(EngineError):
    """The caller asked to stop; the sentence says how far the work had come."""


class HubError(EngineError):
    """A model that could not be fetched from the hub."""
