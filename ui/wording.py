"""How numbers, times, sizes and paths are said. No widgets here.

Texts live in the context "wording"; source texts are English plurals, the English catalogue holds singulars.
"""

from __future__ import annotations

import os

from PySide6.QtCore import QCoreApplication, QLocale

translate = QCoreApplication.translate  # under this name lupdate finds the texts
_UNITS = ("B", "KB", "MB", "GB", "TB")


def number(value: int) -> str:
    """1234567 -> 1,234,567 in the user's language."""
    return QLocale().toString(value)


def documents(count: int) -> str:
    return translate("wording", "%Ln documents", "", count)


def files(count: int) -> str:
    return translate("wording", "%Ln files", "", count)


def problems(count: int) -> str:
    return translate("wording", "%Ln problems", "", count)


def waiting(count: int) -> str:
    return translate("wording", "%Ln waiting", "", count)


def folded(more: int, copies: int) -> str:
    """What a hit stands for besides itself."""
    parts = [
        translate("wording", "+%Ln passages", "", more) if more else "",
        translate("wording", "+%Ln copies", "", copies) if copies else "",
    ]
    return " · ".join(part for part in parts if part)


def page(value: int) -> str:
    return translate("wording", "Page {0}").format(number(value))


def line(value: int) -> str:
    return translate("wording", "Line {0}").format(number(value))


def place(page_number: int | None, line_number: int | None) -> str:
    """Where in its document a passage stands, or an empty string."""
    if page_number is not None:
        return page(page_number)
    return "" if line_number is None else line(line_number)


def size(size_bytes: int) -> str:
    """1536 -> 1.5 KB (1 KB = 1024 B)."""
    value, unit = float(size_bytes), 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    digits = 0 if unit == 0 or value >= 100 else 1
    return f"{QLocale().toString(value, 'f', digits)} {_UNITS[unit]}"


def duration(seconds: float) -> str:
    """A time still to wait, rounded the way a person would say it."""
    if seconds < 5:
        return translate("wording", "a few seconds")
    if seconds < 55:
        return translate("wording", "%Ln seconds", "", 5 * round(seconds / 5))
    if seconds < 55 * 60:
        return translate("wording", "%Ln minutes", "", max(1, round(seconds / 60)))
    if seconds < 36 * 3600:
        return translate("wording", "%Ln hours", "", max(1, round(seconds / 3600)))
    return translate("wording", "%Ln days", "", max(2, round(seconds / 86400)))


def rate(per_second: float, passages: bool) -> str:
    value = number(round(per_second)) if per_second >= 10 else QLocale().toString(per_second, "f", 1)
    if passages:
        return translate("wording", "{0} passages/s").format(value)
    return translate("wording", "{0} files/s").format(value)


def percent(done: int, total: int) -> str:
    """Share with one decimal, never 100 % before the end: a bar that stands still must still be seen to move."""
    if total <= 0:
        return ""
    share = min(100 * done / total, 100.0 if done >= total else 99.9)
    return f"{QLocale().toString(share, 'f', 1)} %"


def shown_path(path: str) -> str:
    """`path` fit to be seen: bytes that are no text become U+FFFD, a line break its sign."""
    text = os.fsencode(path).decode("utf-8", "replace")
    return "".join(_visible(char) for char in text)


def _visible(char: str) -> str:
    if char == "\n":
        return "⏎"
    if ord(char) < 32 or ord(char) == 127:
        return "\ufffd"
    # A name may not reorder the text around it (right-to-left overrides hide a true extension).
    return "\ufffd" if "\u202a" <= char <= "\u202e" or "\u2066" <= char <= "\u2069" else char


def shown_name(path: str) -> str:
    return shown_path(os.path.basename(path.rstrip(os.sep)) or path)


def shown_folder(path: str, home: str = "") -> str:
    """The folder of a file, with the home folder as ~."""
    folder = os.path.dirname(path)
    if home and (folder == home or folder.startswith(home + os.sep)):
        folder = "~" + folder[len(home):]
    return shown_path(folder)
