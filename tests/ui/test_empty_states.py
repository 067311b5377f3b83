import pytest

from tests.ui.fakes import hit, status
from ui.clients import SearchResponse
from ui.empty_states import empty_text


def test_without_folders_the_next_step_is_to_add_one() -> None:
    text = empty_text(status(roots=(), documents=0), "", "hybrid", None)
    assert text is not None and text.action == "add_folder"


def test_while_the_index_opens_nothing_is_asked_of_the_user() -> None:
    text = empty_text(status(state="starting", roots=()), "", "hybrid", None)
    assert text is not None and not text.action


def test_hits_leave_no_room_for_words() -> None:
    assert empty_text(status(), "tide", "hybrid", SearchResponse(1, (hit(),))) is None


def test_an_answer_still_on_its_way_is_not_called_empty() -> None:
    assert empty_text(status(), "tide", "hybrid", None) is None
    assert empty_text(status(), "tide", "hybrid", SearchResponse(1, (), complete=False)) is None


@pytest.mark.parametrize(
    ("state", "mode", "action"),
    [
        (status(state="working", waiting=5), "hybrid", ""),
        (status(), "words", "search_both"),
        (status(), "meaning", "search_both"),
        (status(failed=2), "hybrid", "show_problems"),
        (status(), "hybrid", ""),
    ],
)
def test_nothing_found_names_the_likeliest_cause(state: object, mode: str, action: str) -> None:
    text = empty_text(state, "asdf", mode, SearchResponse(1, ()))  # type: ignore[arg-type]
    assert text is not None and text.action == action and "asdf" in text.title and text.text


def test_a_known_error_is_shown_as_it_is() -> None:
    text = empty_text(status(), "tide", "hybrid", SearchResponse(1, (), error="The index is damaged."))
    assert text is not None and text.text == "The index is damaged."


def test_an_index_without_documents_points_to_the_folders() -> None:
    text = empty_text(status(documents=0), "", "hybrid", None)
    assert text is not None and text.action == "show_folders"
