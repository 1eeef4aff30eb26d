"""The page of a design document: each promise with the bugs and the mutants that it catches."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

from stagewright.commands.pages.documents import DocumentPages, Measured, kept_from, measured_in
from stagewright.machines import SHIPPED
from stagewright.machines.documents.document import Document, Section
from stagewright.machines.known_bugs import KNOWN_BUGS
from stagewright.machines.scylladb.topology.fencing import Fencing
from stagewright.machines.scylladb.views.view_task import ViewTask
from stagewright.machines.yugabytedb.indexes.index_postgres_rows import PostgresRows
from stagewright.machines.yugabytedb.indexes.index_rows import IndexRows
from stagewright.spec.define import define
from stagewright.spec.definition import Role

PROMISE = ViewTask.aborts_are_not_revoked
DOCUMENT = Document(
    "009",
    "A text",
    "some file",
    (
        Section("Lifetime", (PROMISE, Fencing.current_requests_are_not_fenced_out)),
        Section("Schema", instead="It is a table of columns."),
    ),
)


FOUND = next(p for p in define(ViewTask).properties if p.name == PROMISE.__name__)
TWICE = IndexRows.no_orphan_entry  # of two machines


def needed(found: dict[str, object]) -> Measured:
    return Measured(define(ViewTask).fingerprint(), {PROMISE.__name__: found})


def page(directory: Path, fingerprint: str, need: str, mutant: str | None) -> str:
    needs = {PROMISE.__name__: {"need": need, "caught": 4, "mutant": mutant}}
    report = {"fingerprint": fingerprint, "needs": needs, "summary": {}}
    (directory / "view-task").mkdir(parents=True)
    (directory / "view-task" / "mutants.json").write_text(json.dumps(report))
    kept = directory / "kept.json"
    kept.write_text(json.dumps(kept_from(directory, SHIPPED, {})))
    runs = directory / "runs"
    (runs / "fencing").mkdir(parents=True)
    (runs / "fencing" / "old.current_requests_are_not_fenced_out.md").touch()
    return DocumentPages(SHIPPED, KNOWN_BUGS, measured_in(kept), runs).page_of(DOCUMENT)


def row(text: str, promise: str) -> list[str]:
    (line,) = [line for line in text.splitlines() if line.startswith(f"| `{promise}`")]
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def test_a_promise_shows_its_machine_its_bugs_and_the_mutant_that_it_alone_catches(
    tmp_path: Path,
) -> None:
    text = page(tmp_path, define(ViewTask).fingerprint(), "alone", "drop / abort")
    assert row(text, "aborts_are_not_revoked")[1] == "[view-task](../machines/view-task.md)"
    assert row(text, "aborts_are_not_revoked")[4] == "4; alone: drop / abort; of single steps"
    fenced = row(text, "current_requests_are_not_fenced_out")
    assert (fenced[3], fenced[4]) == ("T07", "not measured")
    assert fenced[5].startswith("[old](")
    assert "It is a table of columns." in text
    assert "2 properties in 2 sections; known bugs break 1 of them. Of the 1 measured," in text


def test_a_promise_that_catches_nothing_by_itself_is_not_flattered(tmp_path: Path) -> None:
    text = page(tmp_path, define(ViewTask).fingerprint(), "shared", None)
    assert row(text, "aborts_are_not_revoked")[4] == "4; shared; of single steps"
    assert "0 catch a mutant that no other catches, 1 catch only what others catch, too" in text


def test_a_promise_that_every_single_step_keeps_is_told_from_others(tmp_path: Path) -> None:
    text = page(tmp_path, define(ViewTask).fingerprint(), "alone", "drop / abort")
    assert row(text, "aborts_are_not_revoked")[4] == "4; alone: drop / abort; of single steps"
    assert "1 are of single steps." in text


def test_results_of_an_older_definition_do_not_count(tmp_path: Path) -> None:
    text = page(tmp_path, "another", "alone", "drop / abort")
    assert row(text, "aborts_are_not_revoked")[4] == "not measured"
    assert "Of the 0 measured" in text


def test_what_one_property_alone_catches_is_shown_without_a_number() -> None:
    fingerprint = define(ViewTask).fingerprint()
    one = needed({"need": "alone", "mutant": "known bug X1", "scope": "a=1"})
    assert one.cell(FOUND, fingerprint) == "alone: known bug X1"
    open_ = needed({"need": "undecided", "mutant": None, "scope": None})
    assert open_.cell(FOUND, fingerprint) == "open"
    assert open_.cell(replace(FOUND, name="another"), fingerprint) == "not measured"
    implied = needed({"need": "implied", "mutant": None, "implied_by": ["q", "r"]})
    assert implied.cell(FOUND, fingerprint) == "implied by `q`, `r`"


def test_a_lemma_need_not_catch_anything_alone() -> None:
    fingerprint = define(ViewTask).fingerprint()
    lemma = replace(FOUND, role=Role.LEMMA)
    shared = needed({"need": "shared", "caught": 3, "mutant": None})
    assert shared.cell(FOUND, fingerprint) == "3; shared"
    assert shared.cell(lemma, fingerprint) == "3; lemma"
    alone = needed({"need": "alone", "mutant": "drop / abort"})
    assert alone.cell(lemma, fingerprint) == "alone: drop / abort"


def test_a_bug_of_any_of_its_machines_shows_what_a_promise_is_needed_for(tmp_path: Path) -> None:
    document = Document("009", "A text", "some file", (Section("Goals", (TWICE,)),))
    names = {"index-postgres-rows": PostgresRows, "index-rows": IndexRows}
    measured = {
        name: Measured(
            define(machine).fingerprint(),
            {
                TWICE.__name__: {
                    "need": "alone" if machine is IndexRows else "undecided",
                    "mutant": "known bug X1" if machine is IndexRows else None,
                }
            },
        )
        for name, machine in names.items()
    }
    text = DocumentPages(SHIPPED, KNOWN_BUGS, measured, tmp_path).page_of(document)
    assert row(text, TWICE.__name__)[4] == "alone: known bug X1"
    assert "1 catch a mutant that no other catches" in text


def test_what_is_found_later_is_added_and_takes_nothing_away() -> None:
    def of(**needs: str) -> Measured:
        return Measured("same", {name: {"need": need} for name, need in needs.items()})

    before = of(a="alone", b="undecided", c="shared", d="alone")
    after = of(a="undecided", b="alone", c="undecided", e="nothing", d="shared")
    assert after.after(before) == of(a="alone", b="alone", c="shared", e="nothing", d="alone")
    other = Measured("another", before.needs)
    assert after.after(other) == after
    assert after.after(None) == after


def test_what_is_found_of_another_definition_takes_nothing_from_this_one(tmp_path: Path) -> None:
    file = tmp_path / "view-task" / "mutants.json"
    file.parent.mkdir()
    now = needed({"need": "alone", "mutant": "drop / abort"})
    for fingerprint, before, kept in (
        ("older", now, now.fingerprint),
        ("older", Measured("oldest", now.needs), "older"),
        (now.fingerprint, Measured("older", now.needs), now.fingerprint),
    ):
        file.write_text(json.dumps({"fingerprint": fingerprint, "needs": {}}))
        found = kept_from(tmp_path, SHIPPED, {"view-task": before})
        assert cast("dict[str, str]", found["view-task"])["fingerprint"] == kept
