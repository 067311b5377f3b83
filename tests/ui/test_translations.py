from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PySide6.QtCore import QCoreApplication, QLocale, QTranslator
from PySide6.QtWidgets import QApplication

import ui
from resources import path
from tests.ui.messages import messages
from ui import wording

SOURCE = Path(ui.__file__).parent
PLURALS = sorted((context, text) for context, text, plural in messages(SOURCE) if plural)


def catalogue() -> dict[tuple[str, str], list[str]]:
    """(context, text) -> forms, from the English catalogue."""
    root = ElementTree.parse(path("translations", "inkling_en.ts")).getroot()
    return {
        (context.findtext("name", ""), message.findtext("source", "")): [
            form.text or "" for form in message.iter("numerusform")
        ]
        for context in root.iter("context")
        for message in context.iter("message")
    }


@pytest.fixture
def english(qapp: QApplication) -> Iterator[QTranslator]:
    translator = QTranslator()
    assert translator.load(str(path("translations", "inkling_en.qm")))
    qapp.installTranslator(translator)
    before = QLocale()
    QLocale.setDefault(QLocale("en_GB"))
    yield translator
    QLocale.setDefault(before)
    qapp.removeTranslator(translator)


def test_the_english_catalogue_has_every_plural_and_nothing_else() -> None:
    assert sorted(catalogue()) == PLURALS


@pytest.mark.parametrize(("context", "text"), PLURALS)
def test_the_compiled_catalogue_agrees_with_its_source(english: QTranslator, context: str, text: str) -> None:
    one, many = catalogue()[(context, text)]
    assert one and many
    assert QCoreApplication.translate(context, text, "", 1) == one.replace("%Ln", "1")
    assert QCoreApplication.translate(context, text, "", 1234) == many.replace("%Ln", "1,234")


def test_one_is_not_many(english: QTranslator) -> None:
    assert wording.documents(1) == "1 document"
    assert wording.documents(2) == "2 documents"


def test_every_text_a_person_reads_goes_through_the_translator() -> None:
    texts = {text for _, text, _ in messages(SOURCE)}
    assert len(texts) > 100
    assert {"Add folder…", "Remove from Inkling", "Search your files: a few words, or a question"} <= texts
