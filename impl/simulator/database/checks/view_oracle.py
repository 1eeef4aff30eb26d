"""What views promise, checked on rows: it reads no definition of a machine.

When a view is built, every row that was acknowledged before is in it, or on its way from a disk to its place in it.
When all has come to rest, a view is what its base table says, row by row, but for what follows from lost versions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.names import name_of
from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.node.keys import bounds, start_of, stored_key, token_in
from stagewright.impl.node.messages import Cell
from stagewright.impl.ring.partitioner import token_of
from stagewright.impl.simulator.database.checks.lost_versions import Found, LostVersions
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.checks.rows.view_places import OVER
from stagewright.impl.simulator.database.hosts import rows_held
from stagewright.impl.simulator.database.tables import table_of
from stagewright.impl.simulator.database.world import World
from stagewright.impl.storage.memory import MemoryRows
from stagewright.impl.storage.port import RowStore, Version
from stagewright.impl.views.maintenance.hints import stored_hints
from stagewright.impl.views.maintenance.staged import is_staged
from stagewright.machines.scylladb.tablets.tablet_stages import Replicas

Row = tuple[bytes, bytes]
"""A row of a view: its key, and the key of the base row."""


@dataclass(frozen=True)
class Expected:
    """A view, as the script asked for it."""

    base: str
    modulus: int = 0
    comparison: str = ""
    bound: int = 0

    def key(self, value: bytes | None) -> bytes | None:
        """The key of the row of a value; None: it is not in the view."""
        if value is None:
            return None
        number = int(value)
        sign = (number > self.bound) - (number < self.bound)
        allowed = {"": (-1, 0, 1), "<": (-1,), "<=": (-1, 0), "=": (0,), ">=": (0, 1), ">": (1,)}
        if sign not in allowed[self.comparison]:
            return None
        return str(number % self.modulus).encode() if self.modulus else value


class ViewOracle:
    """The views of a run, by name."""

    def __init__(self, world: World, catalog: Catalog, rows: Oracle) -> None:
        self.views: dict[str, Expected] = {}
        self.names: set[str] = set()  # also of those that are gone
        self.compared = 0
        self.lost = LostVersions(world, rows)
        self._world = world
        self._catalog = catalog
        self._rows = rows

    def expect(self, name: str, expected: Expected) -> None:
        """A view is to be created."""
        self.views[name] = expected
        self.names.add(name)

    # -- when a view is built --------------------------------------------------------------------------------

    def built(self, name: str) -> None:
        """SUCCESS: what was acknowledged by now is in the view of as many replicas as a quorum has, or comes there.

        It comes there by a hint, or from staging: a repair may bring a version before its own write comes, late. Or it
        comes from who is spared while its tablet of the view is rebuilt without it, and hands over what it has.
        Who had it may be given up: then every quorum that reads has it from another one, if it was acknowledged.
        """
        expected = self.views.get(name_of(name))
        view = self._catalog.view
        if expected is None or name not in view.tables:
            return
        self._world.counted["views built"] += 1
        disks = {n: rows_held(h) for n, h in self._world.hosts.items()}
        hints = {
            (host, u.view, u.key): u.time
            for host, rows in disks.items()
            for u in stored_hints(rows, expected.base)
        }
        for key, (time, _) in sorted(self._rows.newest.items()):
            if table_of(key) != expected.base or (key, time) not in self._rows.acknowledged:
                continue
            stored = stored_key(key)
            row = view.tablet_with(expected.base, token_in(stored))
            assert row is not None
            good = lost = 0
            for place, host in enumerate(_places(row)):
                found = disks[host].get(expected.base, stored)
                if found is None or found.time < time:
                    continue
                wanted = expected.key(found.value)
                if wanted is None:
                    good += 1
                    continue
                there = stored_row(wanted, stored)
                promised = (key, found.time) in self._rows.acknowledged
                hinted = hints.get((host, name, there), 0) >= found.time
                if (
                    hinted
                    or self._has(
                        disks, name, there, (place, len(_places(row))), found.time, promised
                    )
                    or _is_staged(disks[host], expected.base, found)
                ):
                    good += 1
                elif self._was_lost(disks, name, there, found.time):
                    good, lost = good + (not promised), lost + promised
            quorum = len(_places(row)) // 2 + 1
            if good + lost < quorum or good <= len(_places(row)) - quorum:
                self._rows.broken(
                    f"{name} is built, and {key!r} at {time} is in it at {good} of {len(_places(row))} places"
                )

    def _has(
        self,
        disks: dict[str, MemoryRows],
        name: str,
        key: bytes,
        place: tuple[int, int],
        time: int,
        promised: bool,
    ) -> bool:
        """Whether the view replicas of a place (of so many) have a row of that time, or those that come there.

        Or a quorum of all: after a merge, its view replica may be another one than as the row was put there. Of a version
        that was not acknowledged, which one base replica may have alone, the one where it was put is enough.
        """
        row = self._catalog.view.tablet_with(name, token_in(key))
        assert row is not None
        own, others = place[0], _places(row)
        hosts = others if own >= len(others) else (others[own], *others[place[1] :])

        def has(host: str) -> bool:
            found = disks[host].get(name, key)
            return found is not None and found.time >= time

        spared = row.lost - self._catalog.view.given_up if row.tablet.stage not in OVER else ()
        enough = len(others) // 2 if promised else 0
        if all(map(has, hosts)) or sum(map(has, others)) > enough:
            return True
        return any(map(has, (*row.chosen.pending, *spared)))

    def _was_lost(self, disks: dict[str, MemoryRows], name: str, key: bytes, time: int) -> bool:
        """Whether a node that is gone had a row, and maybe nobody else who is there."""
        row = self._catalog.view.tablet_with(name, token_in(key))
        assert row is not None
        return self.lost.takes(row, key, time) or any(
            (found := disks[h].get(name, key)) is not None and found.time >= time
            for h in self._catalog.view.given_up & disks.keys()
        )

    # -- when all has come to rest ---------------------------------------------------------------------------

    def look_at_replicas(self, name: str, view: Iterable[Cell]) -> None:
        """Each replica of a view has what clients read: also one that nobody's answer came from."""
        wanted = {key: (time, value) for key, time, value in view}
        hosts, tablets = self._world.hosts, self._catalog.view.tablets
        stored = self._catalog.view.named(name)
        for row in tablets.get(stored, ()):
            low, high = bounds(*row.range)
            of_tablet = {k: v for k, v in wanted.items() if low <= k and (high is None or k < high)}
            for host in _places(row):
                there = _newest(hosts[host].rows, stored, low, high)
                for key in sorted(of_tablet.keys() | there.keys()):
                    read, found = of_tablet.get(key), there.get(key)
                    if read != found and not self._excuses(name, _parts(key), found, read):
                        self._rows.broken(
                            f"{host} has {key!r} of {name} as {found}, clients read {read}"
                        )

    def _excuses(self, name: str, row: Row, due: Found, there: Found) -> bool:
        expected, (key, base) = self.views[name], row
        return self.lost.excuse(base, lambda value: expected.key(value) == key, due, there)

    def compare(self, name: str, base: Iterable[Cell], view: Iterable[Cell]) -> None:
        """Compare a view with its base table, both as a client has read them from all replicas."""
        expected = self.views[name]
        wanted: dict[Row, tuple[int, bytes | None]] = {}
        for stored, time, value in base:
            key = expected.key(value)
            if key is not None:
                wanted[key, stored[8:]] = time, value
        there: dict[Row, tuple[int, bytes | None]] = {}
        for stored, time, value in view:
            there[_parts(stored)] = time, value
        self.compared += len(wanted)
        for row in sorted(wanted.keys() | there.keys()):
            due, found = wanted.get(row), there.get(row)
            if due == found or self._excuses(name, row, due, found):
                continue
            if found is None:
                self._rows.broken(f"{name} lacks {row}: the base table has {due}")
            elif due is None:
                self._rows.broken(f"{name} has {row} of {found}: the base table has it not")
            else:
                self._rows.broken(f"{name} has {row} as {found}, the base table as {due}")


def stored_row(key: bytes, base: bytes) -> bytes:
    """How a view stores the row of a base row, by that one's stored key."""
    return start_of(token_of(key)) + len(key).to_bytes(2, "big") + key + base[8:]


def _parts(stored: bytes) -> Row:
    """The inverse: the key of a view's row, and that of its base row."""
    length = int.from_bytes(stored[8:10], "big")
    return stored[10 : 10 + length], stored[10 + length :]


def _newest(
    rows: RowStore, table: str, low: bytes, high: bytes | None
) -> dict[bytes, tuple[int, bytes | None]]:
    """The rows of a range that a replica has, by their keys, without those that are deleted."""
    snapshot, found = rows.snapshot(), dict[bytes, tuple[int, bytes | None]]()
    for version in snapshot.versions(table, low, high):
        found.setdefault(version.key, (version.time, version.value))
    snapshot.close()
    return {key: cell for key, cell in found.items() if cell[1] is not None}


def _is_staged(rows: RowStore, base: str, version: Version) -> bool:
    """Whether a base row came by a stream, and waits on the disk for its view updates."""
    snapshot = rows.snapshot()
    found = is_staged(snapshot, base, version.key, version.time)
    snapshot.close()
    return found


def _places(row: TabletRow) -> tuple[str, ...]:
    """The hosts that requests wait for, in their places."""
    tablet = row.tablet
    moved = tablet.next is not None and tablet.stage.writes is Replicas.next
    return tuple(r.host for r in ((tablet.next or ()) if moved else tablet.replicas))
