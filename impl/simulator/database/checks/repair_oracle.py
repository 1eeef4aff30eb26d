"""What a repair promises, on the rows of replicas: it reads no definition.

What clients knew to be written when a repair was asked for is on every replica of the tablet when it is done, so
that one replica alone could be asked for it.
"""

from __future__ import annotations

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.node.keys import stored_key, token_in
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.hosts import rows_held
from stagewright.impl.simulator.database.tables import table_of
from stagewright.impl.simulator.database.world import World


class RepairOracle:
    """The repairs of a run; `checked` counts rows on replicas."""

    def __init__(self, world: World, oracle: Oracle) -> None:
        self._world = world
        self._oracle = oracle
        self._known: dict[str, dict[bytes, int]] = {}  # timestamps of keys, by repair
        self.checked = 0

    def committed(self, before: View, after: View) -> None:
        """Something was committed: a repair may be asked for, or done."""
        for table, rows in after.tablets.items():
            asked = [row for row in before.tablets.get(table, ()) if row.repair]
            for row in rows:
                if row.repair and row.repair not in self._known:
                    self._known[row.repair] = self._newest(table)
                low, high = row.range  # the tablet may be split or merged with that
                for one in asked:
                    if one.range[0] < high and low < one.range[1] and one.repair != row.repair:
                        self._check(row, self._known[one.repair], after)

    def _newest(self, table: str) -> dict[bytes, int]:
        known = self._oracle.newest.items()
        return {stored_key(key): seen[0] for key, seen in known if table_of(key) == table}

    def _check(self, row: TabletRow, known: dict[bytes, int], view: View) -> None:
        low, high = row.range
        mine = {key: time for key, time in known.items() if low < token_in(key) <= high}
        for name in sorted({r.host for r in row.tablet.replicas} - view.given_up):
            host = self._world.hosts[name]
            rows = rows_held(host)
            for key, time in mine.items():
                found = rows.get(row.table, key)
                self.checked += 1
                if self._oracle.may_be_gone(row.table, time):
                    continue
                if found is None or found.time < time:
                    self._oracle.broken(
                        f"{row.name} is repaired, and {name} lacks {key!r} at {time}"
                    )
