from tests.ui.fakes import hit
from ui.clients import SearchRequest, SearchResponse
from ui.search_session import SearchSession


def asked(session: SearchSession, text: str) -> SearchRequest:
    request = session.ask(text, "hybrid")
    assert request is not None
    return request


def test_the_same_question_is_not_asked_twice() -> None:
    session = SearchSession()
    assert asked(session, "tide").number == 1
    assert session.ask(" tide ", "hybrid") is None
    assert session.ask("tide", "words") is not None


def test_an_answer_to_an_older_question_is_dropped() -> None:
    session = SearchSession()
    old = asked(session, "ti")
    new = asked(session, "tide")
    assert not session.accept(SearchResponse(old.number, (hit(),)))
    assert session.accept(SearchResponse(new.number, (hit(),)))


def test_a_part_is_followed_by_the_whole_and_never_replaces_it() -> None:
    session = SearchSession()
    number = asked(session, "tide").number
    assert session.accept(SearchResponse(number, (hit(1),), complete=False))
    assert session.waiting
    assert session.accept(SearchResponse(number, (hit(2),)))
    assert not session.accept(SearchResponse(number, (hit(1),), complete=False))
    assert session.response is not None and session.response.hits == (hit(2),)


def test_clearing_the_box_drops_answers_on_their_way() -> None:
    session = SearchSession()
    number = asked(session, "tide").number
    assert session.ask("", "hybrid") is None
    assert not session.accept(SearchResponse(number, (hit(),)))
    assert session.response is None


def test_the_first_hit_is_selected_until_the_user_chooses_and_then_the_choice_stays() -> None:
    session = SearchSession()
    asked(session, "tide")
    hits = [hit(1), hit(2), hit(3)]
    assert session.row_to_select(hits) == 0
    session.choose(hits[1].key)
    assert session.row_to_select([hit(9), hit(3), hit(2)]) == 2
    assert session.row_to_select([hit(9)]) == 0
    assert session.row_to_select([]) == -1


def test_repeating_keeps_the_choice_and_waits_for_the_answer_before() -> None:
    session = SearchSession()
    number = asked(session, "tide").number
    assert session.repeat() is None
    session.accept(SearchResponse(number, (hit(1), hit(2))))
    session.choose(hit(2).key)
    assert session.repeat() == SearchRequest(number + 1, "tide", "hybrid", again=True)
    assert session.row_to_select([hit(1), hit(2)]) == 1


def test_a_new_question_forgets_the_choice() -> None:
    session = SearchSession()
    asked(session, "tide")
    session.choose(hit(2).key)
    asked(session, "tides")
    assert session.row_to_select([hit(1), hit(2)]) == 0
