"""What reaches a terminal: text of other people, free of anything that steers it.

File names, titles, snippets and the sentences that quote them may hold escape sequences, which a terminal obeys: they
can hide hits, write its title, or fill its input. Whatever is printed and did not come from Inkling itself goes through
`printable`, or `json_text` where it is JSON.
"""

import json
import os
import re
from typing import Any

# Control characters (C0, DEL, C1), line and paragraph separators, marks that turn the direction of what follows, and
# halves of characters, which stand for bytes of a file name that are no UTF-8.
_STEERING = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` on one line, with each character that steers a terminal as an escape such as \\x1b or \\u202e."""
    return _STEERING.sub(lambda found: repr(found[0])[1:-1], text)


def printable_path(path: str | bytes) -> str:
    """A path on one line; bytes that are no UTF-8 are escapes."""
    return printable(os.fsdecode(path))


def printable_prose(text: str) -> str:
    """A title or a snippet on one line: its line ends and tabs are spaces, everything else is as in `printable`."""
    return printable(re.sub(r"[\t\n\r]", " ", text))


def json_text(value: Any, *, indent: int | None = None) -> str:
    """`value` as JSON in printable ASCII: it steers no terminal, and reads the same in every encoding."""
    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")
