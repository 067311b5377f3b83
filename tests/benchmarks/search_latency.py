"""How long a search takes in an index of 100,000 chunks while the indexer writes to it.

    python -m tests.benchmarks.search_latency SETS --index FOLDER [--chunks 100000] [--embedded 10000] [--queries 200]

SETS holds relevance sets in BEIR layout (cranfield, med, time, xquad-en); their sentences are recombined into chunks of
about 180 words. The first `embedded` chunks are embedded for real; the vectors and token bits of the others are
recombined from those. The index is kept in FOLDER and used again. Half of the queries have 1 to 4 words out of the
texts, half are queries of Cranfield and MED. Meanwhile another process adds new documents and embeds them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import random
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np

from app.evaluation import load_set
from app.search_service import SearchRequest, SearchService
from engine import Encoder
from engine.kernels import info
from indexer.embed import MeaningStage
from indexer.options import DEFAULT_MODEL
from indexer.store.reader import Reader
from indexer.store.records import NewChunk, NewVector, text_hash
from indexer.store.writer import Writer

SEED = 20261130
SETS = ("cranfield", "med", "time", "xquad-en")
CHUNKS_A_DOCUMENT = 10
WORDS_A_CHUNK = 180


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", type=Path)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--embedded", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--precision", default="int8")
    parser.add_argument("--idle", action="store_true", help="measure without an indexer at work")
    options = parser.parse_args()
    sentences = _sentences(options.sets)
    if not (options.index / "index.db").exists():
        build(options, sentences)
    queries = _queries(options.sets, sentences, options.queries)
    stop = multiprocessing.get_context("spawn").Event()
    worker = multiprocessing.get_context("spawn").Process(target=index_on, args=(options, sentences, stop))
    if not options.idle:
        worker.start()
        time.sleep(5)
    try:
        _measure(options, queries)
    finally:
        stop.set()
        if not options.idle:
            worker.join()


def build(options: argparse.Namespace, sentences: list[str]) -> None:
    """Fill the index: words of all chunks, real vectors of the first, recombined ones of the others."""
    chance = random.Random(SEED)
    start = time.perf_counter()
    with (
        Writer.open(options.index) as writer,
        Encoder.load(options.model, precision=options.precision, workers=1) as encoder,
    ):
        stage = MeaningStage(writer, encoder, options.model, 4096)
        root = writer.add_root(b"/benchmark").root_id
        done = 0
        while done < options.chunks:
            real = done < options.embedded
            texts = add_document(writer, root, f"made-{done}.txt", sentences, chance)
            done += len(texts)
            if real:
                while stage.step():
                    pass
                print(f"\r{done} embedded, {time.perf_counter() - start:.0f} s", end="", flush=True)
        print(f"\n{done} chunks, {time.perf_counter() - start:.0f} s", flush=True)
        _recombine(writer, np.random.default_rng(SEED))
        writer.tidy()
        print(f"built in {time.perf_counter() - start:.0f} s, {writer.index_size_bytes() / 2**20:.0f} MiB", flush=True)


def add_document(writer: Writer, root_id: int, name: str, sentences: list[str], chance: random.Random) -> list[str]:
    """One document of CHUNKS_A_DOCUMENT chunks, made of sentences drawn at random."""
    chunks: list[NewChunk] = []
    at = 0
    for _ in range(CHUNKS_A_DOCUMENT):
        parts: list[str] = []
        words = 0
        while words < WORDS_A_CHUNK:
            parts.append(chance.choice(sentences))
            words += parts[-1].count(" ") + 1
        text = " ".join(" ".join(parts).split(" ")[:WORDS_A_CHUNK])
        chunks.append(NewChunk(at, at + len(text), text, line=1))
        at += len(text) + 1
    with writer.transaction():
        content = writer.begin_content(text_hash(name), "benchmark")
        writer.add_chunks(content.content_id, chunks)
        writer.finish_content(content.content_id, char_count=at)
        writer.put_document(root_id, name.encode(), size=at, mtime_ns=0, content_id=content.content_id)
    return [chunk.text for chunk in chunks]


def index_on(options: argparse.Namespace, sentences: list[str], stop: Event) -> None:
    """What the indexer does meanwhile: words of new documents, then their vectors, one worker, low priority."""
    os.nice(10)
    chance = random.Random(time.time())
    added = 0
    start = time.perf_counter()
    with (
        Writer.open(options.index) as writer,
        Encoder.load(options.model, precision=options.precision, workers=1) as encoder,
    ):
        stage = MeaningStage(writer, encoder, options.model, 4096)
        root = writer.add_root(b"/benchmark").root_id
        while not stop.is_set():
            added += len(add_document(writer, root, f"new-{time.time_ns()}.txt", sentences, chance))
            while stage.step() and not stop.is_set():
                pass
    print(f"the indexer added {added} chunks, {added / (time.perf_counter() - start):.1f} a second", flush=True)


def _recombine(writer: Writer, chance: np.random.Generator) -> None:
    """Vectors for all that is pending: the sum of two real ones, with the first half of the tokens of each."""
    generation = writer.target_generation()
    rows = writer.db.execute("SELECT vector, bits FROM vectors JOIN token_bits USING (vector_id)").fetchall()
    vectors = np.stack([np.frombuffer(vector, "<f4") for vector, _ in rows])
    width = generation.stamp.token_dim // 8
    bits = [np.frombuffer(blob, np.uint8).reshape(-1, width) for _, blob in rows]
    while batch := writer.pending_chunks(256):
        made: list[NewVector] = []
        for chunk in batch:
            a, b = (int(i) for i in chance.integers(0, len(rows), 2))
            mixed = vectors[a] + vectors[b]
            tokens = np.concatenate([bits[a][: bits[a].shape[0] // 2], bits[b][: bits[b].shape[0] // 2]])
            made.append(NewVector(chunk.text_hash, (mixed / np.linalg.norm(mixed)).astype(np.float32), tokens))
        writer.add_vectors(generation.generation, made)


def _sentences(sets: Path) -> list[str]:
    out: list[str] = []
    for name in SETS:
        for _, _, text in load_set(sets / name).documents:
            out += [part.strip() for part in text.replace(" .", ".").split(". ") if part.count(" ") >= 4]
    return out


def _queries(sets: Path, sentences: list[str], count: int) -> list[str]:
    """Half 1 to 4 words in a row out of the texts, half queries of Cranfield and MED; shuffled, all different."""
    chance = random.Random(SEED + 1)
    long = [text for name in ("cranfield", "med") for _, text in load_set(sets / name).queries]
    short: list[str] = []
    while len(short) < count // 2:
        words = chance.choice(sentences).split()
        size = chance.randint(1, 4)
        start = chance.randrange(max(1, len(words) - size))
        short.append(" ".join(words[start : start + size]))
    chosen = short + chance.sample(long, min(count - len(short), len(long)))
    chance.shuffle(chosen)
    return chosen


def _measure(options: argparse.Namespace, queries: list[str]) -> None:
    took: list[float] = []
    stages: dict[str, list[float]] = {}
    with Reader.open(options.index) as reader:
        counts, size = reader.counts(), reader.index_size_bytes()
    with SearchService(options.index, workers=1) as service:
        service.search(SearchRequest("the first question loads the model", limit=20))
        for query in queries:
            response = service.search(SearchRequest(query, limit=20))
            took.append(response.took_ms)
            for name, value in response.stages_ms.items():
                stages.setdefault(name, []).append(value)
    print(f"{platform.machine()}, {os.cpu_count()} cores, kernels {info()}, Python {platform.python_version()}")
    print(f"seed {SEED}, {counts.chunks} chunks, {size / 2**20:.0f} MiB, {len(queries)} queries, idle: {options.idle}")
    print(f"p50 {np.percentile(took, 50):.1f} ms, p95 {np.percentile(took, 95):.1f} ms, max {max(took):.1f} ms")
    for name, values in stages.items():
        print(f"  {name:8} p50 {np.percentile(values, 50):6.1f}  p95 {np.percentile(values, 95):6.1f}")


if __name__ == "__main__":
    main()
