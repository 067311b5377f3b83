"""Nothing that other people wrote steers the terminal, whichever command prints it and in whichever form."""

import json
import re
import shutil
from pathlib import Path

import pytest

from app import cli
from app.terminal import json_text, printable, printable_path, printable_prose
from indexer.protocol import FileFailed, Notice
from indexer.store.writer import Writer
from tests.indexer.store.building import add_file

# A title for the window, a colour in C1, a bell, a turned direction, and a byte that is no UTF-8.
HOSTILE = "\x1b]0;pwned\x07 \x9b31m \u202e\x7f\r"
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
TINY = Path(__file__).parent.parent / "goldens" / "tiny_bert"


@pytest.mark.parametrize("char", [chr(code) for code in (0, 7, 10, 13, 27, 0x7F, 0x85, 0x9B, 0x2028, 0x202E, 0xDCFF)])
def test_each_character_that_steers_becomes_its_escape(char: str) -> None:
    assert printable(f"a{char}b") == f"a{repr(char)[1:-1]}b"
    assert json.loads(json_text({char: [char]})) == {char: [char]}
    assert not STEERING.search(json_text({char: [char]}, indent=1))


def test_what_is_only_text_stays() -> None:
    text = "Größe 会议　室 👩‍👧 a\u00a0b \\x1b"
    assert printable(text) == printable_prose(text) == printable_path(text.encode()) == text


def test_line_ends_of_prose_are_spaces_and_bytes_of_a_path_are_escapes() -> None:
    assert printable_prose("one\ttwo\nthree\x1b") == "one two three\\x1b"
    assert printable_path(b"a\nb\xff") == "a\\nb\\udcff"


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    name = HOSTILE.encode() + b"\xff"
    with Writer.open(tmp_path) as writer:
        root = writer.add_root(b"/home/" + name).root_id
        add_file(writer, root, name + b".md", f"The cat {HOSTILE} sleeps", title=f"Cats {HOSTILE}")
        writer.record_failure(root, name, "broken", f"This cannot be read {HOSTILE}.")
        writer.set_root_status(root, "offline", f"gone {HOSTILE}")
    shutil.copytree(TINY, tmp_path / "models" / "bad\x1b]0;x\x07")
    (tmp_path / "models" / "bad\x1b]0;x\x07" / "config.json").write_text("{}")
    (tmp_path / "settings.toml").write_text('theme = "\\u001b]0;x\\u0007"', encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "cat", "--mode", "words"],
        ["status"],
        ["failures"],
        ["doctor"],
        ["models", "list"],
        ["models", "verify"],
        ["models", "verify", HOSTILE],
        ["index", HOSTILE],
        ["index", "."],
        ["eval", HOSTILE],
        ["embed", "x", "--model", HOSTILE],
    ],
)
def test_no_command_prints_what_steers(
    arguments: list[str], as_json: bool, data_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--json"] if as_json else []
    assert cli.run([*arguments, *options, "--data-dir", str(data_dir)]) in (0, 1)
    printed = capsys.readouterr()
    assert printed.out or printed.err
    assert not STEERING.search(printed.out + printed.err)


def test_styles_are_the_only_escapes_of_a_styled_hit(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from app.cli.search import print_response
    from app.search_service import SearchRequest, SearchService

    with SearchService(data_dir) as service:
        response = service.search(SearchRequest("cat", mode="words"))
    assert response.hits
    print_response(response, styled=True)
    assert not STEERING.search(re.sub("\x1b\\[[012]?m", "", capsys.readouterr().out))


def test_wrong_usage_quotes_without_steering(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.run(["status", f"--{HOSTILE}"])
    assert not STEERING.search(capsys.readouterr().err)


def test_what_the_indexer_says_steers_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    from app.cli.index import _Session

    session = _Session(as_json=True)
    session.hear(FileFailed(HOSTILE, "broken", HOSTILE))
    session.hear(Notice(HOSTILE))
    printed = capsys.readouterr()
    assert printed.out and printed.err
    assert not STEERING.search(printed.out.replace("\x7f", "") + printed.err)
