"""Words: how text is prepared for the word index, and how candidates are scored by the words they hold."""

from __future__ import annotations

import re
import unicodedata

# Scripts written without spaces between words (CJK, Thai, Lao, Khmer, Burmese) are indexed as overlapping pairs of
# characters, so that any two characters of a text are found; a lone last character lets one-character queries
# (a prefix search) find the end of a run too.
UNSPACED = (
    "\u0e00-\u0e4e\u0e80-\u0ecd\u1000-\u109f\u1780-\u17dd"  # Thai, Lao, Burmese, Khmer
    "\u2e80-\u2fd5\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3041-\u3096\u3099-\u309f\u30a1-\u30fa\u30fc-\u30ff"  # kana
    "\u3105-\u312f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Bopomofo, Han
    "\uac00-\ud7a3"  # Hangul: its words carry particles, so pairs find what whole words would miss
    "\U00020000-\U000323af"
)
UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
# Characters that carry no meaning of their own and would split or glue words: soft hyphen, zero-width, direction marks.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
# "C++", "C#", "F#": the signs belong to the name. They are written as letters, which the tokenizer keeps.
_SIGNED_NAME = re.compile(r"(?<![^\W_])([^\W\d_])(\+\+|#)(?![\w+#])")
_SIGN_LETTERS = str.maketrans({"+": "\u1429", "#": "\u2d4c"})


def normalise(text: str) -> str:
    """The form in which texts and queries are compared: NFKC, case folded, invisible characters gone.

    Lone surrogates and NULs, which SQLite would not take, become U+FFFD.
    """
    folded = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text).replace("\0", "\ufffd")).casefold()
    return unicodedata.normalize(
        "NFKC", folded.encode("utf-8", "replace").decode("utf-8") if not _is_utf8(folded) else folded
    )


def prepare_text(text: str) -> str:
    """What the word index is given for `text`. The same text always gives the same result: deletion relies on it."""
    prepared = _SIGNED_NAME.sub(lambda match: match[1] + match[2].translate(_SIGN_LETTERS), normalise(text))
    return UNSPACED_RUN.sub(lambda match: f" {pairs_of(match[0])} {match[0][-1]} ", prepared)


def pairs_of(run: str) -> str:
    """The overlapping pairs of a run of an unspaced script, separated by spaces; '' for a single character."""
    return " ".join(run[i : i + 2] for i in range(len(run) - 1))


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
