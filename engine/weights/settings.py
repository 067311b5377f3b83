"""What ModelFolder found out about a folder, written so that it is found out again whatever the folder is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.folder import ModelFolder
from engine.late import LateInteraction
from engine.models import static
from engine.modules import DENSE_ACTIVATIONS, MASK, POOLING_KEYS, STATIC, Dense
from engine.prompts import FILE, Role

MODULE = "sentence_transformers.models"


def write_settings(target: Path, folder: ModelFolder, prompts: dict[Role, str]) -> None:
    """modules.json, the config.json of each module, and the files that hold limits and prompts."""
    is_static = folder.model_type == static.MODEL_TYPE
    parts = [("", STATIC if is_static else "Transformer")]
    if not is_static and folder.late is None:
        parts.append(("1_Pooling", "Pooling"))
        _write_json(target / "1_Pooling" / "config.json", _pooling_settings(folder))
    for i, part in enumerate(folder.head, len(parts)):
        parts.append((f"{i}_{type(part).__name__}", type(part).__name__))
        if isinstance(part, Dense):
            _write_json(target / parts[-1][0] / "config.json", _dense_settings(part))
    settings: dict[str, Any] = {"prompts": prompts}
    own = {"max_seq_length": folder.max_tokens, "do_lower_case": folder.backbone.lowercase}
    if folder.late is not None:
        parts.append((f"{len(parts)}_{MASK}", MASK))
        mask = {"skiplist_words": folder.late.skipped, "skiplist_tasks": folder.late.skipped_in}
        _write_json(target / parts[-1][0] / "config.json", mask)
        own |= _late_settings(folder.late)
        settings |= {f"{role}_prefix": marker for role, marker in folder.late.markers.items() if marker}
    _write_json(
        target / "modules.json",
        [{"idx": i, "name": str(i), "path": path, "type": f"{MODULE}.{kind}"} for i, (path, kind) in enumerate(parts)],
    )
    if not is_static:
        _write_json(target / "sentence_bert_config.json", own)
    if folder.default_prompt:
        settings["prompts"] = {**prompts, "default": folder.default_prompt}
        settings["default_prompt_name"] = "default"
    _write_json(target / FILE, settings)


def _pooling_settings(folder: ModelFolder) -> dict[str, Any]:
    """config.json of the Pooling module."""
    modes = {key: mode == folder.pooling for key, mode in POOLING_KEYS.items()}
    excluded = {} if folder.include_prompt else {"include_prompt": False}
    return {"word_embedding_dimension": folder.hidden, **modes, **excluded}


def _dense_settings(dense: Dense) -> dict[str, Any]:
    """config.json of a Dense module; its weights lie among the others, packed."""
    names = {name: published for published, name in DENSE_ACTIVATIONS.items()}
    return {
        "in_features": dense.inputs, "out_features": dense.outputs, "bias": dense.bias,
        "activation_function": names[dense.activation],
    }  # fmt: skip


def _late_settings(late: LateInteraction) -> dict[str, Any]:
    """What sentence-transformers keeps of late interaction beside the Transformer."""
    expansion = None
    if late.expansion is not None:
        expansion = {
            "strategy": "fixed" if late.expansion.cut else "min", "attend": late.expansion.attend,
            "token": late.expansion.token, "length": late.expansion.length,
        }  # fmt: skip
    return {**{f"{role}_length": length for role, length in late.lengths.items()}, "query_expansion": expansion}


def _write_json(file: Path, value: Any) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")
