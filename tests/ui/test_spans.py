from hypothesis import given
from hypothesis import strategies as st

from ui.spans import Utf16, clip, merge, one_line, unwrap


def test_merge_joins_overlapping_and_touching_spans_and_drops_empty_ones() -> None:
    assert merge([(5, 8), (1, 3), (3, 4), (9, 9), (7, 10)]) == [(1, 4), (5, 10)]


def test_clip_keeps_what_lies_inside_relative_to_the_start() -> None:
    assert clip([(0, 4), (3, 12), (20, 22)], 2, 10) == [(0, 2), (1, 8)]


@given(st.text(max_size=40))
def test_utf16_offsets_agree_with_the_encoder(text: str) -> None:
    units = Utf16(text)
    for position in range(len(text) + 1):
        # Lone surrogates are one unit each, and so is "surrogatepass"'s idea of them.
        assert units.offset(position) == len(text[:position].encode("utf-16-le", "surrogatepass")) // 2


@given(st.text(alphabet="a b\n\t", max_size=30), st.integers(0, 30), st.integers(0, 30))
def test_one_line_keeps_marked_words_marked(text: str, a: int, b: int) -> None:
    start, end = sorted((min(a, len(text)), min(b, len(text))))
    line, spans = one_line(text, [(start, end)])
    assert line == " ".join(text.split())
    marked = "".join(line[s:e] for s, e in spans)
    assert marked.split() == text[start:end].split() or marked.strip() == " ".join(text[start:end].split())


def test_unwrap_joins_the_lines_of_a_printed_column_and_keeps_paragraphs() -> None:
    text = (
        "2. Rent\n"
        "The rent is 940 a month, plus 165 in advance for heating, water\n"
        "and rubbish. It is due on the third working day of each month.\n"
        "3. Deposit\n\n"
        "The tenants pay three months rent as security, in three parts\n"
        "if they wish."
    )
    assert unwrap(text) == (
        "2. Rent\n"
        "The rent is 940 a month, plus 165 in advance for heating, water "
        "and rubbish. It is due on the third working day of each month.\n"
        "3. Deposit\n\n"
        "The tenants pay three months rent as security, in three parts "
        "if they wish."
    )


@given(st.text(alphabet="ab .\n", max_size=200))
def test_unwrap_moves_no_character(text: str) -> None:
    made = unwrap(text)
    assert len(made) == len(text)
    assert all(a == b or (a, b) == ("\n", " ") for a, b in zip(text, made, strict=True))
