"""Watches the logs of changes: where nodes send log rows, what replicas store, and what expires.

What is right is looked up in the tables as group0 has them, not as the node that acts knows them.
"""

from __future__ import annotations

from collections.abc import Callable

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.cdc.metadata import NO_GENERATION
from stagewright.impl.cdc.rows import SUFFIX, change_of, log_of, timestamp_in
from stagewright.impl.node.keys import stored_key, token_in
from stagewright.impl.node.messages import (
    Cell,
    ClientReply,
    ClientWrite,
    Message,
    Outcome,
    ReplicaReply,
    ReplicaWrite,
)
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.node.port import Drop, Effect, Send, Store
from stagewright.impl.recording.recording import Recording
from stagewright.impl.simulator.database.checks.changes.sets import SetWatcher
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.topology.topology_states import Ring

_STAGE = {Ring.old: Stage.none, Ring.both: Stage.write_both_read_old, Ring.new: Stage.use_new}
_MICROSECONDS = 1_000
TOKEN = 8  # bytes of a stored key; the rows of token ranges are dropped by these alone
Log = tuple[str, Cell]
MayPrecede = Callable[[bytes, int, bytes | None], bool]


class ChangeWatcher:
    """What is recorded of all logs of a run.

    `catalog` is what group0's log comes to; `may_precede` says what the row of a write may have been before it;
    `leeway` (milliseconds) is that of timestamps.
    """

    def __init__(
        self,
        recording: Recording,
        catalog: Callable[[], Catalog],
        may_precede: MayPrecede,
        leeway: int,
    ) -> None:
        self._may_precede = may_precede
        self._recording = recording
        self._take = recording.take
        self._catalog = catalog
        self._of_clients: dict[tuple[str, int], str] = {}  # entities, by node and client's number
        self._of_messages: dict[tuple[int, str], str] = {}  # by a message's number and who got it
        self._both: dict[
            tuple[int, str], str
        ] = {}  # those with rows whose log rows are for them, too
        self._logs: dict[str, list[tuple[str, dict[str, bool]]]] = {}  # steps, until acknowledged
        self._answered: set[tuple[str, str]] = set()
        self.sets = SetWatcher(recording, catalog, leeway)

    # -- nodes ---------------------------------------------------------------------------------------------

    def did(self, node: DatabaseNode, effect: Effect, cause: Message | None) -> None:
        """An effect was carried out."""
        match effect:
            case Send(to, ReplicaWrite() as message) if isinstance(cause, ClientWrite):
                self._sent_row(node, to, message, cause)
                for table, cell in _log_rows(message, cause):
                    self._sent(node, to, message, cause, table, cell)
            case Send(_, ClientReply(reason=reason)) if reason == NO_GENERATION and isinstance(
                cause, ClientWrite
            ):
                # It is one of those that were not held until group0 was read.
                self.sets.lacks(node, node.context.view.named(cause.table), cause.timestamp)
            case Send(_, ClientReply(number, succeeded)):
                entity = self._of_clients.pop((node.name, number), None)
                if entity is not None:
                    what = "acknowledge" if succeeded else "fail"
                    self._take("writes", entity, node.name, what)
                    for step, arguments in self._logs.pop(entity, ()) if succeeded else ():
                        self._take("changes", entity, node.name, step, **arguments)
            case Drop(log, low, high) if len(low) > TOKEN and high is not None:
                before, now = timestamp_in(high), node.context.around.now()
                kept = node.context.view.kept.get(log.removesuffix(SUFFIX), 0)
                over = before <= now - _MICROSECONDS * kept
                self._take("streams", log, node.name, "expire", over=over)
            case Store() if isinstance(cause, ReplicaWrite):
                self._stored(node, effect, cause)
            case _:
                pass

    def heard(self, node: DatabaseNode, sender: str, message: Message) -> None:
        """A node is about to handle a message."""
        if not isinstance(message, ReplicaReply) or message.outcome is not Outcome.done:
            return
        entity = self._of_messages.get((message.number, sender))
        if entity is not None and (entity, sender) not in self._answered:
            self._answered.add((entity, sender))
            self._take("writes", entity, node.name, "answer")

    def _sent(
        self,
        node: DatabaseNode,
        to: str,
        message: ReplicaWrite,
        cause: ClientWrite,
        table: str,
        cell: Cell,
    ) -> None:
        view = node.context.view
        chosen = view.replicas(table, token_in(cell[0]))
        entity = _entity(node, cause)
        if self._of_clients.get((node.name, cause.number)) != entity:
            self._of_clients[node.name, cause.number] = entity
            tablet = view.tablet_with(table, token_in(cell[0]))
            ring = _STAGE[view.transition_state.writes]
            self._recording.start(
                "writes",
                entity,
                node.name,
                stage=ring if tablet is None else tablet.tablet.stage,
                staying=len(chosen.writes) - len(chosen.pending),
                leaving=0,
                pending=len(chosen.pending),
                given_up=0,
                quorum=True,
            )
            self._logged(node, entity, cause, cell)
        if to in chosen.writes and (message.number, to) not in self._of_messages:
            self._of_messages[message.number, to] = entity
            self._take("writes", entity, node.name, "send")

    def _sent_row(
        self, node: DatabaseNode, to: str, message: ReplicaWrite, cause: ClientWrite
    ) -> None:
        """A row sets out to a replica that may be one of its log row, too."""
        view, table = node.context.view, message.table
        if table not in view.logs:
            return
        streams = node.context.catalog.streams_of(table)
        place = streams.operating(cause.timestamp)
        if place is not None:
            stream = streams.generations[place][1].stream(token_in(message.cell[0]))
            if to in view.replicas(view.logs[table], stream.token).writes:
                self._both[message.number, to] = _entity(node, cause)

    def _logged(self, node: DatabaseNode, entity: str, cause: ClientWrite, cell: Cell) -> None:
        if node.context.view.named(cause.table) not in self._catalog().view.logs:
            return  # it was dropped, as the node has not learned yet
        change = change_of(cell[0], cell[2] or b"")
        streams = self._catalog().streams_of(node.context.view.named(cause.table))
        token, timing = token_in(stored_key(cause.key)), node.context.timing
        place = streams.operating(change.timestamp)
        sets = [d for _, d in streams.generations]
        mapped = any(d.stream(token).to_bytes() == change.stream for d in sets)
        operating = sets[place : place + 1] if place is not None else []
        operates = any(
            change.stream in {s.to_bytes() for r in d.ranges for s in r.streams} for d in operating
        )
        now, stamp = node.context.around.now(), cause.timestamp
        timely = now - _MICROSECONDS * timing.horizon <= stamp
        timely &= stamp < now + _MICROSECONDS * timing.leeway
        logged = {"operates": operates, "mapped": mapped, "timely": timely}
        self._logs[entity] = [("log", logged)]
        if change.before is not None and change.before.known:
            newest = self._may_precede(cause.key, cause.timestamp, change.before.value)
            self._logs[entity].append(("image", {"newest": newest}))

    def _stored(self, node: DatabaseNode, effect: Store, cause: ReplicaWrite) -> None:
        """A replica has written what came with one message: if both rows are for it, both at once."""
        entity = self._both.get((cause.number, node.name))
        if entity is not None:
            families = {put.family for put in effect.batch}
            together = {cause.table, log_of(cause.table)} <= families
            self._take("changes", entity, node.name, "store", together=together)


def _entity(node: DatabaseNode, write: ClientWrite) -> str:
    return f"log{write.number}@{node.name}"


def _log_rows(message: ReplicaWrite, cause: ClientWrite) -> list[Log]:
    """The log rows in a message."""
    log = log_of(cause.table)
    own = [(message.table, message.cell)] if message.table == log else []
    return [*own, *((t, c) for t, c in message.beside if t == log)]
