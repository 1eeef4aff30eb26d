"""A client of the table: transactions of one or several statements, some of them slow, and reads through indexes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.messages import (
    Answer,
    AskTablets,
    Build,
    End,
    Ended,
    Finish,
    Found,
    Message,
    Plan,
    ReadIndex,
    SplitBegun,
    TabletHasSplit,
    Tablets,
    Write,
    Written,
)
from stagewright.impl.indexes.port import Port, Settings
from stagewright.impl.indexes.schema import Schema, Values, row_key
from stagewright.impl.indexes.splits.tablet_map import TabletMap, TabletMaps, place_parts
from stagewright.impl.indexes.times import COUNTS, HybridClock

Change = tuple[int, Values | None]
_SOON = 20


@dataclass
class Transaction:
    """What a client did, when each statement was answered, and what it was told in the end."""

    name: str
    changes: list[Change]
    pause: int = 0  # before the last statement, and before the end
    committed: int | None = None
    ended: bool = False
    refused: Answer | None = None
    latencies: list[int] = field(default_factory=list[int])
    rounds: int = 0  # statements that were refused for their schema, or as their tablet has split
    began: int = 0  # milliseconds on its client's clock
    over: int | None = None


@dataclass(frozen=True)
class IndexRead:
    """A read through an index, and what it found."""

    index: int
    value: int
    at: int
    rows: tuple[int, ...]


@dataclass
class KnownSchema:
    """The newest schema and maps of tablets that some clients have heard of; those of one server share them."""

    maps: TabletMaps
    newest: Schema = field(default_factory=Schema)


class Client:
    """One after the other; a statement that is not answered is sent again, then given up."""

    def __init__(
        self, port: Port, settings: Settings, name: str, known: KnownSchema | None = None
    ) -> None:
        self.port = port
        self.clock = HybridClock(port.now)
        self._known = known or KnownSchema(TabletMaps(settings.tablets))
        self.transactions: list[Transaction] = []
        self.reads: list[IndexRead] = []
        self.builds: dict[str, Build] = {}
        self.splits: dict[str, SplitBegun] = {}
        self._settings = settings
        self._name = name
        self._count = 0
        self._current: Transaction | None = None
        self._at = 0  # the statement
        self._began = 0
        self._sent = 0  # of the statement; -1: the end
        self._participants: set[str] = set()
        self._commit = False
        self._plan: Plan | None = None  # of a user-enforced write
        self._asked: dict[str, tuple[int, int, int]] = {}
        self._then: Callable[[], None] = _nothing

    @property
    def schema(self) -> Schema:
        """As this client knows it."""
        return self._known.newest

    @schema.setter
    def schema(self, newest: Schema) -> None:
        self._known.newest = newest

    @property
    def tablets(self) -> TabletMap:
        """Those of the table, as this client knows them."""
        return self.maps.of()

    @property
    def maps(self) -> TabletMaps:
        """Those of indexes, too."""
        return self._known.maps

    @property
    def is_idle(self) -> bool:
        """Nothing is under way."""
        return self._current is None

    # -- transactions ------------------------------------------------------------------------------------------

    def begin(self, changes: list[Change], pause: int, then: Callable[[], None]) -> None:
        """A transaction; `then` when it has ended."""
        name = f"{self._name}-{self._count}"
        self._count += 1
        self._current = Transaction(name, changes, pause, began=self.port.now())
        self.transactions.append(self._current)
        self._then = then
        self._at, self._participants = 0, set()
        self._statement()

    def _statement(self) -> None:
        self._plan = None
        self._began = self.port.now()
        self._sent += 1
        self._send(self._sent)

    def _send(self, number: int) -> None:
        current = self._current
        if current is None or number != self._sent:
            return
        patient = self._settings.user_enforced  # what is stored in part has to be finished
        if not patient and self.port.now() - self._began > self._settings.patience:
            current.latencies.append(self.port.now() - self._began)
            self._end(commit=False)
            return
        key, values = current.changes[self._at]
        place = self.tablets.place_of(row_key(key))
        self._participants.add(place)
        if self._plan is not None:
            self.port.send(place, Finish(current.name, self._at, key, values, self._plan))
        else:
            self.port.send(place, Write(current.name, self._at, key, values, self.schema))
        self.port.after(self._settings.resend, self._send, number)

    def _end(self, *, commit: bool) -> None:
        if self._current is not None:
            self._at = len(self._current.changes)  # what a statement is still answered comes late
        self._commit = commit
        self._sent += 1
        self._send_end(self._sent)

    def _send_end(self, number: int) -> None:
        current = self._current
        if current is None or number != self._sent:
            return
        places = tuple(sorted(self._participants))
        self.port.send("transactions", End(current.name, self._commit, places))
        self.port.after(self._settings.resend, self._send_end, number)

    def receive(self, sender: str, message: Message) -> None:
        """Handle a message."""
        current = self._current
        match message:
            case Written(transaction, statement, answer, participants, schema, plan):
                if current is None or (transaction, statement) != (current.name, self._at):
                    return
                self._participants |= set(participants)
                if plan is not None:
                    self._on_planned(current, plan)
                else:
                    self._on_written(current, answer, schema)
            case Ended(transaction, time):
                if current is not None and transaction == current.name:
                    current.ended, current.committed = True, time
                    current.over = self.port.now()
                    self._current = None
                    self._sent += 1
                    self._then()
            case Found(request, rows):
                asked = self._asked.pop(request, None)
                if asked is not None:
                    self.reads.append(IndexRead(*asked, rows))
            case Tablets(tablets):
                self.maps.learn(tablets)  # what was refused is sent to whom it is for before long
            case TabletHasSplit(request) if request in self._asked:
                self.port.send("master", AskTablets(place_parts(sender)[0]))
                self.port.after(_SOON, self._ask_index, request)
            case Build(name):
                self.builds[name] = message
            case SplitBegun(place):
                self.splits[place] = message
            case _:
                pass

    def _on_written(self, current: Transaction, answer: Answer, schema: Schema | None) -> None:
        match answer:
            case Answer.mismatched_schema:
                if schema is not None:
                    is_newer = schema.version > self.schema.version
                    if is_newer:
                        self.schema = schema
                    current.rounds += 1
                    number = self._sent = self._sent + 1
                    lag = self._settings.lag
                    self.port.after(lag // 10 if is_newer else lag, self._send, number)
            case Answer.tablet_has_split:
                current.rounds += 1
                self.port.send("master", AskTablets())
                self._sent += 1
                self.port.after(_SOON, self._send, self._sent)
            case Answer.timed_out | Answer.changed:  # plan it again
                self._sent += 1
                self.port.after(20, self._next, self._sent)
            case Answer.done:
                current.latencies.append(self.port.now() - self._began)
                self._at += 1
                self._sent += 1
                last = self._at >= len(current.changes) - 1
                if self._at == len(current.changes):
                    self.port.after(current.pause, self._end_if, self._sent)
                else:
                    self.port.after(current.pause if last else 0, self._next, self._sent)
            case _:
                current.latencies.append(self.port.now() - self._began)
                current.refused = answer
                self._end(commit=False)

    def _on_planned(self, current: Transaction, plan: Plan) -> None:
        """A user-enforced write goes on after its pause; when it is planned again, it makes none."""
        if self._plan is None:
            current.latencies.append(self.port.now() - self._began)
            self._plan = plan
            self._began = self.port.now()
            self._sent += 1
            pause, current.pause = current.pause, 0
            self.port.after(pause, self._send, self._sent)

    def _end_if(self, number: int) -> None:
        if number == self._sent:
            self._end(commit=True)

    def _next(self, number: int) -> None:
        if number == self._sent:
            self._statement()

    # -- reads ---------------------------------------------------------------------------------------------------

    def read(self, name: str, value: int, back: int = 0) -> bool:
        """Look a value up in an index, as of so many milliseconds ago; False if it may not be read."""
        at = self.clock.now() - back * COUNTS
        old = Defect.old_reads_are_served in self._settings.defects
        index = self.schema.readable(name, None if old else at)
        if index is None:
            return False
        request = f"{self._name}-r{len(self._asked) + len(self.reads)}-{at}"
        self._asked[request] = (index.number, value, at)
        self._ask_index(request)
        return True

    def _ask_index(self, request: str) -> None:
        if request in self._asked:
            index, value, at = self._asked[request]
            place = self.maps.place_of(index, row_key(value))
            self.port.send(place, ReadIndex(request, value, at))

    # -- statements about indexes --------------------------------------------------------------------------------

    def ask(self, message: Message) -> None:
        """Of the master."""
        self.port.send("master", message)


def _nothing() -> None:
    """Nobody waits."""
