"""Watches tables that are to be split or merged: what holds each tablet up, and where the new ones lie.

An entity is a tablet that is to be split, or the first of a pair that is to be merged, since one decision.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.node.messages import Order
from stagewright.impl.node.messages.tables import Resize
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.recording.recording import Recording
from stagewright.impl.tablets.resizing import pairs
from stagewright.machines.recorded.resizes import Way
from stagewright.machines.scylladb.topology.topology_states import TransitionState

KIND = "resizes"


@dataclass
class _Followed:
    """What was recorded of one tablet, or of a pair, since the decision."""

    entity: str
    hosts: tuple[frozenset[str], ...]  # of the tablet, or of each of the two
    awaited: frozenset[str]
    moving: bool


class ResizeWatcher:
    """Follows each decision until it is carried out, or withdrawn."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._take = recording.take
        self._decided: Counter[str] = Counter()  # how often, by table
        self._ready: dict[str, set[str]] = {}  # nodes, by table that is to be split
        self._followed: dict[str, list[_Followed]] = {}
        self._began_at = 0  # the finalization
        self._drained_at = -1

    def passed_barrier(self) -> None:
        """A barrier of the topology has passed."""
        self._drained_at = self._recording.now()

    def committed(self, before: View, after: View) -> None:
        """A commit may decide, prepare, carry out or withdraw resizes."""
        finalizes = TransitionState.tablet_resize_finalization
        if after.transition_state is finalizes and before.transition_state is not finalizes:
            self._began_at = self._recording.now()
        for table in sorted({*before.resizes, *after.resizes}):
            was, now = before.resizes.get(table), after.resizes.get(table)
            if was is not None and len(before.tablets[table]) != len(after.tablets.get(table, ())):
                self._end(table, after)
            elif was is not None and was != now:
                for one in self._followed.pop(table):
                    self._take(KIND, one.entity, "", "withdraw")
            elif was is not None:
                self._follow(table, after)
            if now is not None and table not in self._followed:
                self._begin(table, after)

    def is_ready(self, node: DatabaseNode, order: Order) -> None:
        """A node says that it is ready for a split."""
        name, ready = node.name, self._ready.get(order.table)
        if ready is None or name in ready:
            return
        ready.add(name)
        knows = node.context.view.resizes.get(order.table) == Resize.split.value
        for one in self._followed.get(order.table, ()):  # the table may have been dropped
            if name in one.awaited:
                one.awaited -= {name}
                self._take(KIND, one.entity, name, "prepare", true=knows)

    # -- one table ---------------------------------------------------------------------------------------

    def _begin(self, table: str, view: View) -> None:
        self._decided[table] += 1
        way = Way[view.resizes[table]]
        self._ready.pop(table, None)
        if way is Way.split:
            self._ready[table] = set()
        self._followed[table] = []
        for rows in self._groups(table, view):
            entity = f"{rows[0].name} resized for the {self._decided[table]}. time"
            awaited, moving = self._awaited(table, view, rows), _is_busy(rows)
            self._followed[table].append(_Followed(entity, _hosts(rows), awaited, moving))
            self._recording.start(KIND, entity, "", way=way, awaited=len(awaited), moving=moving)

    def _follow(self, table: str, view: View) -> None:
        for one, rows in zip(self._followed[table], self._groups(table, view), strict=True):
            awaited, moving = self._awaited(table, view, rows), _is_busy(rows)
            gone = frozenset(n for hosts in one.hosts for n in hosts).difference(*_hosts(rows))
            for name in sorted(one.awaited - awaited):
                if name in gone or table in self._ready:
                    self._take(KIND, one.entity, name, "release")
                else:
                    self._take(KIND, one.entity, name, "prepare", true=True)
            for name in sorted(awaited - one.awaited):
                self._take(KIND, one.entity, name, "hold_up")
            if moving is not one.moving:
                self._take(KIND, one.entity, "", "start_move" if moving else "end_move")
            one.hosts, one.awaited, one.moving = _hosts(rows), awaited, moving

    def _end(self, table: str, view: View) -> None:
        """The table has other tablets, or none."""
        rows, splits = view.tablets.get(table, ()), table in self._ready
        drained = self._drained_at >= self._began_at
        for number, one in enumerate(self._followed.pop(table)):
            made = rows[2 * number : 2 * number + 2] if splits else rows[number : number + 1]
            if not made:
                self._take(KIND, one.entity, "", "withdraw")
                continue
            kept = {*_hosts(made)} == {one.hosts[0]}
            self._take(KIND, one.entity, "", "finish", drained=drained, kept=kept)

    def _groups(self, table: str, view: View) -> Iterator[tuple[TabletRow, ...]]:
        rows = view.tablets[table]
        return ((row,) for row in rows) if table in self._ready else iter(pairs(rows))

    def _awaited(self, table: str, view: View, rows: tuple[TabletRow, ...]) -> frozenset[str]:
        """The replicas that hold it up: they are not ready, or have none of the other tablet beside them."""
        hosts = _hosts(rows)
        if table in self._ready:
            return hosts[0] - self._ready[table] - view.given_up
        return hosts[0] ^ hosts[1]


def _hosts(rows: tuple[TabletRow, ...]) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(r.host for r in row.tablet.replicas) for row in rows)


def _is_busy(rows: tuple[TabletRow, ...]) -> bool:
    """Whether a tablet moves, or is to be repaired or moved: that is of a tablet which a resize would end."""
    return any(row.tablet.moves or row.repair or row.wish for row in rows)
