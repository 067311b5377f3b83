"""The engines behind one interface: token ids in, vectors out. Each is used only in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tests.benchmarks import masked
from tests.benchmarks.shapes import SHAPES
from tests.benchmarks.workloads import LONGEST, Work, cut_ids, open_tokenizer

F32 = NDArray[np.float32]
Pass = Callable[[], F32]  # one run of a whole work: (texts, dim), rows in the order that the engine took the texts in

BATCH_SIZES = (1, 4, 8, 32)


class Engine(Protocol):
    """batch_sizes: those to choose from; an engine that batches by itself has one, 0.

    has_streams: whether it can run a batch on each thread instead of one batch on all threads.
    """

    batch_sizes: tuple[int, ...]
    has_streams: bool

    def prepare(self, work: Work, batch: int, streams: bool = False) -> Pass:
        """All that can be done before the clock starts, such as padding."""
        ...


class Inkling:
    """Our own engine. What is timed is `encode` and `score` as a whole, with a reader that has read already."""

    batch_sizes = (0,)
    has_streams = False

    def __init__(self, name: str, folder: Path, threads: int, precision: str):
        from engine.encoder import Encoder
        from engine.reranker import CrossEncoder

        self._is_reranker = SHAPES[name].is_reranker
        kind: Any = CrossEncoder if self._is_reranker else Encoder
        self._model: Any = kind.load(folder, precision=precision, workers=threads)
        self._reader = None if self._is_reranker else self._model._reader

    def prepare(self, work: Work, batch: int, streams: bool = False) -> Pass:
        model = self._model
        if work.text is not None:
            model._reader = self._reader
            return lambda: model.encode([work.text])
        numbers = [str(number) for number in range(len(work.ids))]
        if self._is_reranker:
            model._tokenizer = _Read(list(zip(work.ids, work.types or [], strict=True)))
            return lambda: model.score("", numbers)[:, None]
        model._reader = _Read(work.ids)
        return lambda: model.encode(numbers)


class _Read:
    """Stands where a reader or a tokenizer would: what was read before, by the numbers that stand for the texts."""

    def __init__(self, read: Sequence[Any]):
        self._read = read

    def encode_pairs(self, _: str, numbers: Sequence[str]) -> Any:
        return [self._read[int(number)] for number in numbers]

    def read(self, numbers: Sequence[str], *_: Any) -> Any:
        from engine.reading import Reading

        return Reading([self._read[int(number)] for number in numbers])


class Padded:
    """What the engines that want rectangles have in common."""

    batch_sizes = BATCH_SIZES
    has_streams = False

    def __init__(self, name: str, folder: Path):
        self._with_types = SHAPES[name].family == "bert"
        self._tokenizer = open_tokenizer(folder / "tokenizer.json")

    def prepare(self, work: Work, batch: int, streams: bool = False) -> Pass:
        if work.text is not None:
            text = work.text
            return lambda: self._run(next(self._feeds(Work("", [cut_ids(self._tokenizer, text, LONGEST)]), 1)))
        feeds = [self._ready(feed) for feed in self._feeds(work, batch)]
        if streams:
            return lambda: np.concatenate(self._run_streams(feeds))
        return lambda: np.concatenate([self._run_ready(feed) for feed in feeds])

    def _feeds(self, work: Work, batch: int) -> Iterator[dict[str, NDArray[np.int64]]]:
        order = order_by_length(work)
        for start in range(0, len(order), batch):
            part = order[start : start + batch]
            shape = len(part), max(len(work.ids[i]) for i in part)
            ids, mask, types = (np.zeros(shape, np.int64) for _ in range(3))
            for row, i in enumerate(part):
                size = len(work.ids[i])
                ids[row, :size], mask[row, :size] = work.ids[i], 1
                if work.types is not None:
                    types[row, :size] = work.types[i]
            feed = {"input_ids": ids, "attention_mask": mask}
            yield feed | {"token_type_ids": types} if self._with_types else feed

    def _run(self, feed: dict[str, NDArray[np.int64]]) -> F32:
        return self._run_ready(self._ready(feed))

    def _ready(self, feed: dict[str, NDArray[np.int64]]) -> Any:
        return feed

    def _run_ready(self, feed: Any) -> F32:
        raise AssertionError("every engine has its own")

    def _run_streams(self, feeds: list[Any]) -> list[F32]:
        raise AssertionError("only engines with streams are asked")


def order_by_length(work: Work) -> list[int]:
    """Longest first: neighbours are padded least, and memory is taken once."""
    return sorted(range(len(work.ids)), key=lambda i: -len(work.ids[i]))


class OnnxRuntime(Padded):
    """kind: which of the graphs."""

    def __init__(self, name: str, folder: Path, threads: int, kind: str):
        import onnxruntime

        super().__init__(name, folder)
        self.has_streams = threads > 1
        self._threads = ThreadPoolExecutor(threads)
        self._make = lambda count: onnxruntime.InferenceSession(folder / f"{kind}.onnx", _options(count))
        self._session = self._make(threads)

    @cached_property
    def _single(self) -> Any:
        """A session without threads of its own, which runs on those that call it."""
        return self._make(1)

    def _run_streams(self, feeds: list[Any]) -> list[F32]:
        session = self._single
        return list(self._threads.map(lambda feed: session.run(None, feed)[0], feeds))

    def _run_ready(self, feed: Any) -> F32:
        result: F32 = self._session.run(None, feed)[0]
        return result


def _options(threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return options


class OpenVino(Padded):
    """The graph as exported, in float32: OpenVINO fuses for itself."""

    def __init__(self, name: str, folder: Path, threads: int):
        import openvino

        super().__init__(name, folder)
        self.has_streams = threads > 1
        core = openvino.Core()
        model = core.read_model(folder / "plain.onnx")
        settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
        self._make = lambda streams: core.compile_model(model, "CPU", {**settings, "NUM_STREAMS": streams})
        self._request = self._make(1).create_infer_request()
        self._threads = threads

    @cached_property
    def _queue(self) -> Any:
        import openvino

        return openvino.AsyncInferQueue(self._make(self._threads), self._threads)

    def _run_streams(self, feeds: list[Any]) -> list[F32]:
        found: list[Any] = [None] * len(feeds)

        def keep(request: Any, place: int) -> None:
            found[place] = request.get_output_tensor(0).data.copy()

        self._queue.set_callback(keep)
        for place, feed in enumerate(feeds):
            self._queue.start_async(feed, place)
        self._queue.wait_all()
        return found

    def _run_ready(self, feed: Any) -> F32:
        result: F32 = self._request.infer(feed, share_inputs=True)[0].copy()
        return result


class SentenceTransformers(Padded):
    """On torch, eager, with its fused attention."""

    def __init__(self, name: str, folder: Path, threads: int):
        import torch
        from sentence_transformers import CrossEncoder, SentenceTransformer

        super().__init__(name, folder)
        torch.set_num_threads(threads)
        self._torch = torch
        self._is_reranker = SHAPES[name].is_reranker
        kind: Any = CrossEncoder if self._is_reranker else SentenceTransformer
        self._model = kind(str(folder), device="cpu", local_files_only=True)
        self._model.eval()

    def _ready(self, feed: dict[str, NDArray[np.int64]]) -> Any:
        return {key: self._torch.from_numpy(value) for key, value in feed.items()}

    def _run_ready(self, feed: Any) -> F32:
        with self._torch.inference_mode():
            if self._is_reranker:
                result = self._model.model(**feed).logits
            else:
                result = self._model(dict(feed))["sentence_embedding"]
        vectors: F32 = result.numpy()
        return vectors


Make = Callable[[str, Path, int], Engine]

# By the name in the tables. All but the first group are peers.
ENGINES: dict[str, Make] = {
    "inkling fp32": lambda name, folder, threads: Inkling(name, folder, threads, "fp32"),
    "inkling int8": lambda name, folder, threads: Inkling(name, folder, threads, "int8"),
    "inkling int8-full": lambda name, folder, threads: Inkling(name, folder, threads, "int8-full"),
    "numpy": lambda name, folder, threads: Inkling(name, folder, threads, "fp32"),
    "onnxruntime fused": lambda name, folder, threads: OnnxRuntime(name, folder, threads, "fused"),
    "onnxruntime plain": lambda name, folder, threads: OnnxRuntime(name, folder, threads, "plain"),
    "onnxruntime int8": lambda name, folder, threads: OnnxRuntime(name, folder, threads, "int8"),
    "openvino": OpenVino,
    "torch": SentenceTransformers,
}
FP32_PEERS = ("onnxruntime fused", "onnxruntime plain", "openvino", "torch", "numpy")
GRAPHS = {"onnxruntime fused": "fused", "onnxruntime plain": "plain", "onnxruntime int8": "int8", "openvino": "plain"}


# How each library is told to do without AVX-512 and VNNI; onnxruntime and openvino cannot be told (masked.py).
AVX2 = {
    "INKLING_ISA": "avx2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL",
}  # fmt: skip


def environment(engine: str, threads: int, isa: str, store: Path) -> dict[str, str]:
    """What a process for this engine is started with; isa: "native", or "avx2" for all alike."""
    found = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    found |= {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    if isa == "avx2":
        found |= AVX2
        if engine in GRAPHS:
            found |= masked.environment(store)
    return found | {"INKLING_ISA": "reference"} if engine == "numpy" else found
