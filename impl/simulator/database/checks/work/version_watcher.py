"""Watches which versions of rows nodes remove, and what they tell each other before: looked at on disks, at once."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.impl.catalog.view import View
from stagewright.impl.node.keys import token_in
from stagewright.impl.node.messages import Settled
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.node.port import Drop, Effect, Send, Store, Supersede
from stagewright.impl.recording.recording import Take
from stagewright.impl.simulator.database.hosts import Host, life_of, rows_held
from stagewright.impl.storage.memory import Dropped, Superseded
from stagewright.impl.storage.port import Put
from stagewright.impl.views.maintenance.hints import stored_hints
from stagewright.impl.views.maintenance.staged import staged_rows
from stagewright.machines.scylladb.tablets.tablet_stages import Role


class VersionWatcher:
    """`take` records an action of an entity."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self._view: View | None = None  # what is committed
        self._hosts: Mapping[str, Host] = {}
        # Where in the log of a disk a version of a row stands first.
        self._places: dict[tuple[str, str, bytes, int], int] = {}
        # How long the log of a disk was when its last removal was looked at.
        self._checked: dict[str, int] = {}

    def committed(self, view: View, hosts: Mapping[str, Host]) -> None:
        """Something was committed."""
        self._view, self._hosts = view, hosts

    def did(self, host: Host, node: DatabaseNode, effect: Effect) -> None:
        """An effect was carried out."""
        match effect:
            case Store(batch):
                self._stored(host, batch)
            case Send(_, Settled() as said):
                self._settled(host, node, said)
            case Supersede(family):
                self._removed(host, node, family, Superseded)
            case Drop(family, low, high) if high == low + b"\0":
                self._removed(host, node, family, Dropped)
            case _:
                pass

    def _stored(self, host: Host, batch: tuple[Put, ...]) -> None:
        for put in batch:
            where = host.identity.name, put.family, put.version.key, put.version.time
            self._places.setdefault(where, len(host.disk.log))

    def ends(self, host: Host) -> None:
        """A life of a node is over: what was on no disk may be gone with it."""
        name, left = host.identity.name, len(host.disk.log)
        for where in [w for w, place in self._places.items() if w[0] == name and place > left]:
            del self._places[where]
        self._checked[name] = min(left, self._checked.get(name, 0))

    def _settled(self, host: Host, node: DatabaseNode, said: Settled) -> None:
        """A node tells another one from which versions on it has rows."""
        durable = arrived = True
        views = {view.name for view in node.context.view.views_of(said.table)}
        for key, time in said.rows:
            place = self._places.get((node.name, said.table, key, time), 0)
            durable = durable and host.disk.synced >= place
            end = key + b"\xff" * 9
            hints = stored_hints(host.rows, said.table, key, end) if views else []
            staged = staged_rows(host.rows, said.table, key, end) if views else []
            waits = any(u.base_key == key and u.time <= time and u.view in views for u in hints)
            waits = waits or any(s.cell[0] == key and s.cell[1] <= time for s in staged)
            arrived = arrived and not waits
        self._take("lives", life_of(host), node.name, "settle", durable=durable, arrived=arrived)

    def _removed(self, host: Host, node: DatabaseNode, family: str, kind: type[Dropped]) -> None:
        """Versions of a family were removed, if there were any: the log of the disk has which.

        Where nothing was replaced the log has no record of that, but still the one before it, which was looked at then.
        """
        log, view = host.disk.log, node.context.view
        gone, last = log[-1] if log else None, self._checked.get(host.identity.name, 0)
        if not isinstance(gone, kind) or len(log) <= last:
            return
        self._checked[host.identity.name] = len(log)
        if gone.family != family or not gone.versions:
            return
        if family not in view.tables or family in view.logs.values():
            return
        newer = known = True
        for key, time in gone.versions:
            there = host.rows.get(family, key)
            newer = newer and there is not None and there.time > time
            if family in view.tablets and family not in view.views:
                known = known and self._is_known(node, family, key, time)
        self._take("lives", life_of(host), node.name, "remove_versions", newer=newer, known=known)

    def _is_known(self, node: DatabaseNode, table: str, key: bytes, time: int) -> bool:
        """Whether each other replica that the node knows, and that is written to, has something newer.

        Who was cleaned up, or is given up, may have nothing. So may who comes again, if the node has learned neither that nor
        that it had left: it streams what it lacks. Who comes, as the node knows, has told it what it has.
        """
        if self._view is not None and time <= self._view.truncated.get(table, 0):
            return True  # others may have truncated the table
        now, known = self._view, node.context.view.tablet_with(table, token_in(key))
        row = None if now is None else now.tablet_with(table, token_in(key))
        if now is None or row is None or known is None:
            return True
        others = {*row.chosen.writes} & known.holders - now.given_up - {node.name}
        found = {other: self._newest(other, table, key) for other in others}
        again = {*row.hosts[Role.pending]} - {*known.hosts[Role.pending]}
        return all(t > time or (t == 0 and other in again) for other, t in found.items())

    def _newest(self, name: str, table: str, key: bytes) -> int:
        host = self._hosts[name]
        rows = rows_held(host)
        found = rows.get(table, key)
        return 0 if found is None else found.time
