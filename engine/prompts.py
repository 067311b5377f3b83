"""What a model wants to see before a text: its prompts by role, from the folder or from the catalog."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from engine.catalog import CatalogModel
from engine.errors import ModelError
from engine.published import read_optional_json

Role = Literal["query", "document"]

FILE = "config_sentence_transformers.json"

# Prompt names in the file, in the order in which sentence-transformers looks for them.
PROMPT_NAMES: dict[Role, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}


def read_prompts(path: Path, known: CatalogModel | None) -> tuple[dict[Role, str], str]:
    """The prefix of each role, maybe "", and the prefix of a text without a role.

    The folder's own prompts where it has any that are not empty, else the catalog's, else none.
    """
    file = path / FILE
    settings = read_optional_json(file)
    own: Any = settings.get("prompts") or {}
    if not isinstance(own, dict) or not all(isinstance(text, str) for text in own.values()):
        raise ModelError(f"{file}: key 'prompts' is not an object of strings.")
    found: dict[Role, str] = {"query": "", "document": ""}
    if known is not None:
        found = {"query": known.query_prefix, "document": known.document_prefix}
    for role, names in PROMPT_NAMES.items():
        # Newer versions write empty prompts into every folder, also for models that do want a prefix.
        given = [own[name] for name in names if own.get(name)]
        if given:
            found[role] = given[0]
    default = settings.get("default_prompt_name")
    if default is not None and (not isinstance(default, str) or default not in own):
        raise ModelError(f"{file}: key 'default_prompt_name' is {default!r}, which names none of its 'prompts'.")
    return found, own[default] if default is not None else ""
