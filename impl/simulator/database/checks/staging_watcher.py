"""Watches what comes by streams into staging, and what leaves it: what views may lack waits until they have it.

How far views are is read from the rows of group0, and what they have from disks; no definition that drives a node is read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.node.keys import bounds, token_in
from stagewright.impl.node.messages import Order, PullRows, RowChunk, Work
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.node.port import Drop
from stagewright.impl.recording.recording import Take
from stagewright.impl.simulator.database.checks.view_sides import due, now_of, paired
from stagewright.impl.simulator.database.hosts import Host, life_of
from stagewright.impl.storage.port import Put
from stagewright.impl.views.building.tasks import STAGING, STATUS, Place, Task
from stagewright.impl.views.maintenance.staged import (
    Staged,
    entry_key,
    staged_in,
    staged_rows,
    staging_of,
)
from stagewright.impl.views.maintenance.updates import ViewUpdate
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Role, Run, Stage

KIND = "staging"
# Whoever comes may not have been meant when the update was sent: it gets from the others what these have by now.
_UNSTREAMED = (
    Stage.allow_write_both_read_old,
    Stage.write_both_read_old,
    Stage.rebuild_repair,
)
Where = tuple[str, int, str]
"""A base table, the last token of one of its tablets, a host."""


class StagingWatcher:
    """The staging of a run; `has` says whether a host has an update of a view."""

    def __init__(
        self, take: Take, hosts: dict[str, Host], has: Callable[[str, ViewUpdate], bool]
    ) -> None:
        self.staged = 0  # rows that have come
        self.processed = 0
        self._take = take
        self._hosts = hosts
        self._has = has
        self._needed: set[bytes] = set()  # entries, of the chunk that is handled
        self._entries: dict[tuple[str, str, bytes], Staged] = {}  # by node and family
        self._processed: set[tuple[str, str, bytes]] = set()  # a crash may bring them back
        self._comes_late = False  # the chunk that is handled: others have had its rows
        self._tasks: set[Where] = set()  # that group0 stores
        # whose task is gone since rows came by a stream that goes on
        self._came: set[Where] = set()
        self._views: set[str] = set()  # those that are committed
        self._begun: dict[str, set[str]] = {}  # by tablet and life: views when a batch began
        # By life: the version of the topology under which an update was sent last; and that since which a tablet that is
        # streamed is written to in both places.
        self._sent: dict[tuple[str, ViewUpdate], int] = {}
        self._both: dict[tuple[str, int], int] = {}

    # -- what is committed ---------------------------------------------------------------------------------

    def committed(self, tasks: list[Task], catalog: Catalog) -> None:
        """A command is committed that may have changed tasks."""
        now = {_where(t.place) for t in tasks if t.type == STAGING}
        self._came |= self._tasks - now
        self._tasks, self._views = now, {*catalog.view.views}
        moving = {(r.table, r.number): r for r in catalog.view.moving}
        self._both = {where: version for where, version in self._both.items() if where in moving}
        for where, row in moving.items():
            if row.tablet.stage is Stage.write_both_read_old:
                self._both.setdefault(where, catalog.view.version)

    # -- what comes ----------------------------------------------------------------------------------------

    def arrives(self, host: Host, node: DatabaseNode, pull: PullRows, chunk: RowChunk) -> None:
        """A node is about to handle rows of a stream."""
        row = next((r for r in node.context.view.moving if r.session == pull.session), None)
        self._needed, self._comes_late = set(), False
        if row is None or row.table != pull.table:
            return
        repairs = row.tablet.stage.action is Run.repair
        self._comes_late = repairs or row.kind is not Kind.migration
        if not _may_lack(node, row.table, repairs=repairs):
            return
        snapshot = host.rows.snapshot()
        for key, time, _ in chunk.cells:
            there = snapshot.get(row.table, key, time)
            if there is None or there.time != time:
                self._needed.add(entry_key(key, time))
        snapshot.close()

    def stored(self, host: Host, node: DatabaseNode, batch: tuple[Put, ...]) -> None:
        """It has stored what came of them."""
        bases = {staging_of(v.base): v.base for v in node.context.view.views.values()}
        for put in batch:
            if put.family in bases:
                self.staged += 1
                entry = put.version
                staged = staged_in(entry)
                late = staged.repaired or self._comes_late
                self._entries[node.name, put.family, entry.key] = replace(staged, repaired=late)
                self._processed.discard((node.name, put.family, entry.key))
        rows = [put for put in batch if put.family in bases.values()]
        row = None
        if rows:
            key = rows[0].version.key
            row = node.context.view.tablet_with(rows[0].family, token_in(key))
        if row is None:
            return
        whole = all(host.rows.get(staging_of(row.table), k) is not None for k in self._needed)
        self._came.discard((row.table, row.range[1], node.name))
        self._take(KIND, _entity(host, row), node.name, "stage", whole=whole)
        self._needed, self._comes_late = set(), False

    def is_late(self, name: str, base: str, key: bytes, time: int) -> bool:
        """Whether a version of a row waits at a node, or has waited, that came there late."""
        staged = self._entries.get((name, staging_of(base), entry_key(key, time)))
        return staged is not None and staged.repaired

    def ended(self, host: Host, node: DatabaseNode, order: Order) -> None:
        """It says that a stream of a tablet is over."""
        row = node.context.view.tablet(order.table, order.tablet)
        if row is None or row.session != order.session:
            return
        if not node.context.view.views_of(row.table):
            return
        here = self._waiting(host, row)
        where = row.table, row.range[1], node.name
        # A task that was there may have been finished since: what came after it gets one when the tablet rests.
        registered = not here or where in self._tasks or where in self._came
        moved = True
        if row.kind is Kind.migration and order.work is Work.stream_tablet:
            sources = (self._hosts[h] for h in row.hosts[Role.leaving])
            moved = all(self._waiting(s, row) <= here for s in sources if s.node is not None)
        entity = _entity(host, row)
        self._take(KIND, entity, node.name, "end_stream", registered=registered, moved=moved)

    def _waiting(self, host: Host, row: TabletRow) -> set[bytes]:
        """The entries of a tablet whose rows were not processed: that one was removed may be lost with a crash."""
        name, family = host.identity.name, staging_of(row.table)
        found = {s.entry for s in staged_rows(host.rows, row.table, *bounds(*row.range))}
        return {entry for entry in found if (name, family, entry) not in self._processed}

    def sent(self, life: str, update: ViewUpdate, version: int) -> None:
        """A node sends a view update, maybe of a row that waits."""
        self._sent[life, update] = version

    # -- what leaves ---------------------------------------------------------------------------------------

    def begins(self, host: Host, node: DatabaseNode, place: Place) -> None:
        """A batch begins to process what is staged at a place.

        A view that is created later is built from the base directory, by a batch that the shard executes after this one.
        """
        row = node.context.view.tablet_with(place.base, place.last_token)
        if row is not None:
            views = node.context.view.views_of(place.base)
            self._begun[_entity(host, row)] = {v.name for v in views}

    def dropped(self, host: Host, node: DatabaseNode, drop: Drop) -> None:
        """An entry was removed by itself, as its row was processed."""
        staged = self._entries.get((node.name, drop.family, drop.low))
        if staged is None:
            return
        view = node.context.view
        views = view.views.values()
        base = next((v.base for v in views if staging_of(v.base) == drop.family), None)
        row = None if base is None else view.tablet_with(base, token_in(staged.cell[0]))
        if base is None or row is None:  # no view is left that it is for, or no table
            return
        self.processed += 1
        self._processed.add((node.name, drop.family, drop.low))
        has_place = node.name in (*now_of(row), *(r.host for r in row.tablet.replicas))
        known, updates = (
            self._begun.get(_entity(host, row)),
            self._updates(host, node, base, staged),
        )
        if known is not None:
            updates = [u for u in updates if u.view in known]
        updated = all(self._is_due(host, node, base, u, late=staged.repaired) for u in updates)
        self._take(
            KIND, _entity(host, row), node.name, "process", paired=has_place, updated=updated
        )

    def _updates(
        self, host: Host, node: DatabaseNode, base: str, staged: Staged
    ) -> list[ViewUpdate]:
        """What the views must have of a row: its own row unless it was replaced, and not that of what it replaced."""
        key, time, value = staged.cell
        newest, found = host.rows.get(base, key), list[ViewUpdate]()
        for view in node.context.view.views_of(base):
            there = view.row_of(key, value)
            gone = None if staged.before is None else view.row_of(key, staged.before.value)
            if there is not None and newest is not None and newest.time == time:
                found.append(ViewUpdate(view.name, key, there, time, value))
            if gone is not None and gone != there:
                found.append(ViewUpdate(view.name, key, gone, time, None))
        return found

    def _is_due(
        self, host: Host, node: DatabaseNode, base: str, update: ViewUpdate, *, late: bool
    ) -> bool:
        if update.view not in self._views:
            return True  # dropped, as the node may not have learned
        alone = update.value is not None and not late
        targets = paired(node, base, update) if alone else due(node, base, update, late=late)
        row = node.context.view.tablet_with(update.view, token_in(update.key))
        comes: tuple[str, ...] = ()
        if row is not None:
            both = self._both.get((row.table, row.number), 0)
            # What all replicas had before writes went to both comes with the stream.
            before = self._sent.get((life_of(host), update), both) < both
            if row.tablet.stage in _UNSTREAMED or (before and row.tablet.stage is Stage.streaming):
                comes = row.chosen.pending
        return all(t in comes or self._has(t, update) for t in targets)


def _may_lack(node: DatabaseNode, base: str, *, repairs: bool) -> bool:
    """Whether a view may lack rows that come: one is started and not built; or a repair brings what built ones lack."""
    rows = node.context.catalog.tables[STATUS]
    said = [
        {row["status"] for key, row in rows.items() if key[0] == view.name}
        for view in node.context.view.views_of(base)
    ]
    started = any(words and "SUCCESS" not in words for words in said)
    return started or (repairs and any("SUCCESS" in words for words in said))


def _where(place: Place) -> Where:
    return place.base, place.last_token, place.replica.host


def _entity(host: Host, row: TabletRow) -> str:
    return f"{row.table}:{row.range[1]}@{life_of(host)}"
