"""What a server does for a client, told by what it sends: nobody else is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("msgspec")

from stagewright.impl.indexes.bulk.work import Work
from stagewright.impl.indexes.client import KnownSchema
from stagewright.impl.indexes.messages import (
    Answer,
    AskBuild,
    AskSchema,
    AskTablets,
    Build,
    Ended,
    Finish,
    Found,
    Message,
    Plan,
    ReadIndex,
    ReadRows,
    SchemaKnown,
    SplitBegun,
    SplitTablet,
    TabletHasSplit,
    Tablets,
    Write,
    Written,
)
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.processes.session import Session
from stagewright.impl.indexes.processes.wire import (
    Failed,
    Halved,
    HalveTablet,
    LookUp,
    MakeIndex,
    Question,
    Reply,
    RowKeys,
    Scan,
    TabletsNow,
    Transact,
    Transacted,
    WhichTablets,
)
from stagewright.impl.indexes.records.notes import Note
from stagewright.impl.indexes.schema import IndexInfo, Schema, row_key, table_tablet
from stagewright.impl.indexes.splits.tablet_map import TabletMap, TabletMaps
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status

NOW = 1_000


class Heard:
    """A port that keeps what is sent, and what is to be done later."""

    address = "client/n1/1"

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.places: list[str] = []
        self.later: list[Callable[[], None]] = []

    def send(self, to: str, message: Message, *, early: bool = False) -> None:
        self.sent.append(message)
        self.places.append(to)

    def after(self, milliseconds: int, action: Callable[..., None], *arguments: Any) -> None:
        if milliseconds < 100:  # what is asked once more after longer than that was answered
            self.later.append(lambda: action(*arguments))

    def turn(self, action: Callable[..., None], *arguments: Any) -> None:
        """Nothing takes long."""

    def aside(self, work: Callable[[], None], then: Callable[..., None], *arguments: Any) -> None:
        """Nor waits for a disk."""

    def elsewhere(self, work: Work, then: Callable[..., None], *arguments: Any) -> None:
        """Nor is there anybody else."""

    def make_tablet(self, address: str) -> None:
        """No tablet splits."""

    def is_led(self, address: str) -> bool:
        return True

    def now(self) -> int:
        return NOW

    def note(self, note: Note) -> None:
        """Nobody listens."""

    def take_slot(self) -> bool:
        return False

    def free_slot(self) -> None:
        """It has none."""


def asked(value: int) -> tuple[Heard, Session, list[Reply]]:
    port, replies = Heard(), list[Reply]()
    session = Session(port, Settings(), replies.append)
    session.ask(LookUp(1, "i", value))
    assert port.sent == [AskSchema("1")]
    return port, session, replies


def known(permission: Permission) -> SchemaKnown:
    return SchemaKnown("1", Schema(4, (IndexInfo(0, "i", "v", False, permission, 5),)))


def test_a_tablet_that_lags_does_not_hide_an_index_that_is_built() -> None:
    port, session, replies = asked(7)
    session.receive("table/0", known(Permission.do_backfill))
    assert port.sent == [AskSchema("1"), AskBuild("i")]
    session.receive("master", Build("i", Status.success))
    assert replies == []
    (again,) = port.later
    again()
    assert port.sent == [AskSchema("1"), AskBuild("i"), AskSchema("1")]
    session.receive("table/0", known(Permission.read_write_and_delete))
    assert isinstance(port.sent[-1], ReadIndex)
    session.receive("index0/0", Found("1", (3,)))
    assert [r.rows for r in replies if isinstance(r, RowKeys)] == [(3,)]


@pytest.mark.parametrize(
    ("build", "reason", "never"),
    [
        (Build("i", Status.in_progress), "i is not built yet", False),
        (
            *(Build("i", Status.failed, "rows 1 and 2 both have v = 7"),),
            *("i has failed: rows 1 and 2", False),
        ),
        (Build("i", Status.success, dropped=True), "i was dropped", True),
        (Build("i", None), "there is no index i", True),
    ],
)
def test_an_index_that_is_not_built_is_not_waited_for(
    build: Build, reason: str, never: bool
) -> None:
    port, session, replies = asked(7)
    session.receive("table/0", known(Permission.do_backfill))
    session.receive("master", build)
    (failed,) = replies
    assert isinstance(failed, Failed)
    assert failed.reason.startswith(reason)
    assert failed.never is never
    assert port.later == []


def test_an_index_has_nothing_from_before_its_scan() -> None:
    port, replies = Heard(), list[Reply]()
    session = Session(port, Settings(), replies.append)
    session.ask(LookUp(1, "i", 7, at=4))
    session.receive("table/0", known(Permission.read_write_and_delete))
    later = "that is the time of its scan: read at a later one, or `scan at` the earlier one"
    assert replies == [Failed(1, "i has nothing from before 5", help=later, never=True)]


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (MakeIndex(1, "u", "v", unique=True), "u cannot be unique"),
        (Transact(1, ((1, {"v": 1}), (2, None))), "is of one row"),
    ],
)
def test_a_table_with_user_enforced_writes_refuses_what_needs_transactions(
    question: Question, reason: str
) -> None:
    port, replies = Heard(), list[Reply]()
    Session(port, Settings(user_enforced=True), replies.append).ask(question)
    assert port.sent == []
    (failed,) = replies
    assert isinstance(failed, Failed)
    assert reason in failed.reason
    assert not failed.again


def test_a_user_enforced_write_that_was_too_late_is_planned_again_without_being_done_twice() -> (
    None
):
    port, replies = Heard(), list[Reply]()
    session = Session(port, Settings(user_enforced=True), replies.append)
    session.ask(Transact(1, ((7, {"v": 1}),)))
    name = "client/n1/1-0"
    session.receive("table/0", Written(name, 0, Answer.done, plan=Plan(1, 0, ())))
    port.later.pop(0)()
    assert isinstance(port.sent[-1], Finish)
    session.receive("table/0", Written(name, 0, Answer.timed_out))
    port.later.pop(0)()
    assert isinstance(port.sent[-1], Write)
    assert replies == []
    session.receive("table/0", Ended(name, 9))  # the first copy of it was stored after all
    assert replies == [Transacted(1, 9, "aborted")]


def test_a_scan_of_a_tablet_that_has_split_is_answered_with_the_newest_map() -> None:
    port, replies = Heard(), list[Reply]()
    session, tablets = Session(port, Settings(), replies.append), TabletMap(3)
    split = tablets.halves(1)
    assert split is not None
    session.ask(Scan(1, 1, None, 10, at=4))
    assert port.sent == [ReadRows("1", None, 10, 4)]
    session.receive("table/1", TabletHasSplit("1"))
    assert port.sent[1:] == [AskTablets()]
    session.receive("master", Tablets(tablets))  # it has not heard of the split yet
    port.later.pop()()
    assert port.sent[2:] == [ReadRows("1", None, 10, 4)]
    session.receive("table/1", TabletHasSplit("1"))
    session.receive("master", Tablets(tablets.after(split)))
    assert replies == [TabletsNow(1, tablets.after(split))]
    session.ask(Scan(2, 3, 5, 10, at=4))  # a child, at the same time
    assert port.sent[4:] == [ReadRows("2", 5, 10, 4)]
    session.ask(Scan(3, 9, None, 10, at=4))
    session.receive("master", Tablets(tablets.after(split)))
    assert replies[1:] == [
        Failed(3, "there is no tablet 9", help="`tablets` lists those that serve", never=True)
    ]


def test_an_index_is_looked_up_though_the_tablet_that_is_asked_for_its_schema_has_split() -> None:
    port, session, _ = asked(7)
    tablets = TabletMap(3)
    split = tablets.halves(tablets.of(row_key(7)))
    assert split is not None
    session.receive("table/0", TabletHasSplit("1"))
    session.receive("master", Tablets(tablets.after(split)))
    port.later.pop()()
    assert port.sent == [AskSchema("1"), AskTablets(), AskSchema("1")]
    assert port.places[-1] in map(table_tablet, split.children)
    session.receive("table/3", known(Permission.read_write_and_delete))
    assert isinstance(port.sent[-1], ReadIndex)


def test_a_read_through_an_index_follows_a_tablet_of_it_that_has_split() -> None:
    port, session, replies = asked(7)
    tablets = TabletMap(3, (), "index0")
    split = tablets.halves(tablets.of(row_key(7)))
    assert split is not None
    serves = known(Permission.read_write_and_delete)
    session.receive("table/0", serves)
    assert port.places[-1] == split.place
    session.receive(split.place, TabletHasSplit("1"))
    assert port.sent[-1] == AskTablets("index0")
    session.receive("master", Tablets(tablets.after(split)))
    port.later.pop()()
    session.receive("table/0", serves)
    assert isinstance(port.sent[-1], ReadIndex)
    assert port.places[-1] == tablets.after(split).place_of(row_key(7))
    assert replies == []


def test_a_tablet_of_an_index_is_split_by_the_number_that_the_schema_has_for_its_name() -> None:
    port, replies = Heard(), list[Reply]()
    session = Session(port, Settings(), replies.append)
    session.ask(HalveTablet(1, 2, "i"))
    session.receive("table/0", known(Permission.do_backfill))
    assert port.sent[-1] == SplitTablet("index0/2")
    session.receive("master", SplitBegun("table/2", ("table/3", "table/4")))  # of another question
    session.receive("master", SplitBegun("index0/2", ("index0/3", "index0/4")))
    assert replies == [Halved(1, (3, 4))]
    session.ask(WhichTablets(1, "j"))
    session.receive("table/0", known(Permission.do_backfill))
    assert isinstance(replies[-1], Failed)
    assert replies[-1].reason == "there is no index j, or it is being removed"


def test_what_one_session_of_a_server_hears_of_a_schema_the_others_know() -> None:
    port, server = Heard(), KnownSchema(TabletMaps(3))
    first, second = (Session(port, Settings(), list[Reply]().append, server) for _ in range(2))
    first.ask(Transact(1, ((7, {"v": 1}),)))
    write = port.sent[-1]
    assert isinstance(write, Write)
    newer = Schema(4, (IndexInfo(0, "i", "v", False, Permission.delete_only, None),))
    refused = Answer.mismatched_schema
    first.receive("table/0", Written(write.transaction, 0, refused, schema=newer))
    second.ask(Transact(1, ((8, {"v": 1}),)))
    assert isinstance(port.sent[-1], Write)
    assert port.sent[-1].schema == newer
