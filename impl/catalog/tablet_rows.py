"""Tablets as `system.tablets` has them: rows by table and last token, and the state of a tablet's machine.

Beside upstream's columns a row holds which roles are excluded and whether the migration is unwanted, which upstream
derives from other tables, and whether the replicas have other places than those of a tablet that it was merged from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from stagewright.impl.catalog.memo import Memo
from stagewright.impl.group0 import Mutation
from stagewright.impl.ring.tablets import Tablet, TabletMap, TabletReplica
from stagewright.impl.ring.vnodes import Chosen
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Replicas, Role, Stage

Row = dict[str, Any]
Rows = Mapping[tuple[str, ...], Row]
FIRST = -(1 << 63)
KEPT = ("stage", "kind", "session", "excluded", "unwanted")
"""The variables of a tablet's machine that its row holds."""


@dataclass(frozen=True)
class TabletRow:
    """A tablet of a table, by its number in the map."""

    table: str
    number: int
    range: tuple[int, int]  # (low, high]
    tablet: Tablet
    kind: Kind | None
    session: str
    excluded: frozenset[Role]
    unwanted: bool
    repair: str = ""  # the id of the repair that is asked for
    wish: tuple[TabletReplica, TabletReplica] | None = (
        None  # whence and whither an operator moves it
    )

    @cached_property
    def name(self) -> str:
        """The table and the number."""
        return f"{self.table}:{self.number}"

    @property
    def key(self) -> tuple[str, str]:
        """The row's key."""
        return self.table, str(self.range[1])

    @cached_property
    def chosen(self) -> Chosen:
        """Whom requests ask."""
        return self.tablet.chosen()

    @cached_property
    def hosts(self) -> dict[Role, tuple[str, ...]]:
        """The hosts of each role in the transition."""
        now = [r.host for r in self.tablet.replicas]
        then = now if self.tablet.next is None else [r.host for r in self.tablet.next]
        return {
            Role.leaving: tuple(h for h in now if h not in then),
            Role.pending: tuple(h for h in then if h not in now),
            Role.staying: tuple(h for h in now if h in then),
        }

    @cached_property
    def lost(self) -> frozenset[str]:
        """The hosts whose places others take as they were given up; also if one of them is back meanwhile."""
        rebuilt = self.kind is not None and not self.kind.leaving and bool(self.hosts[Role.pending])
        gone = rebuilt or Role.leaving in self.excluded
        return frozenset(self.hosts[Role.leaving]) if gone else frozenset()

    @cached_property
    def holders(self) -> frozenset[str]:
        """The hosts that have storage for it, or may have."""
        return frozenset(r.host for r in (*self.tablet.replicas, *(self.tablet.next or ())))

    def state(self) -> dict[str, Any]:
        """The committed variables of its machine."""
        return {
            "stage": self.tablet.stage,
            "kind": self.kind,
            "session": bool(self.session),
            "excluded": self.excluded,
            "unwanted": self.unwanted,
        }


def rows_of(table: str, layout: TabletMap) -> Iterable[Mutation]:
    """The rows of a new table."""
    for number, tablet in enumerate(layout.tablets):
        columns: Row = {
            "replicas": _pairs(tablet.replicas),
            "reordered": tablet.reordered,
            "new_replicas": None,
            "stage": None,
            "transition": None,
            "session": None,
            "excluded": [],
            "unwanted": False,
            "repair_task_info": None,
            "migration_task_info": None,
        }
        yield Mutation("tablets", (table, str(layout.last_token(number))), columns)


def tablets_of(tables: Rows, tablets: Rows, memo: Memo) -> dict[str, tuple[TabletRow, ...]]:
    """The tablets of each tablet table, in the order of their tokens."""
    found: dict[str, list[tuple[str, Row]]] = {
        key[0]: [] for key, row in tables.items() if row.get("tablets")
    }
    for (table, last), row in tablets.items():
        found[table].append((last, row))
    return {
        table: memo.of(
            table,
            [row for _, row in rows],
            lambda t=table, r=rows: (*_in_order(t, r, memo),),  # type: ignore[misc]
        )
        for table, rows in found.items()
    }


def _in_order(table: str, rows: list[tuple[str, Row]], memo: Memo) -> Iterable[TabletRow]:
    low = FIRST
    numbered = sorted(((int(last), row) for last, row in rows), key=lambda r: r[0])
    for number, (last, row) in enumerate(numbered):
        key = table, number, (low, last)
        yield memo.of(key, (row,), partial(_tablet, *key, row))
        low = last


def _tablet(table: str, number: int, tokens: tuple[int, int], row: Row) -> TabletRow:
    new = row["new_replicas"]
    return TabletRow(
        table,
        number,
        tokens,
        Tablet(
            _replicas(row["replicas"]),
            Stage[row["stage"] or "none"],
            None if new is None else _replicas(new),
            row.get("reordered", False),
        ),
        Kind[row["transition"]] if row["transition"] else None,
        row["session"] or "",
        frozenset(Role[r] for r in row["excluded"]),
        row["unwanted"],
        row["repair_task_info"] or "",
        _wish(row.get("migration_task_info")),
    )


def mutation_of(
    row: TabletRow,
    after: Mapping[str, Any],
    planned: tuple[TabletReplica, ...] | None,
    new_id: Callable[[], str],
    *,
    repaired: bool = False,
) -> Mutation | None:
    """How a row changes with the state of its tablet's machine.

    `planned` is where a migration leads that begins; `repaired`: what was asked for is done.
    """
    columns: Row = {}
    before, tablet = row.state(), row.tablet
    stage: Stage = after["stage"]
    if stage is not tablet.stage:
        columns["stage"] = None if stage is Stage.none else stage.name
        if planned is not None:
            columns["new_replicas"] = _pairs(planned)
            columns |= {} if row.wish is None else {"migration_task_info": None}
        elif stage is Stage.none and tablet.next is not None:
            columns["replicas"] = _pairs(_written(tablet, tablet.stage))
            columns["new_replicas"] = None
    if after["kind"] is not before["kind"]:
        columns["transition"] = None if after["kind"] is None else after["kind"].name
    if after["session"] != before["session"]:
        columns["session"] = new_id() if after["session"] else None
    if after["excluded"] != before["excluded"]:
        columns["excluded"] = sorted(role.name for role in after["excluded"])
    if after["unwanted"] != before["unwanted"]:
        columns["unwanted"] = after["unwanted"]
    if repaired:
        columns["repair_task_info"] = None
    return Mutation("tablets", row.key, columns) if columns else None


def _written(tablet: Tablet, stage: Stage) -> tuple[TabletReplica, ...]:
    """Whom the last stage wrote to is who the replicas are."""
    assert tablet.next is not None
    return tablet.next if stage.writes is Replicas.next else tablet.replicas


def wished(row: TabletRow, wish: tuple[TabletReplica, TabletReplica] | None) -> Mutation:
    """A row with what an operator asks for, or without it."""
    columns: Row = {"migration_task_info": None if wish is None else _pairs(wish)}
    return Mutation("tablets", row.key, columns)


def _wish(pairs: Any) -> tuple[TabletReplica, TabletReplica] | None:
    if pairs is None:
        return None
    leaving, pending = _replicas(pairs)
    return leaving, pending


def _pairs(replicas: Iterable[TabletReplica]) -> list[list[Any]]:
    return [[r.host, r.shard] for r in replicas]


def _replicas(pairs: Iterable[Iterable[Any]]) -> tuple[TabletReplica, ...]:
    return tuple(TabletReplica(*pair) for pair in pairs)
