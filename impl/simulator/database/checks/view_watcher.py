"""Watches the view updates that nodes send and the batches that their workers execute, and checks them at once.

What is checked is on rows as they are on disks; the definitions are those of what is recorded of views.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.columns import TABLETS
from stagewright.impl.group0 import Entry
from stagewright.impl.node.keys import bounds, stored_key, token_in
from stagewright.impl.node.messages import Cell, Message, ReplicaWrite
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.node.port import Drop, Effect, Send, Store
from stagewright.impl.recording.recording import Take
from stagewright.impl.simulator.database.checks.rows.view_places import ViewPlaces
from stagewright.impl.simulator.database.checks.staging_watcher import StagingWatcher
from stagewright.impl.simulator.database.checks.view_sides import Sides, due, paired
from stagewright.impl.simulator.database.hosts import Host
from stagewright.impl.storage.port import Put
from stagewright.impl.views.building.records import Record, What
from stagewright.impl.views.building.tasks import TASKS, Place, processed_in, tasks_in
from stagewright.impl.views.maintenance.definition import parts_of
from stagewright.impl.views.maintenance.hints import hint_key, hints_of, stored_hints, update_in
from stagewright.impl.views.maintenance.staged import Staged, staged_rows, staging_of
from stagewright.impl.views.maintenance.updates import ViewUpdate


@dataclass
class _Batch:
    """A batch that runs: its tasks, and the rows that were there when it started."""

    entity: str
    tasks: dict[str, str]  # with their views
    rows: list[Cell] = field(default_factory=list[Cell])
    staged: list[Staged] = field(default_factory=list[Staged])  # of a batch that processes them
    held: set[tuple[bytes, int]] = field(default_factory=set[tuple[bytes, int]])  # in memtables
    lost: int = 0  # view replicas that had been lost with their nodes before


@dataclass(frozen=True)
class _Hint:
    """An update that is kept until it has arrived, and where on the disk it is and the row that came with it."""

    update: ViewUpdate
    position: int
    row: int  # 0: it is of a row that was there before


class ViewWatcher:
    """The updates and batches of a run; `take` is where a step goes, `hosts` are all machines."""

    def __init__(self, take: Take, hosts: dict[str, Host]) -> None:
        self.staging = StagingWatcher(take, hosts, self._has)
        self._take = take
        self._hosts = hosts
        self._expected: set[ViewUpdate] = set()  # of the write that is handled
        self._hints: dict[tuple[str, str, bytes], _Hint] = {}  # by node and table
        # Those that were dropped in lives that go on, and where: a crash may bring them back.
        self._gone: dict[tuple[str, str, bytes], tuple[_Hint, int]] = {}
        self._sides = Sides()
        self._places = ViewPlaces()
        self._late: set[tuple[str, ViewUpdate]] = set()  # by life: of rows that came late
        self._batches: dict[tuple[str, Place], _Batch] = {}  # by life
        self._flushing: dict[tuple[str, str], set[str]] = {}  # by life and base table
        self._flushed: dict[str, set[str]] = {}  # by life
        self._views: set[str] = set()  # those that are committed

    # -- tasks -----------------------------------------------------------------------------------------------

    def committed(self, entry: Entry, catalog: Catalog) -> None:
        """A command is committed: where it leaves the tasks of base tables."""
        self._views = {*catalog.view.views}
        self._places.committed(catalog.view)
        touched = {m.table for m in entry.command.mutations}
        if TABLETS in touched:
            self._sides.committed(entry.id.position, catalog.view)
        if not touched & {TASKS, TABLETS}:
            return
        tasks, view = [*tasks_in(catalog.tables).values()], catalog.view
        self.staging.committed(tasks, catalog)
        for base in sorted({t.place.base for t in tasks}):
            placed = owned = pending = True
            for task in (t for t in tasks if t.place.base == base):
                row = view.tablet_with(base, task.place.last_token)
                replicas = () if row is None else (*row.tablet.replicas, *(row.tablet.next or ()))
                whole = row is not None and row.range[1] == task.place.last_token
                placed = placed and whole and task.place.replica in replicas
                owned = owned and (not task.view or task.view in view.views)
                moves = row is not None and row.tablet.next is not None
                pending = pending and (moves or not task.aborted)
            self._take(
                "view-places", base, "", "commit", placed=placed, owned=owned, pending=pending
            )

    # -- updates -------------------------------------------------------------------------------------------

    def heard(self, host: Host, node: DatabaseNode, message: ReplicaWrite) -> None:
        """A node is about to handle a write: what view rows it changes."""
        key, time, value = message.cell
        self._expected = set()
        before = host.rows.get(message.table, key)
        if before is not None and before.time >= time:
            return
        for view in node.context.view.views_of(message.table):
            now = view.row_of(key, value)
            old = None if before is None else view.row_of(key, before.value)
            if now is not None:
                self._expected.add(ViewUpdate(view.name, key, now, time, value))
            if old is not None and old != now:
                self._expected.add(ViewUpdate(view.name, key, old, time, None))

    def did(self, host: Host, node: DatabaseNode, effect: Effect, cause: Message | None) -> None:
        """An effect was carried out."""
        match effect:
            case Store(batch):
                self._stored(host, node, batch, cause)
            case Send(to, ReplicaWrite() as message) if message.table in node.context.view.views:
                self._sent(host, node, to, message)
            case Drop(family, low, high) if high == low + b"\0":
                self._dropped(host, node, family, low)
                self.staging.dropped(host, node, effect)
            case Drop(family, low, high):
                self._cleaned(host, node.name, family, low, high)
            case _:
                pass

    def _stored(
        self, host: Host, node: DatabaseNode, batch: tuple[Put, ...], cause: Message | None
    ) -> None:
        self._places.stored(node.name, batch)
        bases = {hints_of(v.base): v.base for v in node.context.view.views.values()}
        kept: set[ViewUpdate] = set()
        written = {(put.family, put.version.key, put.version.time) for put in batch}
        position = len(host.disk.log)
        for put in batch:
            if put.family in bases:
                update = update_in(put.version)
                kept.add(update)
                where = node.name, put.family, put.version.key
                there = self._hints.get(where)
                late = isinstance(cause, ReplicaWrite) and cause.late
                everyone = late or not isinstance(cause, ReplicaWrite)
                if late:
                    self._late.add((life_of(host), update))
                if there is None or there.update.time < update.time:
                    base = bases[put.family], update.base_key, update.time
                    self._hints[where] = _Hint(update, position, position if base in written else 0)
                    self._sides.begin(life_of(host), node, update, everyone=everyone)
                elif everyone:  # it is stored already, for its pair alone
                    self._sides.allow(life_of(host), update)
        if isinstance(cause, ReplicaWrite) and self._expected:
            complete = self._expected <= kept
            self._take("view-updates", life_of(host), node.name, "change_row", complete=complete)
            self._expected = set()

    def _sent(self, host: Host, node: DatabaseNode, to: str, message: ReplicaWrite) -> None:
        if message.late:
            self._handed_over(host, node, to, message)
            return
        view = node.context.view.views[message.table]
        key, time, value = message.cell
        base_key = stored_key(parts_of(key)[1])
        update = ViewUpdate(view.name, base_key, key, time, value)
        hint = self._hints.get((node.name, hints_of(view.base), hint_key(update)))
        known = hint is not None and hint.update == update
        snapshot = host.rows.snapshot()
        row = snapshot.get(view.base, base_key, time)
        kept = snapshot.get(hints_of(view.base), hint_key(update), time)
        snapshot.close()
        newest = host.rows.get(view.base, base_key)
        if kept is not None and kept.time == time:
            self._sides.see(life_of(host), node, update)
        if self.staging.is_late(node.name, view.base, base_key, time):
            self.staging.sent(life_of(host), update, message.version)
            self._sides.allow(life_of(host), update)
        self._take(
            "view-updates",
            life_of(host),
            node.name,
            "send_update",
            durable=not known or hint is None or host.disk.synced >= hint.row,
            timely=(row is not None and row.time == time)
            or (newest is not None and newest.time > time),
            paired=self._sides.has(life_of(host), node, update, to),
        )

    def _handed_over(self, host: Host, node: DatabaseNode, to: str, message: ReplicaWrite) -> None:
        """A view replica that was spared while its tablet is rebuilt without it sends what it has."""
        key, time, value = message.cell
        row = node.context.view.tablet_with(message.table, token_in(key))
        snapshot = host.rows.snapshot()
        there = snapshot.get(message.table, key, time)
        snapshot.close()
        self._take(
            "view-updates",
            life_of(host),
            node.name,
            "send_update",
            durable=there is not None,
            timely=there is not None and (there.time, there.value) == (time, value),
            paired=row is not None and node.name in row.lost and to in row.chosen.writes,
        )

    def _dropped(self, host: Host, node: DatabaseNode, family: str, key: bytes) -> None:
        found = self._hints.pop((node.name, family, key), None)
        if found is None:
            return
        self._gone[node.name, family, key] = found, len(host.disk.log)
        update, view = found.update, node.context.view.views.get(found.update.view)
        late = (life_of(host), update) in self._late
        # Who has learned sooner than this node that the view was dropped, or is at another place, has its rows no more.
        arrived = (
            view is None
            or view.name not in self._views
            or all(
                self._has(target, update) or self._places.has_left(target, update)
                for target in due(node, view.base, update, late=late)
            )
        )
        self._take("view-updates", life_of(host), node.name, "forget_hint", arrived=arrived)

    def _cleaned(self, host: Host, node: str, family: str, low: bytes, high: bytes | None) -> None:
        """The hints of a range are gone with its rows: the node is no replica, and may be one again with older rows."""
        for where in [*self._hints]:
            if (
                where[:2] == (node, family)
                and low <= where[2]
                and (high is None or where[2] < high)
            ):
                self._gone[where] = self._hints.pop(where), len(host.disk.log)

    def _has(self, target: str, update: ViewUpdate) -> bool:
        there = self._hosts[target].rows.get(update.view, update.key)
        return there is not None and there.time >= update.time

    def ends(self, host: Host) -> None:
        """A life of a node is over: hints that were on no disk are gone with it, and such drops of them."""
        left = len(host.disk.log)
        for where, (hint, dropped) in [*self._gone.items()]:
            if where[0] == host.identity.name:
                del self._gone[where]
                if dropped > left:
                    self._hints.setdefault(where, hint)
        for where, hint in [*self._hints.items()]:
            if where[0] == host.identity.name and hint.position > left:
                del self._hints[where]

    # -- batches -------------------------------------------------------------------------------------------

    def observe(self, host: Host, node: DatabaseNode, record: Record) -> None:
        """A worker has recorded something."""
        life, place = life_of(host), record.place
        match record.what:
            case What.begin_flush:
                views = {v.name for v in node.context.view.views_of(record.base)}
                self._flushing[life, record.base] = views
            case What.end_flush:
                views = self._flushing.pop((life, record.base), set[str]())
                self._flushed.setdefault(life, set()).update(views)
            case What.start if place is not None:
                self._start(host, node, record, place)
            case What.leave if (life, place) in self._batches:
                assert place is not None
                batch = self._batches[life, place]
                for task in record.tasks:
                    batch.tasks.pop(task, None)
                if not batch.tasks:
                    del self._batches[life, place]
                    self._take("view-batches", batch.entity, node.name, "give_up")
            case What.finish if (life, place) in self._batches:
                assert place is not None
                batch = self._batches.pop((life, place))
                complete = self._is_complete(host, node, place.base, batch)
                self._take("view-batches", batch.entity, node.name, "finish", complete=complete)
            case _:
                pass

    def _start(self, host: Host, node: DatabaseNode, record: Record, place: Place) -> None:
        tables, life = node.context.catalog.tables, life_of(host)
        stored = tasks_in(tables)
        tasks = [stored[i] for i in record.tasks if i in stored]
        views = {t.view for t in tasks if t.view}
        alike = len({(t.type, t.place) for t in tasks}) == 1 and place.replica.host == node.name
        entity = f"{node.name}/{place.replica.shard}#{host.life}"
        self._take(
            "view-batches",
            entity,
            node.name,
            "start",
            stored=len(tasks) == len(record.tasks),
            alike=alike,
            processed=processed_in(tables) == place.base,
            flushed=views <= self._flushed.get(life, set[str]()),
        )
        batch = _Batch(entity, {t.id: t.view for t in tasks}, lost=self._places.lost)
        row = node.context.view.tablet_with(place.base, place.last_token)
        if row is not None:
            waiting = staged_rows(host.rows, place.base, *bounds(*row.range))
            known = {one.cell[:2] for one in waiting}
            rows = newest_rows(host, place.base, *bounds(*row.range))
            batch.rows = [cell for cell in rows if cell[:2] not in known]
            batch.held = {c[:2] for c in rows if node.views.memtables.has(place.base, *c[:2])}
            batch.staged = [] if views else waiting
        if not views:
            self.staging.begins(host, node, place)
        self._batches[life, place] = batch

    def _is_complete(self, host: Host, node: DatabaseNode, base: str, batch: _Batch) -> bool:
        """Whether the views have the rows that were there, or they were written anew, are on their way, or lost.

        Of a row that was in a memtable the batch sends nothing: its update is that of its write, and may have been lost before.
        """
        hinted = {(u.view, u.key): u.time for u in stored_hints(host.rows, base)}
        if any(host.rows.get(staging_of(base), one.entry) is not None for one in batch.staged):
            return False
        for key, time, value in batch.rows:
            now = host.rows.get(base, key)
            if now is None or now.time != time:
                continue
            for name in self._views.intersection(batch.tasks.values()):  # not dropped meanwhile
                view = node.context.view.views.get(name)
                there = None if view is None else view.row_of(key, value)
                if view is None or there is None or hinted.get((name, there), 0) >= time:
                    continue
                update = ViewUpdate(name, key, there, time, value)
                since = 0 if (key, time) in batch.held else batch.lost
                if self._places.takes(update, node.context.view, since=since):
                    continue
                if not all(self._has(target, update) for target in paired(node, base, update)):
                    return False
        return True


def newest_rows(host: Host, table: str, low: bytes, high: bytes | None) -> list[Cell]:
    """The rows of low <= stored key < high that a machine has, tombstones too."""
    snapshot, found = host.rows.snapshot(), dict[bytes, Cell]()
    for version in snapshot.versions(table, low, high):
        found.setdefault(version.key, (version.key, version.time, version.value))
    snapshot.close()
    return [*found.values()]


def life_of(host: Host) -> str:
    """A life of a machine, as records name it."""
    return f"{host.identity.name}#{host.life}"
