"""The outline of the documents: what cites a document stands under one of its sections, once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from stagewright.commands.pages.documents import vars_of
from stagewright.machines import SHIPPED
from stagewright.machines.documents import DOCUMENTS
from stagewright.machines.documents.document import Document
from stagewright.spec.define import define
from stagewright.spec.loading import find

PLACED = {p for d in DOCUMENTS for s in d.sections for p in s.promises}
CITES = re.compile(r"\b00[0-4]\b")
PAGES = Path(__file__).parents[2] / "docs" / "documents"
# What was measured of an older definition is not shown: to measure it anew takes hours, and is done for many at once.
SAYS_ENOUGH = re.compile(r"(\d+; )?alone: |not measured$|of `[^`]+` alone$")
SAYS_ENOUGH_OF_A_LEMMA = re.compile(
    r"(\d+; )?(alone: |implied by |true whatever |lemma(; of single steps)?$)|not measured$|of `[^`]+` alone$"
)


def not_needed(page: str) -> Iterator[tuple[str, str]]:
    """Rows that name no mistake which their property alone catches, of properties that are not called lemmas."""
    at = 0
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split(" | ")]
        if cells[0] == "property":
            at = cells.index("mutants")
        elif line.startswith("| `"):
            enough = SAYS_ENOUGH_OF_A_LEMMA if cells[0].endswith(" (lemma)") else SAYS_ENOUGH
            if not enough.match(cells[at]):
                yield cells[0], cells[at]


def citing() -> dict[object, str]:
    """Every promise of a shipped machine that names a document by its number."""
    found: dict[object, str] = {}
    for called in SHIPPED:
        machine = find(called, SHIPPED)
        members = vars_of(machine)
        for prop in define(machine).properties:
            if "." not in prop.name and CITES.search(prop.doc):
                found[members[prop.name]] = f"{called}: {prop.name}"
    return found


def test_every_promise_that_names_a_document_stands_under_a_section() -> None:
    assert sorted(name for promise, name in citing().items() if promise not in PLACED) == []


def test_a_promise_stands_under_one_section() -> None:
    count = Counter(p for d in DOCUMENTS for s in d.sections for p in s.promises)
    assert [promise for promise, times in count.items() if times > 1] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.id)
def test_a_section_has_promises_or_says_what_stands_for_it(document: Document) -> None:
    assert [s.title for s in document.sections if bool(s.promises) == bool(s.instead)] == []


def test_the_documents_are_the_five() -> None:
    assert [d.id for d in DOCUMENTS] == ["000", "001", "002", "003", "004"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda d: d.id)
def test_a_promise_alone_catches_some_mistake_or_is_called_a_lemma(document: Document) -> None:
    assert list(not_needed((PAGES / f"{document.id}.md").read_text("utf-8"))) == []


@pytest.mark.parametrize("mutants", ["open", "4; shared", "none", "implied by `q`"])
def test_a_promise_that_nothing_needs_is_found(mutants: str) -> None:
    head = "| property | of | known bugs | mutants | left open by |"
    page = f"{head}\n| `p` | m |  | {mutants} |  |\n| `q` | m | B1 | 3; alone: known bug B1 |  |"
    assert list(not_needed(page)) == [("`p`", mutants)]
