"""The requests of clients, at the node that coordinates them.

A request takes its replicas from the topology that the node knows when it begins, and is marked with that
version: a barrier waits for it, and replicas refuse it once the fence is past it. What a read returns is as
good as written: replicas that may lack it, pending ones above all, get it before the client does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stagewright.impl.catalog.view import View
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
)
from stagewright.impl.node.port import Effect, Send, Wake
from stagewright.impl.ring.vnodes import Chosen


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
    refused: int = 0
    repair: Cell | None = None


class Requests:
    """The open requests of one node."""

    def __init__(self, node: Context) -> None:
        self._node = node
        self._open: dict[int, _Open] = {}

    def begin(self, client: str, request: ClientWrite | ClientRead) -> list[Effect]:
        """Send a client's request to the replicas."""
        view = self._node.view
        refusal = self._refusal(view, request.table)
        if refusal:
            return [_failed(client, request.number, refusal)]
        key = stored_key(request.key)
        factor = view.tables[request.table]
        chosen = view.replicas(request.table, token_in(key))
        writes = isinstance(request, ClientWrite)
        targets, needed = self._plan(chosen, request.level, factor, writes)
        if len(targets) < needed:
            return [_failed(client, request.number, f"{len(targets)} replicas of {needed}")]
        number = self._node.number()
        self._open[number] = _Open(client, request, view.version, chosen, targets, needed)
        message: ReplicaWrite | ReplicaRead
        if isinstance(request, ClientWrite):
            cell = (key, request.timestamp, request.value)
            message = ReplicaWrite(number, view.version, request.table, cell)
        else:
            message = ReplicaRead(number, view.version, request.table, key)
        wake = Wake(self._node.timing.request, ("request", number))
        return [*(Send(n, message) for n in targets), wake]

    def _refusal(self, view: View, table: str) -> str:
        own = view.nodes.get(self._node.name)
        if not self._node.ready or own is None or not own.state.owns:
            return f"{self._node.name} does not serve clients now"
        return "" if table in view.tables else f"there is no table {table}"

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

    def reply(self, sender: str, reply: ReplicaReply) -> list[Effect]:
        """Count what a replica answers."""
        found = self._open.get(reply.number)
        if found is None or sender not in found.targets or sender in found.answers:
            return []
        if reply.outcome is not Outcome.done:
            found.refused += 1
            if len(found.targets) - found.refused < found.needed:
                return self._close(reply.number, _failed_by(found, reply.outcome.name))
            return []
        found.answers[sender] = reply
        if len(found.answers) < found.needed:
            return []
        if isinstance(found.request, ClientWrite):
            done = ClientReply(found.request.number, True, timestamp=found.request.timestamp)
            return self._close(reply.number, Send(found.client, done))
        if found.repair is not None:
            return self._close(reply.number, self._answer(found, found.repair))
        return self._returned(reply.number, found)

    def _returned(self, number: int, found: _Open) -> list[Effect]:
        """Enough replicas have answered a read."""
        newest = max(found.answers.values(), key=lambda r: r.timestamp)
        assert isinstance(found.request, ClientRead)
        key = stored_key(found.request.key)
        cell = (key, newest.timestamp, newest.value)
        agree = all(r.timestamp == newest.timestamp for r in found.answers.values())
        level = found.request.level
        if level is Level.one or (agree and not found.chosen.pending) or newest.timestamp == 0:
            return self._close(number, self._answer(found, cell))
        del self._open[number]
        view = self._node.view
        factor = view.tables[found.request.table]
        targets, needed = self._plan(found.chosen, level, factor, True)
        again = self._node.number()
        repaired = _Open(
            found.client, found.request, found.version, found.chosen, targets, needed, repair=cell
        )
        self._open[again] = repaired
        message = ReplicaWrite(again, found.version, found.request.table, cell)
        wake = Wake(self._node.timing.request, ("request", again))
        return [*(Send(n, message) for n in targets), wake]

    def _answer(self, found: _Open, cell: Cell) -> Send:
        return Send(found.client, ClientReply(found.request.number, True, cell[2], cell[1]))

    def give_up(self, number: int) -> list[Effect]:
        """The time of a request is over."""
        found = self._open.get(number)
        if found is None:
            return []
        if isinstance(found.request, ClientWrite) and self._node.has(Defect.timeouts_acknowledge):
            return self._close(number, Send(found.client, ClientReply(found.request.number, True)))
        return self._close(number, _failed_by(found, "timed out"))

    def _close(self, number: int, answer: Send) -> list[Effect]:
        del self._open[number]
        return [answer]

    @property
    def waiting(self) -> int:
        """How many clients wait for an answer."""
        return len(self._open)

    def drained(self, version: int) -> bool:
        """Whether no request that began under an older version is going on."""
        return all(r.version >= version for r in self._open.values())

    def writes_drained(self, version: int) -> bool:
        """The same of writes alone."""
        writes = [r for r in self._open.values() if isinstance(r.request, ClientWrite)]
        return all(r.version >= version for r in writes)


def _failed(client: str, number: int, reason: str) -> Send:
    return Send(client, ClientReply(number, False, reason=reason))


def _failed_by(found: _Open, reason: str) -> Send:
    return _failed(found.client, found.request.number, reason)
