"""The passage in its document: a header with what can be done, and the text around the hit, marked."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QColor, QFont, QResizeEvent, QTextBlockFormat, QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QTextEdit, QToolButton, QVBoxLayout, QWidget

from ui import icons, theme, wording
from ui.clients import Excerpt, Hit, Span
from ui.elided_label import ElidedLabel
from ui.file_badge import FileBadge
from ui.result_delegate import ResultDelegate
from ui.spans import Utf16, unwrap
from ui.theme import GRID, styled

_LINE_HEIGHT = 140  # per cent: running text needs more air than a list
_COLUMN = 760  # pixels: longer lines are hard to follow
_STALE_MS = 150  # the text of the hit before may stand this long, so that quick answers do not flicker


class Preview(QFrame):
    open_wished = Signal(object)  # Hit
    reveal_wished = Signal(object)
    copy_path_wished = Signal(object)
    copy_passage_wished = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("Preview")
        self.setMinimumWidth(280)
        self.hit: Hit | None = None
        self._excerpt: Excerpt | None = None
        self._marks: list[int] = []  # UTF-16 offsets one can step through
        self._buttons: dict[str, QToolButton] = {}
        self._stale = QTimer(self, singleShot=True, interval=_STALE_MS)
        self._stale.timeout.connect(self._show_snippet)
        self._body = _Body()
        self._body.setAccessibleName(self.tr("Document text around the passage"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._build_header())
        column.addWidget(self._body, 1)
        self.show_hit(None)

    def _build_header(self) -> QWidget:
        self._header = QWidget()
        self._badge = FileBadge()
        self._title = ElidedLabel(Qt.TextElideMode.ElideRight)
        self._title.setObjectName("Title")
        self._folder = ElidedLabel(Qt.TextElideMode.ElideMiddle)
        self._folder.setObjectName("Muted")
        self._place = styled(QLabel(), "Tag")
        self._offline = styled(QLabel(self.tr("Offline")), "OfflineTag")
        self._offline.setToolTip(self.tr("The disk of this file is not there now. This is the text read earlier."))
        names = QVBoxLayout()
        names.setSpacing(2)
        names.addWidget(self._title)
        names.addWidget(self._folder)
        row = QHBoxLayout(self._header)
        row.setContentsMargins(5 * GRID, 3 * GRID, 4 * GRID, 3 * GRID)
        row.setSpacing(3 * GRID)
        row.addWidget(self._badge)
        row.addLayout(names, 1)
        row.addWidget(self._offline, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self._place, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addLayout(self._build_buttons())
        return self._header

    def _build_buttons(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(GRID)
        for icon, text, wish in (
            ("open", self.tr("Open file (Enter)"), self.open_wished),
            ("reveal", self.tr("Show in folder (Ctrl+Enter)"), self.reveal_wished),
            ("copy", self.tr("Copy passage (Ctrl+Alt+C)"), self.copy_passage_wished),
        ):
            button = styled(QToolButton(), "Plain")
            button.setToolTip(text)
            button.setAccessibleName(text)
            button.setIcon(icons.icon(icon))
            button.clicked.connect(lambda _=False, wish=wish: self.hit and wish.emit(self.hit))
            self._buttons[icon] = button
            row.addWidget(button)
        return row

    def repaint_icons(self) -> None:
        for name, button in self._buttons.items():
            button.setIcon(icons.icon(name))
        self._body.dress()
        self._mark()

    def show_hit(self, hit: Hit | None) -> None:
        """Show whose passage this is; the text follows with `show_excerpt`."""
        same = hit is not None and self.hit is not None and hit.key == self.hit.key
        self.hit = hit
        self._header.setVisible(hit is not None)
        if hit is None:
            self._excerpt = None
            self._stale.stop()
            self._body.clear()
            return
        self._badge.set_path(hit.path)
        self._title.setText(hit.title)
        self._folder.setText(
            wording.shown_folder(hit.path, ResultDelegate.home) + " › " + wording.shown_name(hit.path)
        )
        self._folder.setToolTip(wording.shown_path(hit.path))
        place = wording.place(hit.page, hit.line)
        self._place.setText(place)
        self._place.setVisible(bool(place))
        self._offline.setVisible(hit.offline)
        if not same:
            self._stale.start()

    def show_excerpt(self, excerpt: Excerpt) -> None:
        self._stale.stop()
        self._excerpt = excerpt
        before = "… " if excerpt.cut_before else ""
        after = " …" if excerpt.cut_after else ""
        # The lines of a PDF are those of its pages; in a narrower pane they would break twice.
        printed = self.hit is not None and self.hit.path.lower().endswith(".pdf")
        self._body.show_text(before + (unwrap(excerpt.text) if printed else excerpt.text) + after)
        self._mark()
        self._scroll_to_passage()

    def _show_snippet(self) -> None:
        """What the list already knows, until the document's text arrives."""
        if self.hit:
            self.show_excerpt(Excerpt(0, self.hit.snippet, self.hit.passage, self.hit.highlights))

    def _mark(self) -> None:
        excerpt = self._excerpt
        if excerpt is None:
            return
        lead = 2 if excerpt.cut_before else 0
        units = Utf16(excerpt.text)
        colours = theme.current()
        selections = []
        if excerpt.passage:
            span = units.span(excerpt.passage)
            selections.append(self._body.selection(span, lead, colours.passage, None))
        words = [units.span(span) for span in excerpt.highlights]
        for span in words:
            selections.append(self._body.selection(span, lead, colours.word, colours.on_word))
        self._body.setExtraSelections(selections)
        self._marks = [lead + span[0] for span in words]

    def _scroll_to_passage(self) -> None:
        excerpt = self._excerpt
        if excerpt is None:
            return
        lead = 2 if excerpt.cut_before else 0
        start = excerpt.passage[0] if excerpt.passage else (excerpt.highlights[0][0] if excerpt.highlights else 0)
        self._body.scroll_to(lead + Utf16(excerpt.text).offset(start))

    def step_mark(self, step: int) -> None:
        """Go to the next (1) or previous (-1) marked word, round the end."""
        if not self._marks:
            return
        here = self._body.textCursor().position()
        beyond = [mark for mark in self._marks if (mark > here if step > 0 else mark < here)]
        target = (beyond[0] if step > 0 else beyond[-1]) if beyond else self._marks[0 if step > 0 else -1]
        self._body.scroll_to(target)


class _Body(QTextEdit):
    """Read-only text in a column of bounded width."""

    def __init__(self) -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setUndoRedoEnabled(False)
        self.setAcceptRichText(False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.document().setDocumentMargin(5 * GRID)
        font = QFont(self.font())
        if font.pointSizeF() > 0:
            font.setPointSizeF(font.pointSizeF() + 1)
        self.setFont(font)

    def dress(self) -> None:
        self.viewport().update()

    def show_text(self, text: str) -> None:
        # U+2029 and U+2028 would start blocks of their own and keep their length, NUL ends a C string.
        self.setPlainText(text.replace("\0", "\ufffd").replace("\r", "\n"))
        cursor = QTextCursor(self.document())
        cursor.select(QTextCursor.SelectionType.Document)
        block = QTextBlockFormat()
        block.setLineHeight(_LINE_HEIGHT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
        cursor.mergeBlockFormat(block)

    def selection(self, span: Span, lead: int, ground: str, colour: str | None) -> QTextEdit.ExtraSelection:
        made = QTextEdit.ExtraSelection()
        last = self.document().characterCount() - 1
        cursor = QTextCursor(self.document())
        cursor.setPosition(min(lead + span[0], last))
        cursor.setPosition(min(lead + span[1], last), QTextCursor.MoveMode.KeepAnchor)
        made.cursor = cursor
        style = QTextCharFormat()
        style.setBackground(QColor(ground))
        if colour:
            style.setForeground(QColor(colour))
        made.format = style
        return made

    def scroll_to(self, position: int) -> None:
        """Bring `position` (UTF-16) to the upper third, with what comes before it in sight."""
        cursor = QTextCursor(self.document())
        cursor.setPosition(min(position, self.document().characterCount() - 1))
        self.setTextCursor(cursor)
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + self.cursorRect(cursor).top() - self.viewport().height() // 3)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        side = max(0, (self.width() - _COLUMN) // 2)
        margins = self.viewportMargins()
        if margins.left() != side:
            self.setViewportMargins(side, 0, side, 0)
