"""The window: builds the application, its clients and the main window, and takes them down in reverse order.

Before the first show nothing heavy is imported: engine, NumPy and SQLite load on the threads that use them.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from PySide6.QtCore import QLibraryInfo, QLocale, QObject, QSettings, QSocketNotifier, QTimer, QTranslator, Signal
from PySide6.QtWidgets import QApplication, QMessageBox

from app import crash, logs, paths, settings
from app.desktop import open_file, reveal_file
from app.index_bridge import IndexBridge
from app.search_bridge import SearchBridge
from app.single_instance import SingleInstance
from app.worker import Worker
from indexer.errors import IndexerError
from indexer.options import IndexerOptions, default_workers
from resources import folder as resource_folder
from ui import theme
from ui.clients import Appearance, Clients, IndexStatus
from ui.main_window import MainWindow
from ui.result_delegate import ResultDelegate

log = logging.getLogger(__name__)

# Python threads hand over the interpreter this often: the default of 5 ms would show as a stutter in the window.
_SWITCH_S = 0.001


def run(data_dir: Path, *, folders: Sequence[str] = (), query: str = "") -> int:
    """Show the window on `data_dir` until it is closed; returns the exit code.

    `folders` are watched besides those the index knows, `query` is asked at once. A second window on the same data
    folder brings the first one forward instead.
    """
    _check_display()
    places = paths.folders(data_dir).create()
    logs.start(places.logs, "window")
    crash.start(places.logs, "window")
    chosen = settings.load(places.settings)
    keep_qt_settings_in(places.data)
    application = build_application(chosen.theme)
    single = SingleInstance(places.data)
    caller = _Caller()
    if not single.acquire(caller.called.emit):
        if single.ask_to_raise():
            return 0
        raise IndexerError("Inkling is already open with this data folder, but its window does not answer.")
    try:
        return _show(application, places, chosen, caller, tuple(folders), query)
    finally:
        single.close()


def build_application(appearance: str) -> QApplication:
    """The QApplication, dressed and translated."""
    application = QApplication.instance()
    if not isinstance(application, QApplication):
        application = QApplication(["inkling"])
    application.setApplicationName("inkling")
    application.setApplicationDisplayName("Inkling")
    application.setDesktopFileName("inkling")
    translate(application, QLocale())
    theme.set_appearance(_appearance(appearance))
    theme.apply(application)
    return application


def translate(application: QApplication, locale: QLocale) -> None:
    """Load Inkling's and Qt's own texts in the user's language, as far as there are any."""
    folder = resource_folder() / "translations"  # there is none as long as there is only English
    qt_folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
    for name, place in (("qtbase", qt_folder), ("inkling", str(folder))):
        translator = QTranslator(application)
        if translator.load(locale, name, "_", place) or (name == "inkling" and translator.load("inkling_en", place)):
            application.installTranslator(translator)


def keep_qt_settings_in(folder: Path) -> None:
    """Qt's own file dialog remembers places in a settings file, which would otherwise lie in the user's home."""
    for kind in (QSettings.Format.NativeFormat, QSettings.Format.IniFormat):
        QSettings.setPath(kind, QSettings.Scope.UserScope, str(folder))


def show_trouble(sentence: str) -> None:
    """Why the window cannot open, in a box; where there is no display there is nowhere to show it."""
    if _has_display():
        build_application("system")
        QMessageBox.critical(None, "Inkling", sentence)


def _check_display() -> None:
    """Qt ends the whole process where there is no display; a sentence is better."""
    if not _has_display():
        raise IndexerError("There is no display to show the window on; `inkling search` works without one.")


def _has_display() -> bool:
    if not sys.platform.startswith("linux") or os.environ.get("QT_QPA_PLATFORM"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


class _Caller(QObject):
    """Carries the call of a second window from the listening thread to the GUI thread."""

    called = Signal()


def _appearance(theme_name: str) -> Appearance:
    if theme_name == "light":
        return "light"
    return "dark" if theme_name == "dark" else "system"


def _show(
    application: QApplication,
    places: paths.Folders,
    chosen: settings.Settings,
    caller: _Caller,
    folders: tuple[str, ...],
    query: str,
) -> int:
    sys.setswitchinterval(_SWITCH_S)
    ResultDelegate.home = str(Path.home())
    clients = GuiClients(places, chosen)
    window = MainWindow(clients.views)
    clients.desktop.failed.connect(window.show_message)
    caller.called.connect(window.come_forward)
    window.show()
    QTimer.singleShot(0, lambda: clients.start(folders))
    if query:
        QTimer.singleShot(0, lambda: window.search(query))
    try:
        with _ending_on_signals(application):
            return application.exec()
    finally:
        window.hide()
        clients.close()


class GuiClients:
    """All clients of one window. Built in the order of need, closed in reverse."""

    def __init__(self, places: paths.Folders, chosen: settings.Settings) -> None:
        self.desktop = DesktopBridge()
        self._settings = SettingsBridge(places.settings, chosen, self.desktop)
        self.search = SearchBridge(
            places.data, chosen.search_workers or None, self.desktop.bug, disk_weights=places.disk_weights
        )
        options = IndexerOptions(
            data_dir=places.data,
            model=chosen.model,
            precision=chosen.precision,
            workers=chosen.index_workers or default_workers(),
            disk_weights=places.disk_weights,
        )
        self.index = IndexBridge(options, self.desktop.bug)
        self.views = Clients(self.search, self.index, self.desktop, self._settings)

    def start(self, folders: tuple[str, ...]) -> None:
        self.index.start(folders)
        self.search.start()
        self.index.status_changed.connect(self._warm_again)

    def _warm_again(self, status: IndexStatus) -> None:
        """The first index of all has just been made: load the model now that it is known, before the first question."""
        if status.state == "idle" and status.documents and not status.passages_waiting:
            self.index.status_changed.disconnect(self._warm_again)
            self.search.start()

    def close(self) -> None:
        self.index.close()
        self.search.close()
        self._settings.close()
        self.desktop.close()


class DesktopBridge(QObject):
    """Opens and shows files on a thread of its own; trouble comes back as a sentence."""

    failed = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._worker = Worker("desktop", self.bug)

    def open_file(self, path: str) -> None:
        self._worker.post(("open", path), lambda: self._try(open_file, path))

    def reveal_file(self, path: str) -> None:
        self._worker.post(("reveal", path), lambda: self._try(reveal_file, path))

    def bug(self, error: Exception) -> None:
        """Say that something unforeseen happened; called on any thread."""
        self.failed.emit(f"Something went wrong ({type(error).__name__}). The log file says more.")

    def close(self) -> None:
        self._worker.close()

    def _try(self, action: Callable[[str], None], path: str) -> None:
        try:
            action(path)
        except IndexerError as error:
            self.failed.emit(str(error))


class SettingsBridge:
    """The settings the window itself changes; written on a worker."""

    def __init__(self, path: Path, chosen: settings.Settings, desktop: DesktopBridge) -> None:
        self._path = path
        self._chosen = chosen
        self._desktop = desktop
        self._worker = Worker("settings", desktop.bug)

    @property
    def appearance(self) -> Appearance:
        return _appearance(self._chosen.theme)

    def set_appearance(self, appearance: Appearance) -> None:
        chosen = self._chosen = settings.change(self._chosen, "theme", appearance)
        self._worker.post("save", lambda: self._save(chosen))

    def _save(self, chosen: settings.Settings) -> None:
        try:
            settings.save(self._path, chosen)
        except (IndexerError, OSError) as error:
            self._desktop.failed.emit(f"The setting could not be kept: {error}")

    def close(self) -> None:
        self._worker.close()


@contextlib.contextmanager
def _ending_on_signals(application: QApplication) -> Iterator[None]:
    """SIGINT and SIGTERM close the window in order. Qt's loop lets no Python handler run, so a pipe wakes it.

    Windows closes windows by messages of its own, which Qt hears.
    """
    if sys.platform == "win32":
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: application.quit()) for number in numbers}
    wake_before = signal.set_wakeup_fd(writer)
    notifier = QSocketNotifier(reader, QSocketNotifier.Type.Read)

    def drain() -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(reader, 64)

    notifier.activated.connect(drain)
    try:
        yield
    finally:
        notifier.setEnabled(False)
        signal.set_wakeup_fd(wake_before)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)
