"""A row may be several events, of several entities and machines: an invented library, whose desk writes one line a visit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.traces.readers.reading import read_log

from stagewright import spec as sw
from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.mapping.load import mapping_of
from stagewright.traces.options import Options
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

SOURCE = r"""[source]
form = "text"
line = '^(?P<who>\w+) (?P<what>borrows|returns|joins) ?(?P<books>.*)$'
"""
BOOKS = f"""machine = "Book"
entity = "{{book}}"
members = {{who = "Reader"}}
{SOURCE}
[[event]]
where = {{what = "borrows"}}
each = {{as = "book", from = "{{books}}", separator = ","}}
action = "lend"
parameters = {{r = "{{who}}"}}
[[event]]
where = {{what = "returns"}}
each = {{as = "book", from = "{{books}}", separator = ","}}
action = "take_back"
"""
ACCOUNTS = f"""machine = "Account"
entity = "{{who}}"
{SOURCE}
[[event]]
where = {{what = ["borrows", "returns"]}}
each = {{as = "book", from = "{{books}}", separator = ","}}
action = {{from = "{{what}}", values = {{borrows = "borrow", returns = "give_back"}}}}
"""


class Reader(sw.Entity, scope=3):
    """Who may borrow."""


class Book(sw.Machine):
    """One book, and who has it."""

    reader: sw.OptionalVar[Reader] = sw.optional(Reader)

    @sw.action
    def lend(self, r: sw.Term[Reader]) -> None:
        """A reader borrows it."""
        sw.require(self.reader.is_none(), "the book is in")
        self.reader = r

    @sw.action
    def take_back(self) -> None:
        """It comes back."""
        sw.require(self.reader.is_some(), "the book is out")
        self.reader = None


class Account(sw.Machine):
    """One reader's account: at most three books."""

    books: sw.NumberVar = sw.number(0, 3)

    @sw.action
    def borrow(self) -> None:
        """One book more."""
        sw.require(self.books < 3, "fewer than three books")
        self.books = self.books + 1

    @sw.action
    def give_back(self) -> None:
        """One book fewer."""
        sw.require(self.books > 0, "a book is out")
        self.books = self.books - 1


def resolve(name: str, profile: str) -> Definition:
    """The definition of one of the two."""
    return define({"Book": Book, "Account": Account}[name], profile)


@pytest.fixture
def checked(tmp_path: Path) -> Callable[..., TraceReport]:
    """What is found in a file by some mappings."""

    def check(content: str, *mappings: str, name: str = "desk.log") -> TraceReport:
        files: list[Path] = []
        for number, text in enumerate(mappings):
            files.append(tmp_path / f"m{number}.toml")
            files[-1].write_text(text)
        if content:
            (tmp_path / name).write_text(content)
        options = Options(mapping=files[0], mappings_beside=tuple(files[1:]))
        return validate([tmp_path / name], resolve, options, engine=Embedded(1))

    return check


def wrong(report: TraceReport) -> list[tuple[str, str, int]]:
    """Whose trace is wrong at which event."""
    return [
        (entity.key.stream.machine, entity.key.entity, entity.sequence)
        for entity in report.entities
    ]


GOOD = "ada borrows Emma, Ulysses\nbo joins\nada returns Emma\nbo borrows Emma\n"


def test_a_row_is_an_event_of_each_part_and_each_machine(
    checked: Callable[..., TraceReport],
) -> None:
    report = checked(GOOD, BOOKS, ACCOUNTS)
    assert wrong(report) == []
    counted = {machine.partition(",")[0]: sum(v.values()) for machine, v in report.machines.items()}
    assert counted == {"Book": 2, "Account": 2}
    assert (report.totals.lines, report.totals.with_events, report.totals.other) == (4, 3, 1)
    # Those of books, those of accounts, and the beginnings.
    assert report.totals.events == 4 + 4 + 4


def test_each_machine_refuses_what_is_wrong_for_it(checked: Callable[..., TraceReport]) -> None:
    lent_twice = checked(GOOD + "ada borrows Emma\n", BOOKS, ACCOUNTS)
    assert wrong(lent_twice) == [("Book", "Emma", 4)]
    too_many = checked(GOOD + "bo borrows Dune, Dracula, Persuasion\n", BOOKS, ACCOUNTS)
    assert wrong(too_many) == [("Account", "bo", 4)]


def test_parts_of_one_row_happen_in_their_order(checked: Callable[..., TraceReport]) -> None:
    assert wrong(checked("ada borrows Emma, Emma\n", BOOKS)) == [("Book", "Emma", 2)]


def test_an_event_that_a_row_also_is(checked: Callable[..., TraceReport]) -> None:
    first = ACCOUNTS + '[[event]]\nwhere = {what = "borrows"}\naction = "give_back"\n'
    assert wrong(checked("ada borrows Emma\n" * 9, first)) == [("Account", "ada", 4)]
    too = first + "also = true\n"
    assert wrong(checked("ada borrows Emma\n" * 9, too)) == []


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_items_of_a_list_are_events(
    form: str, tmp_path: Path, checked: Callable[..., TraceReport]
) -> None:
    mapping = f"""machine = "Book"
entity = "{{item.title}}"
members = {{who = "Reader"}}
[source]
form = "{form}"
[[event]]
each = {{as = "item", from = "{{books}}"}}
action = "lend"
parameters = {{r = "{{who}}"}}
"""
    rows = [
        {"who": "ada", "books": [{"title": "Emma"}, {"title": "Dune"}]},
        {"who": "bo", "books": []},
        {"who": "bo", "books": [{"title": "Dune"}]},
    ]
    content, name = "".join(json.dumps(row) + "\n" for row in rows), f"desk.{form}"
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / name)
        content = ""
    report = checked(content, mapping, name=name)
    assert wrong(report) == [("Book", "Dune", 2)]
    assert report.totals.other == 1


def test_lines_that_only_another_machine_knows_are_not_sorted_out(
    checked: Callable[..., TraceReport],
) -> None:
    patterns = SOURCE.replace(
        r"(?P<what>borrows|returns|joins) ?(?P<books>.*)$", "(?P<message>.*)$"
    )
    books = BOOKS.replace(SOURCE, patterns).partition("[[event]]")[0]
    books += '[[event]]\nmatch = \'^borrows (?P<book>.*)$\'\naction = "lend"\nparameters = {r = "{who}"}\n'
    accounts = ACCOUNTS.replace(SOURCE, patterns).partition("[[event]]")[0]
    accounts += "[[event]]\nmatch = '^returns '\naction = \"give_back\"\n"
    report = checked("ada borrows Emma\nbo returns Emma\n", books, accounts)
    assert wrong(report) == [("Account", "bo", 1)]


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (BOOKS, "both of the machine Book"),
        (ACCOUNTS.replace("|joins", ""), "read different rows"),
        (ACCOUNTS.replace('as = "book"', 'as = "a book"'), "each.as` is `a book`"),
        (ACCOUNTS.replace('from = "{books}"', 'from = "books"'), "each.from` names no field"),
        (ACCOUNTS.replace('"{books}"', '"{titles}"'), "reads `{titles}`"),
        (ACCOUNTS.replace("separator", "seperator"), "each.seperator` is no key"),
    ],
)
def test_mappings_that_cannot_be_used_are_refused(
    other: str, why: str, checked: Callable[..., TraceReport]
) -> None:
    with pytest.raises(InputError) as refused:
        checked(GOOD, BOOKS, other)
    assert why in refused.value.problem


def test_a_machine_that_is_named_is_not_that_of_the_members(tmp_path: Path) -> None:
    """Members had the effect that only their machine's events were kept."""
    for name, text in (("b.toml", BOOKS), ("a.toml", ACCOUNTS)):
        (tmp_path / name).write_text(text)
    (tmp_path / "desk.log").write_text(GOOD)
    options = Options(mapping=tmp_path / "b.toml", mappings_beside=(tmp_path / "a.toml",))
    plan = mapping_of(options, resolve)
    assert plan is not None
    read = read_log("mapped", [tmp_path / "desk.log"], plan)
    assert {event.machine for event in read.events} == {"Book", "Account"}
    report = validate([tmp_path / "desk.log"], resolve, options, engine=Embedded(1))
    assert not [note for note in report.notes if "left out" in note]
