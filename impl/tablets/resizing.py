"""Tables whose tablets are split in two, or merged two and two: decided, prepared at the replicas, and finalised at once.

Rows are stored by token, so that a split has nothing to rewrite: a node is ready for it once it has learned of it. To be
merged, the tablets of a pair must lie on the same nodes: the replicas of the second move to those of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stagewright.impl.catalog.columns import TABLES
from stagewright.impl.catalog.stream_rows import STREAMS, stream_set
from stagewright.impl.catalog.tablet_rows import TabletRow, rows_of
from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Mutation
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import Work
from stagewright.impl.node.messages.tables import Resize
from stagewright.impl.node.port import Effect
from stagewright.impl.ring.tablets import Tablet, TabletMap, TabletReplica, together
from stagewright.impl.tablets.balancer import TabletName
from stagewright.impl.tablets.replication import is_altered, staying
from stagewright.impl.topology.orders import Key, Orders
from stagewright.impl.topology.planning import Board
from stagewright.impl.views.building.moves import resized
from stagewright.spec.verdict import Step


@dataclass(frozen=True)
class Colocation:
    """A replica of the second tablet of a pair moves to a node of the first."""

    tablet: TabletName
    leaving: TabletReplica
    pending: TabletReplica

    def after(self, replicas: tuple[TabletReplica, ...]) -> tuple[TabletReplica, ...]:
        """The replicas once it has moved."""
        return tuple(self.pending if r == self.leaving else r for r in replicas)

    def __str__(self) -> str:
        path = (
            f"{self.leaving.host}:{self.leaving.shard} to {self.pending.host}:{self.pending.shard}"
        )
        return (
            f"migration of {self.tablet} from {path}: it is to be merged with the tablet before it"
        )


def decided(view: View, resize: Resize) -> tuple[str, ...]:
    """The tables of which this is decided."""
    return tuple(sorted(t for t, kind in view.resizes.items() if kind == resize.value))


def colocations(view: View, busy: Iterable[TabletName]) -> Iterator[Colocation]:
    """The moves that bring pairs together, one at a time of each tablet; nothing of a pair that moves or is busy."""
    busy, stay = frozenset(busy), {m.name for m in staying(view)}
    for table in decided(view, Resize.merge):
        for left, right in pairs(view.tablets[table]):
            names = {TabletName(r.table, r.number) for r in (left, right)}
            if left.tablet.moves or right.tablet.moves or names & busy:
                continue
            hosts = {r.host for r in left.tablet.replicas}
            there = {r.host for r in right.tablet.replicas}
            gone = [r for r in right.tablet.replicas if r.host not in hosts]
            come = [r for r in left.tablet.replicas if r.host in stay - there]
            if gone and come:
                yield Colocation(TabletName(table, right.number), gone[0], come[0])


def pairs(rows: tuple[TabletRow, ...]) -> Iterator[tuple[TabletRow, TabletRow]]:
    """The tablets that are merged with each other."""
    return zip(rows[::2], rows[1::2], strict=True)


def is_colocated(rows: tuple[TabletRow, ...]) -> bool:
    """Whether each pair lies on the same nodes."""
    return all(
        {r.host for r in left.tablet.replicas} == {r.host for r in right.tablet.replicas}
        for left, right in pairs(rows)
    )


def finalised(node: Context, tables: Iterable[str]) -> Iterator[Mutation]:
    """The rows of tables with their new tablets, instead of those that they had."""
    view = node.view
    for table in tables:
        rows, layout = view.tablets[table], resized_map(node, table)
        made = [*rows_of(table, layout)]
        kept = {m.key for m in made}
        yield from (Mutation("tablets", row.key, None) for row in rows if row.key not in kept)
        yield from made
        columns = {"tablets": len(layout.tablets), "resize_type": None}
        yield Mutation(TABLES, (table,), columns)
        if table in view.logs and not node.has(Defect.streams_outlive_their_tablets):
            yield streams_from(node, table, layout, node.time(2 * node.timing.ring_delay))


def streams_from(node: Context, table: str, tablets: TabletMap, time: str) -> Mutation:
    """The streams of a table's log for its new tablets, from a time on (as a column has it)."""
    ends = (tablets.last_token(number) for number in range(len(tablets.tablets)))
    return stream_set(table, ends, time, node.catalog.tables[STREAMS])


def resized_map(node: Context, table: str) -> TabletMap:
    """The tablets that a table has once it is resized as was decided."""
    rows, kind = node.view.tablets[table], node.view.resizes[table]
    if kind == Resize.split.value:
        whole = (Tablet(r.tablet.replicas, reordered=r.tablet.reordered) for r in rows)
        layout = [half for half in whole for _ in range(2)]
        if node.has(Defect.halves_of_tablets_are_mixed_up):
            layout = [*layout[::2], *layout[::2]]
    else:
        layout = [together(left.tablet, right.tablet) for left, right in pairs(rows)]
    return TabletMap(tuple(layout))


def is_at_rest(view: View, table: str) -> bool:
    """Whether nothing else is done to the tablets of a table, nor asked for."""
    busy = any(row.tablet.moves or row.repair or row.wish for row in view.tablets[table])
    return not busy and not is_altered(view, table)


class Preparation:
    """What the coordinator of a term knows of tables that are to be resized."""

    def __init__(self, node: Context, orders: Orders) -> None:
        self._node = node
        self._orders = orders
        self._asked: dict[str, Key] = {}  # for what last, by table

    @property
    def tables(self) -> tuple[str, ...]:
        """Those that are prepared: every replica is ready for the split, or the pairs lie together."""
        view = self._node.view
        together = (t for t in decided(view, Resize.merge) if self._is_together(view, t))
        split = (t for t in decided(view, Resize.split) if self._are_ready(t))
        careless = self._node.has(Defect.resizes_do_not_await_requests)
        return tuple(t for t in (*split, *together) if careless or is_at_rest(view, t))

    @property
    def settled(self) -> bool:
        """Whether it is known what is to be done: some tables are prepared, or all that were have been dropped."""
        view = self._node.view
        waits = any(is_at_rest(view, t) for t in decided(view, Resize.split))
        return bool(self.tables) or not waits

    def tasks(self, board: Board, step: Step) -> Iterator[Mutation]:
        """How view building tasks follow the tablets, in the command of the step that resizes tables."""
        for table in self.tables if step.action == "finish_resize" else ():
            yield from resized(board, self._node, table, resized_map(self._node, table))

    def _is_together(self, view: View, table: str) -> bool:
        return is_colocated(view.tablets[table]) or self._node.has(Defect.apart_tablets_are_merged)

    def _are_ready(self, table: str) -> bool:
        job = self._orders.jobs.get(self._key(table))
        if job is not None and job.over and job.problems:
            self._orders.forget(job)
        unasked = self._node.has(Defect.splits_are_not_prepared)
        return unasked or (job is not None and job.succeeded)

    def _key(self, table: str) -> Key:
        """Of what is asked of these nodes for this decision: once a tablet has moved, others are to be ready."""
        number: int = self._node.catalog.tables[TABLES][table,]["resize_seq_number"]
        return "resize", f"{table} on {', '.join(self._hosts(table))}", number

    def _hosts(self, table: str) -> tuple[str, ...]:
        view = self._node.view
        hosts = {h for row in view.tablets[table] for h in row.holders} - view.given_up
        return tuple(sorted(hosts))

    def go_on(self) -> list[Effect]:
        """Ask the nodes with tablets that are to be split whether they are ready, unless that goes on."""
        effects = list[Effect]()
        for table in decided(self._node.view, Resize.split):
            key = self._key(table)
            if key in self._orders.jobs:
                continue
            self._orders.jobs.pop(self._asked.get(table, key), None)
            self._asked[table] = key
            effects += self._orders.begin(key, Work.prepare_split, self._hosts(table), (table, -1))
        return effects
