"""What a server does for a client: it carries out its transactions, asks the master, and reads as of a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stagewright.impl.indexes.client import Client, KnownSchema
from stagewright.impl.indexes.messages import (
    AskBuild,
    AskBuilds,
    AskSchema,
    AskTablets,
    BackfillTable,
    Build,
    Builds,
    CreateIndex,
    DropIndex,
    Found,
    Message,
    ReadIndex,
    ReadRows,
    RowsFound,
    SchemaKnown,
    SplitBegun,
    SplitTablet,
    TabletHasSplit,
    Tablets,
)
from stagewright.impl.indexes.port import Port, Settings
from stagewright.impl.indexes.processes.layout import MASTER
from stagewright.impl.indexes.processes.wire import (
    AskHowFar,
    BuildDeferred,
    Failed,
    Halved,
    HalveTablet,
    HowFar,
    LookUp,
    MakeIndex,
    Question,
    RemoveIndex,
    Reply,
    RowKeys,
    RowsAt,
    Scan,
    TabletsNow,
    Transact,
    Transacted,
    WhichTablets,
)
from stagewright.impl.indexes.schema import row_key, table_tablet
from stagewright.impl.indexes.splits.tablet_map import TABLE, TabletMap, index_table, place_parts
from stagewright.impl.indexes.times import COUNTS, HybridClock
from stagewright.machines.yugabytedb.indexes.index_states import Status


@dataclass
class _Asked:
    """A question under way: to whom what is sent until an answer comes."""

    question: Question
    to: str
    message: Message
    since: int
    at: int = 0


class Session:
    """One question at a time; one that is asked while another is under way takes its place."""

    def __init__(
        self,
        port: Port,
        settings: Settings,
        answer: Callable[[Reply], None],
        known: KnownSchema | None = None,
    ) -> None:
        self.port = port
        self._settings = settings
        self._answer = answer
        self._client = Client(port, settings, port.address, known)
        self._asked: _Asked | None = None

    @property
    def clock(self) -> HybridClock:
        """Past all that the session has heard of."""
        return self._client.clock

    def ask(self, question: Question) -> None:
        """Something that a client asks."""
        self._asked = None
        match question:
            case Transact(number, changes):
                if not self._client.is_idle:
                    reason = "a transaction of this connection has not ended"
                    self._answer(Failed(number, reason, again=True))
                    return
                if self._settings.user_enforced and len(changes) != 1:
                    reason = "a user-enforced write is of one row"
                    self._answer(Failed(number, reason, help=_ONE_ROW, never=True))
                    return
                self._client.begin(list(changes), 0, lambda: self._has_ended(number))
            case MakeIndex(number, name, unique=True) if self._settings.user_enforced:
                reason = f"{name} cannot be unique: user-enforced writes do not see each other"
                self._answer(Failed(number, reason, help=_NOT_UNIQUE, never=True))
            case MakeIndex(_, name, column, unique, deferred):
                self._send(question, MASTER, CreateIndex(name, column, unique, deferred))
            case RemoveIndex(_, name):
                self._send(question, MASTER, DropIndex(name))
            case BuildDeferred():
                self._send(question, MASTER, BackfillTable())
            case AskHowFar():
                self._send(question, MASTER, AskBuilds())
            case LookUp(at=at):
                self._ask_schema(question, row_key(question.value), at or self._now())
            case Scan(at=at):
                self._scan(question, at or self._now())
            case HalveTablet(_, tablet, ""):
                self._send(question, MASTER, SplitTablet(table_tablet(tablet)))
            case WhichTablets(_, ""):
                self._send(question, MASTER, AskTablets())
            case HalveTablet() | WhichTablets():
                self._ask_schema(question, row_key(0))
            case _:
                self._answer(Failed(question.number, "a session has no answer to that"))

    def _ask_schema(self, question: Question, key: bytes, at: int = 0) -> None:
        """Of the tablet that has a key: any will do."""
        place = self._client.tablets.place_of(key)
        self._send(question, place, AskSchema(str(question.number)), at)

    def _scan(self, question: Scan, at: int) -> None:
        """Of a tablet that this server does not know, or knows to have split, the master knows more."""
        if question.tablet not in self._client.tablets.ranges:
            self._send(question, MASTER, AskTablets(), at)
            return
        message = ReadRows(str(question.number), question.first, question.limit, at)
        self._send(question, table_tablet(question.tablet), message, at)

    def _now(self) -> int:
        """A time after all that others know to have been committed: no clock of this machine is ahead of it."""
        return max(self.clock.now(), (self.port.now() + 1) * COUNTS)

    def _has_ended(self, number: int) -> None:
        last = self._client.transactions.pop()
        why = "" if last.refused is None else last.refused.name
        self._answer(Transacted(number, last.committed or 0, why or _ABORTED))

    def _send(self, question: Question, to: str, message: Message, at: int = 0) -> None:
        since = self.port.now() if self._asked is None else self._asked.since
        self._asked = _Asked(question, to, message, since, at)
        self._try(self._asked)

    def _try(self, asked: _Asked) -> None:
        if self._asked is not asked:
            return
        if self.port.now() - asked.since > self._settings.patience:
            silent = "no master answers" if asked.to == MASTER else f"{asked.to} does not answer"
            self._end(Failed(asked.question.number, silent, again=True))
            return
        self.port.send(asked.to, asked.message)
        self.port.after(self._settings.resend, self._try, asked)

    def _end(self, reply: Reply) -> None:
        self._asked = None
        self._answer(reply)

    # -- answers -----------------------------------------------------------------------------------------------

    def receive(self, sender: str, message: Message) -> None:
        """Handle a message."""
        asked = self._asked
        match message, asked and asked.question:
            case Build(), MakeIndex(number, name) | RemoveIndex(number, name) if (
                message.name == name
            ):
                self._end(HowFar(number, (message,)))
            case Build(name=""), BuildDeferred(number):
                self._end(HowFar(number, ()))
            case Builds(builds), AskHowFar(number):
                self._end(HowFar(number, builds))
            case SchemaKnown(request), LookUp() as question if request == str(question.number):
                assert asked is not None
                self._look_up(message, question, asked.at)
            case Build(), LookUp() as question if message.name == question.index:
                assert asked is not None
                self._look_up_later(message, asked)
            case Found(request, rows), LookUp(number) if request == str(number):
                assert asked is not None
                self._end(RowKeys(number, rows, asked.at))
            case SchemaKnown(request), (HalveTablet() | WhichTablets()) as question if (
                request == str(question.number)
            ):
                self._ask_of_index(message, question)
            case TabletHasSplit(request), (
                LookUp() | Scan() | HalveTablet() | WhichTablets()
            ) as question if request == str(question.number):
                assert asked is not None
                self._send(question, MASTER, AskTablets(place_parts(sender)[0]), asked.at)
            case Tablets(), LookUp() | Scan() | WhichTablets() | HalveTablet():
                assert asked is not None
                self._client.receive(sender, message)
                self._on_tablets(asked, message.tablets)
            case SplitBegun(place), HalveTablet(number, tablet) if (
                asked is not None and asked.message == SplitTablet(place)
            ):
                known = tablet in self._client.maps.of(place_parts(place)[0]).ranges
                children = tuple(place_parts(child)[1] for child in message.children)
                advice = _SPLIT_LATER if known else _LISTED
                self._end(
                    Failed(number, message.refused, help=advice, never=not known)
                    if message.refused
                    else Halved(number, children)
                )
            case RowsFound(request, rows), Scan(number) if request == str(number):
                assert asked is not None
                self._end(RowsAt(number, tuple((k, dict(v)) for k, v in rows), asked.at))
            case _:
                self._client.receive(sender, message)

    def _ask_of_index(self, known: SchemaKnown, question: HalveTablet | WhichTablets) -> None:
        index = known.schema.named(question.index)
        if index is None:
            reason = f"there is no index {question.index}, or it is being removed"
            self._end(Failed(question.number, reason, never=True))
            return
        table = index_table(index.number)
        if isinstance(question, HalveTablet):
            self._send(question, MASTER, SplitTablet(f"{table}/{question.tablet}"))
        else:
            self._send(question, MASTER, AskTablets(table))

    def _on_tablets(self, asked: _Asked, tablets: TabletMap) -> None:
        """The newest map; a tablet that has split may be before its children in it."""

        def again() -> None:
            if self._asked is asked:
                match asked.question:
                    case LookUp(value=value) as question:
                        self._ask_schema(question, row_key(value), asked.at)
                    case Scan() as question:
                        self._scan(question, asked.at)
                    case question:
                        self._ask_schema(question, row_key(0))

        match asked.question:
            case WhichTablets(number, index) if bool(index) is (tablets.table != TABLE):
                self._end(TabletsNow(number, tablets))
            case Scan(number, tablet) if tablet not in tablets.ranges:
                known = tablets.heirs(tablet)
                reason = f"there is no tablet {tablet}"
                self._end(
                    TabletsNow(number, tablets)
                    if known
                    else Failed(number, reason, help=_LISTED, never=True)
                )
            case _:
                self.port.after(_SOON, again)

    def _look_up(self, known: SchemaKnown, question: LookUp, at: int) -> None:
        index = known.schema.readable(question.index, at)
        if index is None:
            there = known.schema.readable(question.index, None)
            if there is None:
                self._send(question, MASTER, AskBuild(question.index), at)
                return
            reason = f"{question.index} has nothing from before {there.read_from}"
            self._end(Failed(question.number, reason, help=_READ_LATER, never=True))
            return
        place = self._client.maps.place_of(index.number, row_key(question.value))
        self._send(question, place, ReadIndex(known.request, question.value, at), at)

    def _look_up_later(self, build: Build, asked: _Asked) -> None:
        """A tablet says that an index cannot be read. If it is built, the tablet has not heard of it yet."""
        question = asked.question
        assert isinstance(question, LookUp)
        if build.status is not Status.success or build.dropped:
            gone = build.status is None or build.dropped
            self._end(Failed(question.number, _why_not_read(build), never=gone))
            return

        def again() -> None:
            if self._asked is asked:
                self._ask_schema(question, row_key(question.value), asked.at)

        self.port.after(_SOON, again)


_ABORTED = "aborted"
_READ_LATER = "that is the time of its scan: read at a later one, or `scan at` the earlier one"
_SOON = 20
_SPLIT_LATER = (
    "try again when no index is being built and no tablet splits (`build status`, `tablets`)"
)
_LISTED = "`tablets` lists those that serve"
_ONE_ROW = "write one row after the other"
_NOT_UNIQUE = "create it without `unique`, or on a table with transactions"


def _why_not_read(build: Build) -> str:
    if build.status is None:
        return f"there is no index {build.name}"
    if build.dropped:
        return f"{build.name} was dropped"
    failed = f"{build.name} has failed: {build.error}"
    return failed if build.status is Status.failed else f"{build.name} is not built yet"
