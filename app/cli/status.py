"""Say what is indexed and what still waits."""

from __future__ import annotations

import argparse
import base64
from typing import Any

from app import settings
from app.terminal import json_text, printable
from indexer.embed import EMBEDDED_STAMP
from indexer.store.open import index_path
from indexer.store.reader import Reader


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """`inkling status` takes only the shared options."""


def run(args: argparse.Namespace) -> int:
    """Print the figures; an index that does not exist yet is an empty one."""
    if index_path(args.data_dir).exists():
        with Reader.open(args.data_dir) as reader:
            status = read_status(reader)
    else:
        chosen = settings.load(args.folders.settings)
        status = empty_status(chosen.model, chosen.precision)
    print(json_text(status, indent=2) if args.json else describe(status))
    return 0


def read_status(reader: Reader) -> dict[str, Any]:
    """The figures of an index, ready for JSON."""
    with reader.snapshot():
        counts = reader.counts()
        documents = reader.document_counts()
        roots = reader.roots()
        generation = reader.active_generation()
        building = reader.building_generation()
        embedded = reader.stamp(EMBEDDED_STAMP)
    status: dict[str, Any] = {
        "documents": counts.documents,
        "chunks": counts.chunks,
        "pending": counts.pending_files + counts.pending_chunks,
        "pending_files": counts.pending_files,
        "pending_chunks": counts.pending_chunks,
        "vectors": counts.vectors,
        "embedded": int(embedded or 0),
        "failed": counts.failed,
        "roots": [
            {
                **path_fields(root.path),
                "status": "paused" if root.paused else root.status,
                "reason": root.reason,
                "documents": documents.get(root.root_id, 0),
                "scanned_at": root.scanned_at_s,
            }
            for root in roots
        ],
        "model": generation.stamp.model if generation else None,
        "precision": generation.stamp.precision if generation else None,
        "index_bytes": reader.index_size_bytes(),
    }
    if building:
        status["next_model"] = building.stamp.model
    return status


def empty_status(model: str, precision: str) -> dict[str, Any]:
    """The figures before the first folder."""
    zero = ("documents", "chunks", "pending", "pending_files", "pending_chunks", "vectors", "embedded", "failed")
    status: dict[str, Any] = dict.fromkeys(zero, 0)
    return {**status, "roots": [], "model": model, "precision": precision, "index_bytes": 0}


def path_fields(path: bytes) -> dict[str, str]:
    """`path` as text, and `path_bytes` in base64 where the name is not UTF-8."""
    try:
        return {"path": path.decode("utf-8")}
    except UnicodeDecodeError:
        return {"path": path.decode("utf-8", "replace"), "path_bytes": base64.b64encode(path).decode("ascii")}


def describe(status: dict[str, Any]) -> str:
    """The figures for a person."""
    lines = [
        f"{status['documents']:,} documents, {status['chunks']:,} passages, {status['index_bytes'] / 1e6:,.1f} MB",
        f"waiting: {status['pending_files']:,} files, {status['pending_chunks']:,} passages without vectors",
        f"failed: {status['failed']:,}{' (see: inkling failures)' if status['failed'] else ''}",
        f"model: {status['model'] or 'none yet'} ({status['precision'] or 'auto'})",
    ]
    for root in status["roots"]:
        reason = f" - {root['reason']}" if root["reason"] else ""
        lines.append(f"{root['path']}: {root['documents']:,} documents, {root['status']}{reason}")
    if not status["roots"]:
        lines.append("No folder is indexed yet: inkling index FOLDER")
    return "\n".join(printable(line) for line in lines)
