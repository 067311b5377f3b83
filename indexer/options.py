"""What the indexer is told at its start: fixed for the life of the process."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import resources

DEFAULT_MODEL = resources.default_model()
DEFAULT_VECTOR_CHUNKS = 3_000


def default_workers() -> int:
    """Half of the cores, at least one: indexing must stay out of the way."""
    return max(1, (os.cpu_count() or 1) // 2)


@dataclass(frozen=True, slots=True)
class ExtractLimits:
    """What one file may cost while its text is taken out; going over ends the extraction, never the indexer."""

    wall_s: float = 60.0  # without an answer from the extraction process
    cpu_s: int = 60  # processor time between two answers
    memory_bytes: int = 1536 << 20  # address space of the extraction process
    formatted_chars: int = 32_000_000  # text kept of one PDF, DOCX or HTML file; plain text has no limit
    archive_bytes: int = 256 << 20  # unpacked size of the parts read from one DOCX
    archive_ratio: int = 250  # unpacked : packed, for parts above 8 MB
    archive_members: int = 20_000
    memory_file_bytes: int = 512 << 20  # formats that must be held in memory are refused above this


@dataclass(frozen=True, slots=True)
class IndexerOptions:
    """Settings of one indexer process."""

    data_dir: Path
    model: str = DEFAULT_MODEL  # catalog name or folder
    precision: str = "auto"
    workers: int = field(default_factory=default_workers)
    disk_weights: Path | None = None  # the folder where published weights are kept to be mapped; None: in memory
    watch: bool = True  # False: scan the roots once, index what changed, and end
    chunk_target_tokens: int = 254  # with 200, a split abstract costs 0.01 nDCG@10 on MED (tests/benchmarks/ranking.py)
    vector_chunks_per_file: int = DEFAULT_VECTOR_CHUNKS  # later ones are found by word only, and the file's row says so
    big_file_bytes: int = 4 << 20  # such files are read in turns with the others
    batch_tokens: int = 4_096  # tokens of one embedding step
    quiet_ms: int = 400  # a path must be left alone this long before it is read
    longest_quiet_ms: int = 3_000  # a path that never rests is read after this long all the same
    busy_file_pause_s: float = 30.0  # and then not again for this long
    rescan_s: float = 6 * 3600.0  # full comparison with the disk, although events arrive
    poll_s: float = 60.0  # the same where no events arrive (network folders, no watches left)
    progress_ms: int = 200  # between two progress events
    limits: ExtractLimits = field(default_factory=ExtractLimits)

    @property
    def models_dir(self) -> Path:
        """Where imported models are."""
        return self.data_dir / "models"
