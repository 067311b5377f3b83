"""Models on demand: one place that loads each model once, however many ask for it, and lets go of those unused."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar
from weakref import WeakSet, ref

from engine.catalog import model_path
from engine.encoder import Encoder
from engine.errors import EngineError
from engine.folder import ModelFolder
from engine.options import (
    Folder,
    check_precision,
    chosen_folder,
    chosen_idle_seconds,
    chosen_precision,
    chosen_workers,
)
from engine.reranker import CrossEncoder
from engine.reranker_folder import RerankerFolder

IDLE_SECONDS = 300.0
CLOSED = "The models were closed."

Model = Encoder | CrossEncoder
M = TypeVar("M", Encoder, CrossEncoder)
Key = tuple[type[Any], Path, str]  # the class, the model's folder, the precision that is really computed


class Timer(Protocol):
    """What `threading.Timer` is: calls once, later, unless it is cancelled before."""

    def cancel(self) -> None: ...


def start_timer(seconds: float, call: Callable[[], None]) -> Timer:
    """A timer that keeps no program alive."""
    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), call)
    timer.daemon = True
    timer.start()
    return timer


@dataclass
class _Held:
    """model: None once it was let go of; alive: it as long as somebody else holds it; used_at: by the clock."""

    model: Model | None
    alive: ref[Model]
    used_at: float


class Models:
    """A thread-safe registry of loaded models.

    A model that nobody has asked for in `idle_seconds` is let go of, which frees its memory as soon as no caller holds
    it any more: a model in use is never closed under its user, and asked for again meanwhile it is still the same.
    idle_seconds: None keeps models until `close`. models_dir: where imported models are. disk_weights: see
    Encoder.load. clock, timer: `time.monotonic` and `start_timer`, or what a test puts there.
    """

    def __init__(
        self,
        *,
        precision: str = "auto",
        workers: int | None = None,
        idle_seconds: float | None = IDLE_SECONDS,
        models_dir: str | Path | None = None,
        disk_weights: str | Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        timer: Callable[[float, Callable[[], None]], Timer] = start_timer,
    ):
        check_precision(precision)
        self.precision, self.workers = precision, chosen_workers(workers)
        self.idle_seconds = chosen_idle_seconds(idle_seconds)
        self._models_dir = chosen_folder("models_dir", models_dir)
        self._disk_weights = chosen_folder("disk_weights", disk_weights)
        self._clock, self._start_timer = clock, timer
        self._lock = threading.Lock()
        self._held: dict[Key, _Held] = {}
        self._keys: dict[tuple[type[Any], str, str], Key] = {}  # by class, name and precision as they were asked for
        self._loading: dict[Key, Future[Any]] = {}
        self._timer: Timer | None = None
        self._closed = False
        _registries.add(self)

    def get(self, name: str | Path, *, precision: str | None = None, dim: int | None = None) -> Encoder:
        """The encoder of this name or folder, loaded now unless it is here; precision: the registry's unless given.

        With dim, see Encoder.at_dim: encoders of all widths share one model. Raises what Encoder.load raises, to every
        caller that waited for the same model; the next one tries again.
        """
        encoder = self._get(Encoder, ModelFolder.open, name, precision or self.precision)
        return encoder if dim is None else encoder.at_dim(dim)

    def reranker(self, name: str | Path, *, precision: str | None = None) -> CrossEncoder:
        """The same for a reranker."""
        return self._get(CrossEncoder, RerankerFolder.open, name, precision or self.precision)

    def loaded(self) -> list[Model]:
        """The models that are held now."""
        with self._lock:
            return [held.model for held in self._held.values() if held.model is not None]

    def unload_idle(self) -> None:
        """Let go of the models that nobody has asked for in `idle_seconds`; otherwise done in time by itself."""
        dropped: list[Model] = []  # freed when this function has given the lock back
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            for held in self._held.values():
                if held.model is not None and self._remaining(held) <= 0:
                    dropped.append(held.model)
                    held.model = None
            self._arm()

    def close(self) -> None:
        """Close all models, those included that were let go of and that a caller still holds."""
        with self._lock:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
            alive = [held.alive() for held in self._held.values()]
            self._held.clear()
        for model in alive:
            if model is not None:
                model.close()

    def forget_threads(self) -> None:
        """In a forked child: whoever held the lock, was loading a model or waited for idleness is not there."""
        self._lock, self._timer = threading.Lock(), None
        self._loading.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _get(self, kind: type[M], read: Callable[[Path], Folder], name: str | Path, asked: str) -> M:
        check_precision(asked)
        with self._lock:  # a model that is here costs no look at the disk
            found = self._find(kind, self._keys.get((kind, str(name), asked)))
        if found is not None:
            return found
        path = model_path(name, self._models_dir)
        # Not resolved: the catalog goes by the folder's name, which a link may have given it.
        key = (kind, Path(os.path.abspath(path)), chosen_precision(asked, read(path)))
        with self._lock:
            if self._closed:
                raise EngineError(CLOSED)
            self._keys[kind, str(name), asked] = key
            found = self._find(kind, key)
            if found is not None:
                return found
            waiting: Future[M] | None = self._loading.get(key)
            if waiting is None:
                mine: Future[M] = Future()
                self._loading[key] = mine
        return self._load(key, kind, path, mine) if waiting is None else waiting.result()

    def _find(self, kind: type[M], key: Key | None) -> M | None:
        """The model if it is here or still alive; it is as good as new then."""
        held = None if key is None else self._held.get(key)
        model = None if held is None else held.model or held.alive()
        if held is None or not isinstance(model, kind):
            return None
        held.model, held.used_at = model, self._clock()
        self._arm()
        return model

    def _load(self, key: Key, kind: type[M], path: Path, mine: Future[M]) -> M:
        try:
            model = kind.load(path, precision=key[2], workers=self.workers, disk_weights=self._disk_weights)
        except BaseException as error:
            with self._lock:
                del self._loading[key]
            stopped = EngineError(f"Loading {path.name} was stopped.")
            mine.set_exception(error if isinstance(error, Exception) else stopped)
            raise
        with self._lock:
            del self._loading[key]
            closed = self._closed
            if not closed:
                self._held[key] = _Held(model, ref(model), self._clock())
                self._arm()
        if closed:
            model.close()
            mine.set_exception(EngineError(CLOSED))
            raise EngineError(CLOSED)
        mine.set_result(model)
        return model

    def _remaining(self, held: _Held) -> float:
        """Seconds until a model counts as idle."""
        idle = math.inf if self.idle_seconds is None else self.idle_seconds
        return held.used_at + idle - self._clock()

    def _arm(self) -> None:
        """Be called when the next model becomes idle; one timer at most, and none where no model is held."""
        waits = [self._remaining(held) for held in self._held.values() if held.model is not None]
        if self._timer is None and waits and min(waits) < math.inf:
            self._timer = self._start_timer(max(0.0, min(waits)), self.unload_idle)


_registries: WeakSet[Models] = WeakSet()


def _after_fork() -> None:
    for models in _registries:
        models.forget_threads()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_after_fork)
