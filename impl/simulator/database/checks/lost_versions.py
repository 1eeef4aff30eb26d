"""Versions of base rows that are lost with the only nodes that had them, which are given up.

Or were, until they were no longer asked to clean up: who is spared before hands over what it has. Who is behind may go on to
write rows of a tablet that it has lost, until it learns of that and removes them.
Nobody was promised such a version: a write that is acknowledged has a quorum, of which somebody is left, who has it, or a
newer one in its place; what was replaced does not go with a tablet that moves. But a view may have been updated from it,
and no replica of the base table knows that any more: it shows the lost version's row, or lacks that of the version
before, until the key is written again. Only such rows are excused, each by what the lost version itself makes of the view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.node.keys import bounds
from stagewright.impl.node.messages import Cell
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.checks.rows.view_places import OVER
from stagewright.impl.simulator.database.hosts import rows_held
from stagewright.impl.simulator.database.world import World
from stagewright.impl.storage.memory import Dropped, Superseded

Found = tuple[int, bytes | None] | None
"""A timestamp and a value, if there is a row."""


class LostVersions:
    """The lost versions of a run; `excused` counts differences that are put down to them."""

    def __init__(self, world: World, rows: Oracle) -> None:
        self.excused = 0
        self._world = world
        self._rows = rows
        # Of each base row, by its key: values by timestamps.
        self.found: dict[bytes, dict[int, bytes | None]] = {}
        # What nodes that are given up had while a tablet left them, also of views: who lives may drop it before the move ends.
        self._had: dict[tuple[str, int, str], set[Cell]] = {}
        # How long the logs were when that was looked at: who is spared after its tablet was rebuilt may write on meanwhile.
        self._looked: dict[tuple[str, int, str], int] = {}
        # Who has lost a tablet of a base table: how long its log was when it was looked at last.
        self._left: dict[tuple[str, tuple[int, int], str], int] = {}
        self._view: View | None = None

    def committed(self, before: View, after: View) -> None:
        """Something was committed: a tablet may have left nodes that are given up."""
        self._view = after
        for table, range_, name in [*self._left]:
            row = after.tablet_with(table, range_[1])
            if row is None or name in row.holders:
                self._lose_late(after, table, range_, name)
        for earlier in before.moving:
            row = after.tablet(earlier.table, earlier.number)
            if row is None or not (after.views_of(row.table) or row.table in after.views):
                continue
            hosts = {r.host for r in earlier.tablet.replicas}
            given_up, over = before.given_up | after.given_up, row.tablet.stage in OVER
            for name in hosts:
                place = row.table, row.number, name
                if name in given_up:
                    self._had.setdefault(place, set()).update(self._versions(name, row))
                    self._looked[place] = len(self._world.hosts[name].disk.log)
                elif not over:  # it hands over what it has before it cleans up
                    self._had.pop(place, None)
            gone = {h for h in hosts if (row.table, row.number, h) in self._had} - row.holders
            if gone:
                self._lose(row, gone, after)
                for name in gone if row.table not in after.views else ():
                    self._left[row.table, row.range, name] = self._looked[
                        row.table, row.number, name
                    ]

    def takes(self, row: TabletRow, key: bytes, time: int) -> bool:
        """Whether a row of that time goes with who loses a tablet, which nobody can ask for it."""
        return any(
            k == key and t >= time
            for host in row.lost
            for k, t, _ in self._had.get((row.table, row.number, host), ())
        )

    def _lose(self, row: TabletRow, gone: set[str], view: View) -> None:
        elsewhere = set[tuple[bytes, int]]()
        for name in self._world.hosts.keys() - view.given_up - gone:
            elsewhere |= {(key, time) for key, time, _ in self._versions(name, row)}
            elsewhere.update(self._replaced(name, row.table))
        newest = dict(sorted(elsewhere))
        for name in gone:
            had = self._had.pop((row.table, row.number, name))
            for key, time, value in had if row.table not in view.views else ():
                promised = (key[8:], time) in self._rows.acknowledged
                if (key, time) in elsewhere:
                    continue
                if not promised or newest.get(key, time) > time:
                    self.found.setdefault(key[8:], {})[time] = value

    def _lose_late(self, view: View, table: str, range_: tuple[int, int], name: str) -> None:
        """A node that has lost a tablet wrote rows of it until it learned that, and removed them."""
        begin, late = self._left.pop((table, range_, name)), set[Cell]()
        low, high = bounds(*range_)
        for record in self._world.hosts[name].disk.log[begin:]:
            if isinstance(record, Superseded):
                continue
            if isinstance(record, Dropped):
                keys = [key for key, _ in record.versions] if record.family == table else []
            else:
                found = [put.version for put in record if put.family == table]
                versions = [v for v in found if low <= v.key and (high is None or v.key < high)]
                late |= {(v.key, v.time, v.value) for v in versions}
                continue
            if any(low <= key and (high is None or key < high) for key in keys):
                break
        row = view.tablet_with(table, range_[1])
        if row is not None and late:
            self._had[table, row.number, name] = late
            self._lose(row, {name}, view)

    def _versions(self, name: str, row: TabletRow) -> set[Cell]:
        """The versions of a tablet's rows that are on a node's disk."""
        host = self._world.hosts[name]
        rows = rows_held(host)
        snapshot = rows.snapshot()
        found = {
            (v.key, v.time, v.value) for v in snapshot.versions(row.table, *bounds(*row.range))
        }
        snapshot.close()
        return found

    def _replaced(self, name: str, table: str) -> Iterator[tuple[bytes, int]]:
        """What a node has had and removed, as it had something newer: whatever was to follow from it has followed."""
        for record in self._world.hosts[name].disk.log:
            if isinstance(record, Superseded) and record.family == table:
                yield from record.versions

    def excuse(
        self, key: bytes, has: Callable[[bytes | None], bool], due: Found, there: Found
    ) -> bool:
        """Whether a lost version of a base row explains that a row of a view is not as it is due.

        `has` says whether it is the view's row of a value: a lost version shows its own, and hides another one.
        """
        if self._view is not None:
            for left in [*self._left]:
                self._lose_late(self._view, *left)
        newer = {t: v for t, v in self.found.get(key, {}).items() if due is None or t > due[0]}
        shown = there is not None and there in newer.items() and has(there[1])
        hidden = due is not None and there is None and not all(map(has, newer.values()))
        self.excused += shown or hidden
        return shown or hidden
