"""Watches the logs of changes: where nodes send log rows, what replicas store, which sets of streams begin and end.

What is right is looked up in the tables as group0 has them, not as the node that acts knows them.
"""

from __future__ import annotations

from collections.abc import Callable

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.columns import ALL, TOPOLOGY
from stagewright.impl.catalog.stream_rows import STREAMS
from stagewright.impl.cdc.rows import change_of, log_of
from stagewright.impl.group0 import Entry
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
from stagewright.impl.node.port import Effect, Send, Store
from stagewright.impl.recording.recording import Recording
from stagewright.impl.simulator.database.hosts import EPOCH
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.topology.topology_states import Ring

GENERATIONS = "generations"  # of the token ring
_STAGE = {Ring.old: Stage.none, Ring.both: Stage.write_both_read_old, Ring.new: Stage.use_new}
_MICROSECONDS = 1_000
Log = tuple[str, Cell]
MayPrecede = Callable[[bytes, int, bytes | None], bool]


class ChangeWatcher:
    """What is recorded of all logs of a run.

    `catalog` is what group0's log comes to; `may_precede` says what the row of a write may have been before it.
    """

    def __init__(
        self, recording: Recording, catalog: Callable[[], Catalog], may_precede: MayPrecede
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
        self._sets: dict[str, tuple[int, ...]] = {}  # when the sets of each begin

    # -- nodes ---------------------------------------------------------------------------------------------

    def did(self, node: DatabaseNode, effect: Effect, cause: Message | None) -> None:
        """An effect was carried out."""
        match effect:
            case Send(to, ReplicaWrite() as message) if isinstance(cause, ClientWrite):
                self._sent_row(node, to, message, cause)
                for table, cell in _log_rows(message, cause):
                    self._sent(node, to, message, cause, table, cell)
            case Send(_, ClientReply(number, succeeded)):
                entity = self._of_clients.pop((node.name, number), None)
                if entity is not None:
                    what = "acknowledge" if succeeded else "fail"
                    self._take("writes", entity, node.name, what)
                    for step, arguments in self._logs.pop(entity, ()) if succeeded else ():
                        self._take("changes", entity, node.name, step, **arguments)
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

    # -- what is committed -----------------------------------------------------------------------------------

    def committed(self, entry: Entry, now: int) -> None:
        """An entry is committed: sets of streams may begin, or be forgotten; tablets may be others."""
        catalog = self._catalog()
        if not catalog.begun or not catalog.view.logs:
            return
        tablets = catalog.view.tablets
        for table in catalog.view.logs:
            name = table if table in tablets else GENERATIONS
            before, found = self._sets.get(name, ()), catalog.streams_of(table).generations
            starts = tuple(start for start, _ in found)
            if starts != before:
                self._sets[name] = starts
                self._changed(name, table, before, starts, now)
            resized = [m for m in entry.command.mutations if m.key == (table,) and m.columns]
            if table in tablets and before and any("tablets" in (m.columns or {}) for m in resized):
                added = any(m.table == STREAMS for m in entry.command.mutations)
                self._take("streams", name, "", "change_places", followed=added)

    def _changed(
        self, name: str, table: str, before: tuple[int, ...], after: tuple[int, ...], now: int
    ) -> None:
        present = (EPOCH + now) * _MICROSECONDS
        for start in sorted({*after} - {*before}):
            self._take(
                "streams",
                name,
                "",
                "begin_set",
                later=all(start > b for b in before),
                ahead=start > present,
                fitting=self._fits(table),
            )

    def _fits(self, table: str) -> bool:
        """Whether each tablet, or vnode to come, has its streams in the newest set."""
        catalog = self._catalog()
        _, newest = catalog.streams_of(table).generations[-1]
        rows = catalog.view.tablets.get(table)
        if rows is not None:
            return [r.end for r in newest.ranges] == [row.range[1] for row in rows]
        members = catalog.view.nodes.values()
        ends = {t: m.shards for m in members if m.state.will_own for t in m.tokens}
        static = catalog.tables[TOPOLOGY][ALL]
        if static["new_cdc_generation_data_uuid"] is None and {*newest.ends} != {*ends}:
            return {*newest.ends} >= {*ends}  # of a node that joins: its tokens come with it
        return all(len(r.streams) == ends.get(r.end, len(r.streams)) for r in newest.ranges)


def _entity(node: DatabaseNode, write: ClientWrite) -> str:
    return f"log{write.number}@{node.name}"


def _log_rows(message: ReplicaWrite, cause: ClientWrite) -> list[Log]:
    """The log rows in a message."""
    log = log_of(cause.table)
    own = [(message.table, message.cell)] if message.table == log else []
    return [*own, *((t, c) for t, c in message.beside if t == log)]
