"""The requests of clients, at the node that coordinates them.

A request takes its replicas from the topology that the node knows when it begins, and is marked with that
version: a barrier waits for it, and replicas refuse it once the fence is past it. What a read returns is as
good as written: replicas that may lack it, pending ones above all, get it before the client does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from stagewright.impl.catalog.names import NOT_FOR_CLIENTS, name_of, no_table
from stagewright.impl.catalog.view import View
from stagewright.impl.cdc.metadata import Refused, Window
from stagewright.impl.cdc.rows import (
    Change,
    Image,
    stored as stored_change,
)
from stagewright.impl.node.clients.availability import Parts, too_few
from stagewright.impl.node.clients.images import Images
from stagewright.impl.node.clients.recency import Recency
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.keys import stored_key, token_in
from stagewright.impl.node.messages import (
    Cell,
    ClientRead,
    ClientReply,
    ClientWrite,
    Level,
    Outcome,
    ReplicaRead,
    ReplicaReply,
    ReplicaWrite,
    Unavailable,
)
from stagewright.impl.node.port import Effect, Send, Wake
from stagewright.impl.ring.vnodes import Chosen


@dataclass(frozen=True)
class _Log:
    """The log row of a write: who stores it, and how many of them must. `number` is of messages with it alone."""

    number: int
    cell: Cell
    targets: tuple[str, ...]
    needed: int
    stay: Parts


@dataclass
class _Open:
    """A request on its way. `repair` is the row that a read found and writes back."""

    client: str
    request: ClientWrite | ClientRead
    version: int
    chosen: Chosen
    targets: tuple[str, ...]
    needed: int
    answers: dict[str, ReplicaReply] = field(default_factory=dict[str, ReplicaReply])
    refused: set[str] = field(default_factory=set[str])
    repair: Cell | None = None
    log: _Log | None = None
    stay: Parts = ()

    @property
    def parts(self) -> Parts:
        """Of whom how many must answer."""
        own, log = ((self.targets, self.needed), *self.stay), self.log
        return own if log is None else (*own, (log.targets, log.needed), *log.stay)

    @property
    def done(self) -> bool:
        """Whether enough have answered."""
        return all(sum(n in self.answers for n in some) >= most for some, most in self.parts)

    @property
    def hopeless(self) -> bool:
        """Whether too many have refused."""
        return any(sum(n not in self.refused for n in some) < most for some, most in self.parts)


class Requests:
    """The open requests of one node."""

    def __init__(self, node: Context) -> None:
        self._node = node
        self._open: dict[int, _Open] = {}
        self._of_log: dict[int, int] = {}  # requests by the numbers of messages with log rows alone
        self._images = Images(node, self._begin)
        self._recency = Recency(node, lambda held: self._start(*held))

    def begin(self, client: str, request: ClientWrite | ClientRead) -> list[Effect]:
        """Send a client's request to the replicas."""
        return self._begin(client, request, None)

    def _begin(
        self, client: str, request: ClientWrite | ClientRead, image: Image | None
    ) -> list[Effect]:
        """The same; `image` is what was read before a write, if it was."""
        view = self._node.view
        if isinstance(request, ClientWrite) and view.named(request.table) in view.logs:
            return self._recency.admit((client, request, image))
        return self._start(client, request, image)

    def _start(
        self, client: str, request: ClientWrite | ClientRead, image: Image | None
    ) -> list[Effect]:
        view = self._node.view
        if (named := view.named(request.table)) != request.table:
            request = replace(request, table=named)
        refusal = self._refusal(view, request.table) or self._may_write(view, request)
        if refusal:
            return [_failed(client, request.number, refusal)]
        key = stored_key(request.key)
        chosen = view.replicas(request.table, token_in(key))
        reads_before = image is None and request.table in view.images
        writes = isinstance(request, ClientWrite) and not reads_before
        factor = self._factor(request.table, chosen, writes)
        targets, needed = self._plan(chosen, request.level, factor, writes)
        found = _Open(client, request, view.version, chosen, targets, needed)
        if writes:
            found.stay = self._staying(chosen, request.level, factor)
        if short := self._too_few(found, found.parts):
            sent: list[Effect] = []
            if isinstance(request, ClientWrite) and self._node.has(Defect.refused_writes_are_sent):
                sent = self._writes(self._node.number(), found, request, key)
            return [*sent, _unavailable(client, request.number, short)]
        if isinstance(request, ClientWrite) and reads_before:
            return self._images.begin(client, request, key, targets, needed)
        number = self._node.number()
        wake = Wake(self._node.timing.request, ("request", number))
        if isinstance(request, ClientRead):
            self._open[number] = found
            message = ReplicaRead(number, view.version, request.table, key)
            return [*(Send(n, message) for n in targets), wake]
        if request.table in view.logs:
            log = self._log(request, key, chosen, image)
            if isinstance(log, Refused):
                return [_failed(client, request.number, log.reason)]
            if short := self._too_few(found, ((log.targets, log.needed), *log.stay), of_log=True):
                return [_unavailable(client, request.number, short)]
            found.log = log
            self._of_log[log.number] = number
        self._open[number] = found
        return [*self._writes(number, found, request, key), wake]

    def _writes(self, number: int, found: _Open, request: ClientWrite, key: bytes) -> list[Effect]:
        """The row for its replicas, with the log row for those that store it, too; that alone for the others."""
        cell = (key, request.timestamp, request.value)
        alone = ReplicaWrite(number, found.version, request.table, cell)
        log = found.log
        if log is None:
            return [Send(n, alone) for n in found.targets]
        table = self._node.view.logs[request.table]
        if self._node.has(Defect.log_rows_are_sent_apart):
            rest = ReplicaWrite(log.number, found.version, table, log.cell)
            apart = (Send(n, rest) for n in log.targets)
            return [*(Send(n, alone) for n in found.targets), *apart]
        both = replace(alone, beside=((table, log.cell),))
        rest = ReplicaWrite(log.number, found.version, table, log.cell)
        return [
            *(Send(n, both if n in log.targets else alone) for n in found.targets),
            *(Send(n, rest) for n in log.targets if n not in found.targets),
        ]

    def _log(
        self, request: ClientWrite, key: bytes, chosen: Chosen, image: Image | None
    ) -> _Log | Refused:
        """The log row of a write, and who stores it: the replicas of its stream."""
        node, view, table = self._node, self._node.view, request.table
        window, token = Window(1000 * node.timing.leeway, 1000 * node.timing.horizon), token_in(key)
        if node.has(Defect.log_window_is_open):
            window = Window(1 << 62, 1 << 62)
        streams = node.catalog.streams_of(table)
        if node.loaded_from and table not in view.tablets:
            streams = streams.since(node.loaded_from)
        stream = streams.stream(request.timestamp, token, node.around.now(), window)
        if isinstance(stream, Refused):
            return stream
        if node.has(Defect.log_takes_the_stream_of_the_key):
            ranges = streams.generations[-1][1].ranges
            stream = ranges[token % len(ranges)].streams[0]
        if node.has(Defect.log_takes_the_newest_generation):
            stream = streams.newest(token)
        change = Change(stream.to_bytes(), request.timestamp, request.key, request.value, image)
        stored, value = stored_change(change)
        if not node.has(Defect.log_goes_with_the_row):
            chosen = view.replicas(view.logs[table], stream.token)
        factor = view.factor(table, chosen, writes=True)
        targets, needed = self._plan(chosen, request.level, factor, True)
        stay = self._staying(chosen, request.level, factor)
        if node.has(Defect.log_skips_pending):
            targets = tuple(n for n in targets if n not in chosen.pending)
            needed -= len(chosen.pending)
        cell = (stored, request.timestamp, value)
        return _Log(node.number(), cell, targets, needed, stay)

    def _refusal(self, view: View, table: str) -> str:
        own = view.nodes.get(self._node.name)
        if not self._node.ready or own is None or not own.state.owns:
            return f"{self._node.name} does not serve clients now"
        return "" if table in view.tables else no_table(table)

    def _may_write(self, view: View, request: ClientWrite | ClientRead) -> str:
        if isinstance(request, ClientWrite) and request.table in view.logs.values():
            return f"{name_of(request.table)} is a log{NOT_FOR_CLIENTS}"
        if isinstance(request, ClientWrite) and request.table in view.views:
            return f"{name_of(request.table)} is a view{NOT_FOR_CLIENTS}"
        return ""

    def _plan(
        self, chosen: Chosen, level: Level, factor: int, writes: bool
    ) -> tuple[tuple[str, ...], int]:
        """Whom to ask, and how many of them must answer."""
        node = self._node
        reads, pending = chosen.reads, chosen.pending
        if node.has(Defect.reads_use_the_new_ring_early) and pending:
            reads = tuple(n for n in chosen.writes if n not in reads[:1])
        natural = len(chosen.writes) - len(pending) if writes else len(reads)
        needed = {Level.one: 1, Level.quorum: factor // 2 + 1, Level.all: natural}[level]
        if not writes:
            return reads, needed
        if node.has(Defect.writes_use_the_new_ring_early) and pending:
            return (*reads[1:], *pending), needed
        if node.has(Defect.one_answer_less):
            return chosen.writes, max(1, needed + len(pending) - 1)
        if node.has(Defect.writes_skip_pending):
            return tuple(n for n in chosen.writes if n not in pending), needed
        if node.has(Defect.pending_is_not_awaited):
            return chosen.writes, needed
        return chosen.writes, needed + len(pending)

    def _factor(self, table: str, chosen: Chosen, writes: bool) -> int:
        view = self._node.view
        if self._node.has(Defect.quorums_are_of_the_table):
            return view.tables[table]
        return view.factor(table, chosen, writes=writes)

    def _too_few(self, found: _Open, parts: Parts, *, of_log: bool = False) -> Unavailable | None:
        if self._node.has(Defect.pending_replicas_are_alive):
            own, *rest = parts
            stored = tuple(n for n in own[0] if n not in found.chosen.pending)
            parts = ((stored, own[1] - len(own[0]) + len(stored)), *rest)
        return too_few(self._node, found.request.level, parts, of_log=of_log)

    def _staying(self, chosen: Chosen, level: Level, factor: int) -> Parts:
        """Where fewer replicas are left than there were, a quorum of these must have the row, too."""
        forgets = self._node.has(Defect.leaving_replicas_suffice)
        if not chosen.fewer or level is Level.one or forgets:
            return ()
        return ((chosen.fewer, min(factor // 2 + 1, len(chosen.fewer))),)

    def reply(self, sender: str, reply: ReplicaReply) -> list[Effect]:
        """Count what a replica answers."""
        if self._images.owns(reply.number):
            return self._images.reply(sender, reply)
        number = self._of_log.get(reply.number, reply.number)
        found = self._open.get(number)
        asked = found is not None and any(sender in targets for targets, _ in found.parts)
        if found is None or not asked or sender in found.answers:
            return []
        if (table := found.request.table) not in self._node.view.tables:
            return self._close(number, _failed_by(found, no_table(table)))
        if reply.outcome is not Outcome.done:
            found.refused.add(sender)
            if found.hopeless:
                return self._close(number, _failed_by(found, reply.outcome.name))
            return []
        found.answers[sender] = reply
        if not found.done:
            return []
        if isinstance(found.request, ClientWrite):
            done = ClientReply(found.request.number, True, timestamp=found.request.timestamp)
            return self._close(number, Send(found.client, done))
        if found.repair is not None:
            return self._close(number, self._answer(found, found.repair))
        return self._returned(number, found)

    def _returned(self, number: int, found: _Open) -> list[Effect]:
        """Enough replicas have answered a read."""
        newest = max(found.answers.values(), key=lambda r: r.timestamp)
        assert isinstance(found.request, ClientRead)
        key = stored_key(found.request.key)
        cell = (key, newest.timestamp, newest.value)
        agree = all(r.timestamp == newest.timestamp for r in found.answers.values())
        level = found.request.level
        forgets = self._node.has(Defect.agreeing_reads_leave_pending_out)
        agree = agree and (forgets or not found.chosen.pending)
        if level is Level.one or agree or newest.timestamp == 0:
            return self._close(number, self._answer(found, cell))
        del self._open[number]
        factor = self._factor(found.request.table, found.chosen, True)
        targets, needed = self._plan(found.chosen, level, factor, True)
        again = self._node.number()
        repaired = _Open(
            found.client, found.request, found.version, found.chosen, targets, needed, repair=cell
        )
        repaired.stay = self._staying(found.chosen, level, factor)
        if short := self._too_few(repaired, repaired.parts):
            return [_unavailable(found.client, found.request.number, short)]
        self._open[again] = repaired
        message = ReplicaWrite(again, found.version, found.request.table, cell, late=True)
        wake = Wake(self._node.timing.request, ("request", again))
        return [*(Send(n, message) for n in targets), wake]

    def _answer(self, found: _Open, cell: Cell) -> Send:
        return Send(found.client, ClientReply(found.request.number, True, cell[2], cell[1]))

    def give_up(self, number: int) -> list[Effect]:
        """The time of a request is over."""
        if self._images.owns(number):
            return self._images.give_up(number)
        if self._recency.owns(number):
            return self._recency.give_up(number)
        found = self._open.get(number)
        if found is None:
            return []
        if isinstance(found.request, ClientWrite) and self._node.has(Defect.timeouts_acknowledge):
            return self._close(number, Send(found.client, ClientReply(found.request.number, True)))
        return self._close(number, _failed_by(found, "timed out"))

    def _close(self, number: int, answer: Send) -> list[Effect]:
        found = self._open.pop(number)
        if found.log is not None:
            del self._of_log[found.log.number]
        return [answer]

    @property
    def waiting(self) -> int:
        """How many clients wait for an answer."""
        return len(self._open) + len(self._images.versions) + self._recency.waiting

    @property
    def versions(self) -> tuple[int, ...]:
        """Under which versions the requests that are going on began."""
        return (*(r.version for r in self._open.values()), *self._images.versions)

    def drained(self, version: int) -> bool:
        """Whether no request that began under an older version is going on."""
        return all(v >= version for v in self.versions)

    def writes_drained(self, version: int) -> bool:
        """The same of writes alone."""
        writes = [r for r in self._open.values() if isinstance(r.request, ClientWrite)]
        return all(r.version >= version for r in writes)


def _failed(client: str, number: int, reason: str) -> Send:
    return Send(client, ClientReply(number, False, reason=reason))


def _unavailable(client: str, number: int, short: Unavailable) -> Send:
    return Send(client, ClientReply(number, False, reason=str(short), unavailable=short))


def _failed_by(found: _Open, reason: str) -> Send:
    return _failed(found.client, found.request.number, reason)
