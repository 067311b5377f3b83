"""Finds the window's translatable texts in its source: (context, text, is it a plural)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

Message = tuple[str, str, bool]


def messages(folder: Path) -> set[Message]:
    """All texts given to `self.tr` and `translate` in the modules of `folder`."""
    found: set[Message] = set()
    for file in sorted(folder.glob("*.py")):
        for context, call in _calls(ast.parse(file.read_text("utf-8")), ""):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            if name == "tr":
                found.add((context, _text(call.args[0], file), len(call.args) > 2))
            elif name == "translate":
                found.add((_text(call.args[0], file), _text(call.args[1], file), len(call.args) > 3))
    return found


def _calls(node: ast.AST, context: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call below `node`, with the name of the class it stands in: that is Qt's context of `self.tr`."""
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.ClassDef) else context
        if isinstance(child, ast.Call):
            yield inside, child
        yield from _calls(child, inside)


def _text(node: ast.expr, file: Path) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise ValueError(f"{file.name}, line {node.lineno}: a translatable text must be a literal")
