"""The line at the foot of the window. Quiet while there is nothing to tell."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QSizePolicy

from ui import wording
from ui.clients import IndexStatus, Progress
from ui.elided_label import ElidedLabel
from ui.theme import GRID, styled

_STEPS = 1000  # of the bar: per mille, so that a long run is still seen to move


class StatusLine(QFrame):
    pause_wished = Signal(bool)
    problems_wished = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("StatusLine")
        self._status = IndexStatus()
        self._progress: Progress | None = None
        self.activity = ElidedLabel(Qt.TextElideMode.ElideMiddle)
        self.activity.setObjectName("Muted")
        self.activity.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self.figures = styled(QLabel(), "Muted")
        self.bar = QProgressBar(textVisible=False)
        self.bar.setRange(0, _STEPS)
        self.bar.setFixedWidth(160)
        self.bar.setAccessibleName(self.tr("Indexing progress"))
        self.pause = styled(QPushButton(), "Link")
        self.pause.clicked.connect(lambda: self.pause_wished.emit(not self._status.paused))
        self.problems = styled(QPushButton(), "Link")
        self.problems.clicked.connect(self.problems_wished)
        row = QHBoxLayout(self)
        row.setContentsMargins(4 * GRID, GRID, 3 * GRID, GRID)
        row.setSpacing(3 * GRID)
        row.addWidget(self.activity, 1)
        for widget in (self.figures, self.bar, self.pause, self.problems):
            row.addWidget(widget)
        self.setFixedHeight(9 * GRID)
        self._show()

    def show_status(self, status: IndexStatus) -> None:
        self._status = status
        self._show()

    def show_progress(self, progress: Progress | None) -> None:
        self._progress = progress
        self._show()

    def _show(self) -> None:
        status, progress = self._status, self._progress
        working = progress is not None and not status.paused and status.state != "stopped"
        self.activity.setText(self._activity(progress if working else None))
        self.figures.setText(self._figures(progress) if working and progress else "")
        self.bar.setVisible(bool(working and progress and progress.total))
        if progress and progress.total:
            self.bar.setValue(min(_STEPS, _STEPS * progress.done // progress.total))
        self.pause.setText(self.tr("Resume") if status.paused else self.tr("Pause"))
        self.pause.setVisible(working or status.paused)
        self.problems.setText(wording.problems(status.failed))
        self.problems.setVisible(status.failed > 0)

    def _activity(self, progress: Progress | None) -> str:
        status = self._status
        if status.state == "stopped":
            return status.message or self.tr("The indexer has stopped.")
        if status.paused:
            waiting = status.waiting
            return self.tr("Paused. %Ln files are waiting.", "", waiting) if waiting else self.tr("Paused")
        if progress is not None:
            return self._doing(progress)
        if status.message:
            return status.message
        if status.state == "starting":
            return self.tr("Starting…")
        return wording.documents(status.documents) if status.roots else ""

    def _doing(self, progress: Progress) -> str:
        name = wording.shown_path(progress.path)
        if progress.activity == "checking":
            return self.tr("Looking for changes in {0}").format(name) if name else self.tr("Looking for changes")
        if progress.activity == "understanding":
            return self.tr("Understanding {0}").format(name) if name else self.tr("Understanding passages")
        return self.tr("Reading {0}").format(name) if name else self.tr("Reading files")

    def _figures(self, progress: Progress) -> str:
        parts = []
        if progress.total:
            counts = self.tr("{0} of {1}").format(wording.number(progress.done), wording.number(progress.total))
            parts.append(f"{counts} ({wording.percent(progress.done, progress.total)})")
        if progress.per_second > 0:
            parts.append(wording.rate(progress.per_second, progress.activity == "understanding"))
        if progress.eta_s is not None:
            parts.append(self.tr("{0} left").format(wording.duration(progress.eta_s)))
        return " · ".join(parts)
