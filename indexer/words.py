"""The words stage: one file from the queue becomes text, passages and word index, in one transaction or in parts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from indexer.chunk import Chunker, ChunkRules, TokenSpans
from indexer.extract import Extractor, extractor_for
from indexer.extract.document import Page, Piece, Text, Title, Warn
from indexer.extract.process import ExtractProcess, FileError, Opened, WorkerDied
from indexer.options import IndexerOptions
from indexer.store.records import Document, NewChunk, QueueItem
from indexer.store.writer import Writer
from indexer.watch.filesystem import entry_kind
from indexer.watch.walk import absolute

PART_CHUNKS = 512  # committed at once of a big file
SMALL_ANSWERS = 8  # of the extraction process; a file with more takes turns with the others
DEATH_RETRY_S = {"timeout": 300.0}  # not at once: others wait, and the machine may have been busy
RETRY_S = {"locked": 30.0, "io": 300.0}
CHANGED_RETRY_S = 2.0
KEEP_OLD = frozenset(["permission", "locked", "io", "changed", "memory", "timeout", "killed", "crash"])
BLAMED_DEATHS = 2  # of the extraction process over one file, before it is left alone
OTHER_DEATHS = 6  # ended by someone else, for example by the system for want of memory
INDEXER_DEATHS = 6  # starts of the work on one file without an end
FailureSink = Callable[[bytes, str, str], None]  # absolute path, kind, sentence


@dataclass(frozen=True, slots=True)
class Derivation:
    """How text is cut at present; None for the tokens means that no model is there and all is found by words only."""

    token_spans: TokenSpans | None
    budget_tokens: int
    options: IndexerOptions

    def rules(self, extractor: Extractor) -> ChunkRules:
        """The chunk rules for one format."""
        limit = self.options.vector_chunks_per_file if self.token_spans is not None else 0
        target = min(self.options.chunk_target_tokens, self.budget_tokens)
        return ChunkRules(target, self.budget_tokens, limit, with_lines=extractor.streams)

    def stamp(self, extractor: Extractor) -> str:
        """The version of all that decides what is derived from a file's bytes."""
        return f"{extractor.name}/{extractor.version} {self.rules(extractor).stamp()}"

    def accepts(self, document: Document, size: int, mtime_ns: int) -> bool:
        """Whether a document's content is what the file of this size and time says, by the present derivation.

        Without a model, what an earlier one was cut for is good enough: it must not be thrown away over a model that
        is only missing today.
        """
        extractor = extractor_for(document.path)
        if extractor is None or (document.size, document.mtime_ns) != (size, mtime_ns):
            return False
        if not document.complete or document.extractor is None:
            return False
        if self.token_spans is None:
            return document.extractor.startswith(f"{extractor.name}/{extractor.version} ")
        return document.extractor == self.stamp(extractor)


class Reading:
    """One file under way: pieces in, chunks committed. Killed at any moment, the next goes on behind its commits."""

    def __init__(
        self,
        writer: Writer,
        process: ExtractProcess,
        item: QueueItem,
        path: bytes,
        extractor: Extractor,
        opened: Opened,
        derivation: Derivation,
    ) -> None:
        self.item, self.path, self.process = item, path, process
        self._writer, self._extractor, self._opened, self._derivation = writer, extractor, opened, derivation
        self._chunker = Chunker(derivation.token_spans or _no_tokens, derivation.rules(extractor))
        self._chunks: list[NewChunk] = []
        self._seen_chunks = 0  # chunks so far, those committed by an earlier process included
        self._content_id: int | None = None
        self._title = ""
        self._warnings: list[str] = []
        self.answers = 0
        self.started_s = time.monotonic()

    def step(self, *, whole: bool) -> bool:
        """Take the next pieces; True when the file is done and committed. `whole`: commit nothing before its end."""
        pieces, end = self.process.next()
        self.answers += 1
        for piece in pieces:
            self._take(piece)
        if end:
            self._chunks += self._chunker.finish()
            self._commit_end()
        elif not whole and len(self._chunks) >= PART_CHUNKS:
            self._commit_part()
        return end

    def _take(self, piece: Piece) -> None:
        match piece:
            case Text(text):
                self._chunks += self._chunker.add(text)
            case Page(number):
                self._chunker.page(number)
            case Title(text):
                self._title = self._title or " ".join(text.split())[:300]
            case Warn(_, message):
                self._warnings.append(message)

    def _begin(self) -> int:
        """The content to append to, with the chunks that it has already taken off the list."""
        if self._content_id is None:
            stamp = self._derivation.stamp(self._extractor)
            content = self._writer.begin_content(self._opened.content_hash, stamp, title=self._title)
            self._content_id = content.content_id
            self._skip = content.chunk_count
        known = min(max(0, self._skip - self._seen_chunks), len(self._chunks))
        self._seen_chunks += len(self._chunks)
        del self._chunks[:known]
        return self._content_id

    def _commit_part(self) -> None:
        with self._writer.transaction():
            content_id = self._begin()
            if self._chunks:
                self._writer.add_chunks(content_id, self._chunks)
            if self._earlier() is None:  # otherwise the earlier text stays found until this one is whole
                self._put_document(content_id)
        self._chunks = []

    def _commit_end(self) -> None:
        note = " ".join([*self._warnings, *self._limit_note()])
        with self._writer.transaction():
            content_id = self._begin()
            self._writer.add_chunks(content_id, self._chunks)
            self._writer.finish_content(content_id, char_count=self._chunker.char_count, note=note)
            self._put_document(content_id)
            settle_failure(self._writer, self.item, note, self._opened)
            self._writer.done([self.item])
        self._chunks = []

    def _limit_note(self) -> list[str]:
        if not self._chunker.beyond_limit or self._derivation.token_spans is None:
            return []
        with_vectors = self._chunker.chunk_count - self._chunker.beyond_limit
        return [f"The first {with_vectors:,} passages are found by meaning and by word, the rest by word only."]

    def _earlier(self) -> Document | None:
        found = self._writer.document(self.item.root_id, self.item.path)
        return found if found is not None and found.content_id not in (None, self._content_id) else None

    def _put_document(self, content_id: int) -> None:
        self._writer.put_document(
            self.item.root_id,
            self.item.path,
            size=self._opened.size_bytes,
            mtime_ns=self._opened.mtime_ns,
            content_id=content_id,
        )


class WordStage:
    """Opens files from the queue. `distrust_partials`: parts left by another tokenizer are not gone on with."""

    def __init__(
        self, writer: Writer, derivation: Derivation, on_failure: FailureSink, *, distrust_partials: bool
    ) -> None:
        self._writer = writer
        self._derivation = derivation
        self._on_failure = on_failure
        self._distrust_partials = distrust_partials
        self._deaths: dict[tuple[int, bytes], tuple[int, int]] = {}  # blamed, other
        self.reused = 0  # files whose content was known already

    def begin(self, item: QueueItem, root: bytes, process: ExtractProcess) -> Reading | None:
        """Start on an item; None when it is done with already: unchanged, known content, gone, or failed.

        Raises FileError, WorkerDied (hand both to `fail`) and Interrupted.
        """
        path = absolute(root, item.path)
        extractor = extractor_for(item.path)
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            self._writer.done([item])  # whether it is deleted is for the scanner to prove
            return None
        except OSError as error:
            raise FileError("io", f"The system could not look at this file: {error.strerror}.") from error
        if extractor is None or entry_kind(status) != "file":
            self._writer.done([item])
            return None
        known = self._writer.document(item.root_id, item.path)
        stamp = self._derivation.stamp(extractor)
        if known is not None and self._derivation.accepts(known, status.st_size, status.st_mtime_ns):
            self._writer.done([item])
            return None
        if item.attempts > INDEXER_DEATHS:
            message = f"Inkling stopped {item.attempts - 1} times while reading this file, which is left alone now."
            raise WorkerDied("crash", message, blamed=True)
        opened = process.open(path, extractor, status.st_size)
        content = self._writer.find_content(opened.content_hash, stamp)
        if content is not None and content.complete:
            process.close_file()
            self._reuse(item, opened, content.content_id, content.note)
            return None
        if content is not None and content.chunk_count and self._distrust_partials:
            self._writer.drop_content(content.content_id)
        return Reading(self._writer, process, item, path, extractor, opened, self._derivation)

    def fail(self, item: QueueItem, root: bytes, error: FileError, now_s: float) -> None:
        """Note why an item could not be read, and when it is tried again."""
        if error.kind == "missing":
            self._writer.done([item])
            return
        if error.kind == "changed":
            self._try_again(item, now_s + CHANGED_RETRY_S)
            return
        path = absolute(root, item.path)
        retry_at_s = now_s + RETRY_S[error.kind] if error.kind in RETRY_S else None
        quarantined = False
        if isinstance(error, WorkerDied):
            quarantined = self._count_death(item, error)
            retry_at_s = None if quarantined else now_s + DEATH_RETRY_S.get(error.kind, 1.0)
        message = error.message
        if quarantined and item.attempts <= INDEXER_DEATHS:
            message += " It is left alone until it changes or you ask for another try."
        try:
            status: os.stat_result | None = os.lstat(path)
        except OSError:
            status = None
        size, mtime_ns = (status.st_size, status.st_mtime_ns) if status is not None else (0, 0)
        with self._writer.transaction():
            self._writer.record_failure(
                item.root_id,
                item.path,
                error.kind,
                message,
                retry_at_s=retry_at_s,
                quarantined=quarantined,
                size=size,
                mtime_ns=mtime_ns,
            )
            earlier = self._writer.document(item.root_id, item.path)
            if earlier is None or error.kind not in KEEP_OLD:
                self._writer.put_document(item.root_id, item.path, size=size, mtime_ns=mtime_ns, content_id=None)
            if retry_at_s is None:
                self._writer.done([item])
            else:
                self._try_again(item, retry_at_s)
        self._on_failure(path, error.kind, message)

    def _try_again(self, item: QueueItem, not_before_s: float) -> None:
        """Queue it anew: what the queue counts are starts of the indexer itself that never came to an end."""
        self._writer.enqueue(
            item.root_id, [item.path], kind=item.kind, priority=item.priority, not_before_s=not_before_s
        )

    def _count_death(self, item: QueueItem, error: WorkerDied) -> bool:
        """Whether the file has had its chances."""
        key = (item.root_id, item.path)
        earlier = self._writer.failure(*key)
        blamed, other = self._deaths.get(key, (0, 0))
        if key not in self._deaths and earlier is not None and earlier.kind in ("crash", "timeout"):
            blamed = earlier.attempts  # counted before this process started
        blamed, other = (blamed + 1, other) if error.blamed else (blamed, other + 1)
        self._deaths[key] = (blamed, other)
        gone = blamed >= BLAMED_DEATHS or other >= OTHER_DEATHS or item.attempts > INDEXER_DEATHS
        if gone:
            del self._deaths[key]
        return gone

    def _reuse(self, item: QueueItem, opened: Opened, content_id: int, note: str) -> None:
        self.reused += 1
        with self._writer.transaction():
            self._writer.put_document(
                item.root_id, item.path, size=opened.size_bytes, mtime_ns=opened.mtime_ns, content_id=content_id
            )
            settle_failure(self._writer, item, note, opened)
            self._writer.done([item])


def settle_failure(writer: Writer, item: QueueItem, note: str, opened: Opened) -> None:
    """A file was read: its failure goes, or says what is missing of it."""
    writer.clear_failure(item.root_id, item.path)
    if note:
        size, mtime_ns = opened.size_bytes, opened.mtime_ns
        writer.record_failure(item.root_id, item.path, "partial", note, size=size, mtime_ns=mtime_ns)


def _no_tokens(text: str) -> NDArray[np.int32]:
    raise AssertionError("without a model, text is cut by characters only")
