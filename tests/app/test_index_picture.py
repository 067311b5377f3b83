from app.index_picture import Figures, IndexPicture
from indexer import protocol
from ui.clients import Failure

NOTES, DISK = "/home/ada/Notes", "/media/disk"
FIGURES = Figures(
    roots=((NOTES, 5, 2, False, ""), (DISK, 7, 0, True, "The disk is away.")),
    documents=12,
    waiting=2,
    failures=(Failure(f"{NOTES}/a.pdf", "broken", "Damaged."), Failure("/home/ada/Notes2/b.pdf", "broken", "Damaged.")),
    model="/models/minilm",
    size_bytes=99,
)


def progress(phase: protocol.Phase, current: str = "") -> protocol.Progress:
    return protocol.Progress(phase, current, 3, 10, 40, 100, 2.5, 8.0, 0)


def test_figures_make_the_status() -> None:
    picture = IndexPicture()
    picture.see(FIGURES)
    status = picture.status()
    assert (status.documents, status.waiting, status.failed, status.model) == (12, 2, 2, "minilm")
    assert [(root.path, root.documents, root.state, root.failed) for root in status.roots] == [
        (NOTES, 5, "online", 1),
        (DISK, 7, "offline", 0),
    ]
    assert status.roots[1].note == "The disk is away."


def test_phases_make_the_state_and_the_progress() -> None:
    picture = IndexPicture()
    assert picture.status().state == "starting" and picture.progress() is None
    picture.hear(progress("words", f"{NOTES}/a.md"))
    assert picture.status().state == "working"
    view = picture.progress()
    assert view is not None and (view.activity, view.done, view.total) == ("reading", 3, 10)
    picture.hear(progress("meaning"))
    view = picture.progress()
    assert view is not None and (view.activity, view.done, view.total) == ("understanding", 40, 100)
    picture.hear(protocol.StateChanged("idle"))
    assert picture.status().state == "idle" and picture.progress() is None


def test_only_the_folder_being_scanned_is_being_checked() -> None:
    picture = IndexPicture()
    picture.see(FIGURES)
    picture.hear(protocol.RootChanged(DISK, "watching"))
    picture.hear(progress("scanning", f"{NOTES}/deep/er"))
    assert [root.state for root in picture.status().roots] == ["scanning", "online"]


def test_a_folder_comes_and_goes_at_once_whatever_the_file_still_says() -> None:
    picture = IndexPicture()
    picture.add("/home/ada/Books")
    assert [root.path for root in picture.status().roots] == ["/home/ada/Books"]
    picture.see(FIGURES)
    picture.remove(NOTES)
    assert [root.path for root in picture.status().roots] == [DISK, "/home/ada/Books"]
    picture.hear(protocol.RootRemoved(NOTES))
    picture.add(NOTES)
    picture.see(FIGURES)
    assert [root.path for root in picture.status().roots] == [NOTES, DISK, "/home/ada/Books"]


def test_the_end_of_the_indexer_is_told_with_its_reason() -> None:
    picture = IndexPicture()
    picture.hear(protocol.Fatal("The disk is full."))
    picture.ended("It stopped.")
    assert picture.status().state == "stopped"
    assert picture.status().message == "The disk is full."


def test_pause_and_notices_are_shown() -> None:
    picture = IndexPicture()
    picture.hear(protocol.StateChanged("paused"))
    assert picture.status().paused
    picture.hear(protocol.Notice("Too many folders to watch; some are polled."))
    assert picture.status().message.startswith("Too many folders")
