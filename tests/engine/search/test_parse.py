from __future__ import annotations

from datetime import datetime
from importlib import resources

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.search.parse import Query, date_span_ns, parse


def words(query: str) -> list[str]:
    return [term.expression for term in parse(query).terms]


def exact(query: str) -> list[str]:
    return [term.text for term in parse(query).identifiers]


def test_plain_words_are_terms_and_the_meaning() -> None:
    query = parse("how do Birds fly?")
    assert words("how do Birds fly?") == ['"how"', '"do"', '"birds"', '"fly"']
    assert (query.text, query.required, query.excluded) == ("how do Birds fly?", (), ())


def test_a_quoted_phrase_is_required_as_it_stands() -> None:
    query = parse('the "exact phrase" here')
    assert [[term.expression for term in group] for group in query.required] == [['"exact phrase"']]
    assert query.text == "the exact phrase here"


@pytest.mark.parametrize("typed", ["“exact phrase”", "«exact phrase»", "„exact phrase“"])
def test_printed_quotation_marks_quote_too(typed: str) -> None:
    assert parse(typed).required[0][0].prepared == "exact phrase"


@pytest.mark.parametrize(
    "typed", ['"unclosed', 'a "', '"', '""', '"  "', "-", "- -", "OR", "OR OR", "|", "*", "type:", ":"]
)
def test_unfinished_operators_are_no_operators(typed: str) -> None:
    query = parse(typed)
    assert query.required == query.excluded == ()
    assert query.filters.empty


def test_a_minus_excludes_words_and_phrases_but_is_no_minus_sign() -> None:
    query = parse('report -draft -"old version" -40 degrees well-known')
    assert [term.prepared for term in query.excluded] == ["draft", "old version"]
    assert query.text == "report -40 degrees well-known"
    assert '"40"' in words("report -40 degrees")


def test_or_joins_alternatives_of_which_one_must_hold() -> None:
    query = parse('"red car" OR "blue car" house')
    assert [[term.prepared for term in group] for group in query.required] == [["red car", "blue car"]]
    assert words("cats OR dogs") == ['"cats"', '"dogs"']


@pytest.mark.parametrize(
    "typed",
    ["2026.4.10", "INV-2041", "foo_bar", "user@host.org", "x86_64", "b52", "std::vector", "report.pdf", "C++", "C#"],
)
def test_codes_are_found_as_they_are_written(typed: str) -> None:
    assert exact(f"about {typed}.") == [typed]


@pytest.mark.parametrize("typed", ["well-known", "don't", "e.g.", "U.S.", "1995", "and/or", "wing,"])
def test_ordinary_words_are_no_codes(typed: str) -> None:
    assert exact(typed) in ([], ["and/or"])


def test_the_signs_of_a_name_stay_with_it() -> None:
    assert parse("C++").terms[0].prepared != parse("C").terms[0].prepared != parse("C#").terms[0].prepared


def test_a_star_searches_beginnings() -> None:
    assert words("invoic*") == ['"invoic"*']
    assert parse("invoic*").text == "invoic"


def test_unspaced_scripts_become_pairs_and_a_lone_character_a_beginning() -> None:
    assert words("東京都") == ['"東京"', '"京都"']
    assert words("京") == ['"京"*']
    assert words("Python入門") == ['"python"', '"入門"']
    assert parse('"東京都"').required[0][0].expression == '"東京 京都"'


def test_width_case_and_composition_do_not_matter() -> None:
    assert words("ＡＢＣ cafe\u0301 STRASSE ﬁn") == words("abc café strasse fin")


def test_fields_narrow_the_search_and_leave_the_meaning() -> None:
    query = parse('tax type:PDF,.md ext:txt folder:"My Taxes" dir:/home/ann after:2024-05 before:2025')
    assert query.text == "tax"
    assert query.filters.types == ("pdf", "md", "txt")
    assert query.filters.folders == ("My Taxes", "/home/ann")
    assert query.filters.after_ns == int(datetime(2024, 5, 1).timestamp()) * 10**9
    assert query.filters.before_ns == int(datetime(2025, 1, 1).timestamp()) * 10**9


@pytest.mark.parametrize(
    "typed", ["after:yesterday", "before:2024-02-31", "after:2024-13", "note:this", "http://x.org"]
)
def test_fields_that_make_no_sense_are_words(typed: str) -> None:
    query = parse(typed)
    assert query.filters.empty
    assert query.terms


@pytest.mark.parametrize(
    ("text", "days"),
    [("2024", 366), ("2023", 365), ("2024-12", 31), ("2024-02", 29), ("2024-12-31", 1), ("2024.5.7", 1)],
)
def test_dates_name_a_year_month_or_day(text: str, days: int) -> None:
    span = date_span_ns(text)
    assert span is not None
    assert abs((span[1] - span[0]) / 86_400e9 - days) < 0.1  # an hour of summer time


@pytest.mark.parametrize("text", ["", "24", "2024-00", "2024-1-0", "0000", "99999", "2024-1-1-1", "soon"])
def test_other_texts_are_no_dates(text: str) -> None:
    assert date_span_ns(text) is None


def test_a_pasted_text_is_cut() -> None:
    assert len(parse("word " * 100_000).text) < 5_000


@pytest.fixture(scope="module")
def table() -> apsw.Connection:
    connection = apsw.Connection("")
    schema = resources.files("indexer.store").joinpath("schema.sql").read_text("utf-8")
    connection.execute(schema)
    return connection


PIECES = '" * ^ + - ( ) : NEAR( AND OR NOT { } a 漢 字かな type: after:2024 \' C++ é e\u0301 column:x "" text:'.split(
    " "
)
PIECES += ["\\", "\u200b", "\0", "\ud800", " ", "b c", "\n"]
TYPED = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=12).map("".join))


@given(TYPED)
def test_nothing_that_is_typed_is_an_error(table: apsw.Connection, typed: str) -> None:
    query = parse(typed)
    assert isinstance(query, Query)
    for expression in _expressions(query):
        table.execute("SELECT rowid FROM words WHERE words MATCH ?", (expression,)).fetchall()


def _expressions(query: Query) -> list[str]:
    found = [term.expression for term in (*query.terms, *query.excluded)]
    required = [" OR ".join(term.expression for term in group) for group in query.required]
    if query.terms:
        found.append(" AND ".join(term.expression for term in query.terms))
    if required:
        found.append(" AND ".join(f"({part})" for part in required))
    return found
