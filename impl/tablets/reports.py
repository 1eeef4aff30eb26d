"""What a node says of tablets to those who watch: where they lie, what moves, and why it does."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from stagewright.impl.catalog.names import name_of
from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.group0 import Entry, Learned, MachineStep
from stagewright.impl.node.messages import TabletsReply, TabletStatus
from stagewright.impl.ring.tablets import TabletReplica
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration

KEPT = 40  # moves


class MoveHistory:
    """The last moves of tablets that began, as commands say them."""

    def __init__(self) -> None:
        self._moves: deque[str] = deque(maxlen=KEPT)

    def learned(self, item: Learned) -> None:
        """Something was committed; a snapshot does not say what led to it."""
        if isinstance(item, Entry):
            self._moves.extend(moves_of(item.command.description, item.command.steps))

    def report(self, number: int, view: View) -> TabletsReply:
        """How the tablets lie."""
        return TabletsReply(number, statuses(view), tuple(self._moves))


def statuses(view: View) -> tuple[TabletStatus, ...]:
    """All tablets, table by table."""
    return tuple(
        _status(row, view.tables[table])
        for table in sorted(view.tablets)
        for row in view.tablets[table]
    )


def held_up(view: View, name: str, down: frozenset[str]) -> str:
    """Why a node that is asked to leave is still there, with `down` as who answers sees it; "": no tablet holds it up."""
    rows = (row for tablets in view.tablets.values() for row in tablets)
    here = sum(any(r.host == name for r in row.tablet.replicas) for row in rows)
    if not here:
        return ""
    left = f"{here} {'tablets are' if here > 1 else 'tablet is'} still on it"
    absent = sorted((down & {*view.participants}) - view.given_up)
    if not absent:
        return left
    return f"{left}, which can move when {' and '.join(absent)} {'are' if len(absent) > 1 else 'is'} up again"


def moves_of(description: str, steps: Iterable[MachineStep]) -> Iterator[str]:
    """The moves that a command begins, each with its reason."""
    machine = TabletMigration.__name__
    if any(s.machine == machine and s.action == "start" for s in steps):
        parts = description.split("; ")
        yield from (p for p in parts if " from " in p or p.startswith("a replica of "))


def _status(row: TabletRow, replicas: int) -> TabletStatus:
    tablet = row.tablet
    asked = ["repair"] if row.repair else []
    asked += [f"rf {replicas}"] if len(tablet.replicas) != replicas else []
    if row.wish is not None:
        leaving, pending = row.wish
        asked.append(f"move from {leaving.host}:{leaving.shard} to {pending.host}:{pending.shard}")
    return TabletStatus(
        name_of(row.table),
        row.number,
        _pairs(tablet.replicas),
        _pairs(tablet.next or ()),
        tablet.stage.name if tablet.moves else "",
        "" if row.kind is None else row.kind.name,
        ", ".join(asked),
    )


def _pairs(replicas: Iterable[TabletReplica]) -> tuple[tuple[str, int], ...]:
    return tuple((r.host, r.shard) for r in replicas)
