"""Watches nodes as replicas: what they serve, and of tablets whether they have storage and rows.

A tablet at a node is an entity for each life of the node, followed from the first request on that it serves.
Of the tables of the token ring, a life is one entity.
"""

from __future__ import annotations

from collections.abc import Callable

from stagewright.impl.catalog.columns import TABLES
from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.node.keys import token_in
from stagewright.impl.node.messages import Order, ReplicaRead, ReplicaScan, ReplicaWrite
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.simulator.database.hosts import Host, life_of, rows_of

KIND = "replicas"


class ReplicaWatcher:
    """`take` records an action of an entity."""

    def __init__(self, take: Callable[..., None]) -> None:
        self._take = take
        self._storage: dict[tuple[str, str], bool] = {}  # by life and tablet
        self._views: dict[str, View] = {}  # as each life knew it last

    def serves(
        self,
        host: Host,
        node: DatabaseNode,
        what: str,
        request: ReplicaWrite | ReplicaRead | ReplicaScan,
    ) -> None:
        """A replica writes, reads or refuses; of a scan, which may go over several tablets, the first counts."""
        row = node.context.view.tablet_with(request.table, token_in(request.first))
        entity = life_of(host) if row is None else self._entity(host, node, row)
        if node.context.view.is_dropped(request.table):
            entity = f"{request.table}@{entity}"  # which has no storage
        older = request.version < node.context.view.fence_version
        self._take(KIND, entity, node.name, what, older=older)

    def asked(
        self, host: Host, node: DatabaseNode, to: str, request: ReplicaRead | ReplicaScan
    ) -> None:
        """A node asks a replica for rows."""
        chosen = node.context.view.replicas(request.table, token_in(request.first))
        selected = to in chosen.reads
        self._take("lives", life_of(host), node.name, "ask_for_a_row", selected=selected)

    def streamed(self, host: Host, node: DatabaseNode, table: str, low: int) -> None:
        """Rows of a stream are stored; a node that starts may fetch what it has learned of before it serves anybody."""
        row = node.context.view.tablet_with(table, low + 1)
        early = row is not None and not node.context.ready and _is_stored_at(node, row)
        if row is not None and not early:
            self._take(KIND, self._entity(host, node, row), node.name, "store_streamed")

    def dropped(self, host: Host, node: DatabaseNode, table: str, low: bytes) -> None:
        """The rows of a range are removed."""
        row = node.context.view.tablet_with(table, token_in(low))
        if row is not None:
            self._take(KIND, self._entity(host, node, row), node.name, "delete_rows")

    def dropped_table(self, host: Host, node: DatabaseNode, table: str) -> None:
        """The rows of a table that was dropped are removed, and its tablets have no storage here any more."""
        life = life_of(host)
        for of, name in [key for key, has in self._storage.items() if has]:
            if of == life and name.startswith(f"{table}:"):
                self._storage[of, name] = False
                self._take(KIND, f"{name}@{life}", node.name, "delete_rows")
                self._take(KIND, f"{name}@{life}", node.name, "deallocate")

    def truncated(self, host: Host, node: DatabaseNode, table: str) -> None:
        """A table was truncated: of some of its tablets nothing may be left here."""
        view = node.context.view
        for row in view.tablets.get(table, ()):
            known = self._storage.get((life_of(host), _named(node, row)), False)
            if known and not rows_of(host, row, view.families(table)):
                self._take(KIND, self._entity(host, node, row), node.name, "delete_rows")

    def expired(self, host: Host, node: DatabaseNode, log: str, low: bytes) -> None:
        """Rows of a log that are older than it keeps them are removed, maybe the last ones of a tablet."""
        view = node.context.view
        table = next(t for t, its_log in view.logs.items() if its_log == log)
        row = view.tablet_with(table, token_in(low))
        if row is not None and not rows_of(host, row, view.families(table)):
            self._take(KIND, self._entity(host, node, row), node.name, "delete_rows")

    def cleaned(self, host: Host, node: DatabaseNode, order: Order) -> None:
        """A node answers that it has cleaned up."""
        row = node.context.view.tablet(order.table, order.tablet)
        if row is not None:
            self._take(KIND, self._entity(host, node, row), node.name, "answer_cleanup")

    def learned(self, host: Host, node: DatabaseNode, *, restored: bool) -> None:
        """A node has learned something: it may have storage for other tablets now.

        One that was given up removes rows by itself, and so does who goes on from a snapshot: then storage is gone with them.
        """
        life, view = life_of(host), node.context.view
        before = self._views.get(life)
        self._views[life] = view
        if before is None or before is view or restored:
            return
        if node.name in view.given_up | before.given_up:
            return
        for old in before.moving:
            row = view.tablet(old.table, old.number)
            if row is not None and (life, _named(node, row)) in self._storage:
                self._follow(life, node, row)
        for row in view.moving:
            if (life, _named(node, row)) in self._storage:
                self._follow(life, node, row)

    def _entity(self, host: Host, node: DatabaseNode, row: TabletRow) -> str:
        life = life_of(host)
        if not self._storage.setdefault((life, _named(node, row)), False):
            self._follow(life, node, row)
        return f"{_named(node, row)}@{life}"

    def _follow(self, life: str, node: DatabaseNode, row: TabletRow) -> None:
        has = node.context.ready and _is_stored_at(node, row)
        name = _named(node, row)
        if has != self._storage[life, name]:
            self._storage[life, name] = has
            what = "allocate" if has else "deallocate"
            self._take(KIND, f"{name}@{life}", node.name, what)


def _is_stored_at(node: DatabaseNode, row: TabletRow) -> bool:
    return node.name in row.tablet.hosts(row.tablet.stage.storage)


def _named(node: DatabaseNode, row: TabletRow) -> str:
    """A tablet as the node knows it: another one has its number once the table was split or merged."""
    table = node.context.catalog.tables[TABLES][row.table,]
    times: int = table.get("resize_seq_number", 0) - bool(table.get("resize_type"))
    return f"{row.name} after {times} resizes" if times else row.name
