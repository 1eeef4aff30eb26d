"""What streaming promises, on the rows of replicas: it reads no definition.

A node that is to be read has fetched what clients knew when the streaming began: of the token ring every row, as every
quorum of those that had the range has a source in it; of a tablet every row that one of its sources had.
"""

from __future__ import annotations

from stagewright.impl.catalog.tablet_rows import TabletRow
from stagewright.impl.catalog.view import View
from stagewright.impl.node.keys import stored_key, token_in
from stagewright.impl.simulator.database.checks.oracle import Oracle
from stagewright.impl.simulator.database.checks.rows.quorum_oracle import QuorumOracle
from stagewright.impl.simulator.database.tables import table_of
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Role, Stage
from stagewright.machines.scylladb.topology.topology_states import TransitionState as T

Wanted = list[tuple[str, str, bytes, int]]
"""A node, a table, the stored key and the timestamp that the node is to have, or a later one."""


class StreamOracle:
    """The streaming of a run; `checked` counts rows of nodes that gained them."""

    def __init__(self, quorums: QuorumOracle, oracle: Oracle) -> None:
        self._has = quorums.has
        self._oracle = oracle
        self._ranges: Wanted = []  # of the session of the topology
        self._tablets: dict[str, Wanted] = {}  # by session
        self.checked = 0

    def committed(self, before: View, after: View) -> None:
        """Something was committed: streaming may begin or be over."""
        if after.session and after.session != before.session:
            self._ranges = self._of_ranges(after)
        if before.transition_state is T.write_both_read_old:
            if after.transition_state is T.write_both_read_new:
                self._check(self._ranges, "its ranges")
            if after.transition_state is not T.write_both_read_old:
                self._ranges = []
        if before.tablets == after.tablets:
            return
        for row in after.moving:
            if row.tablet.stage is Stage.streaming and row.session not in self._tablets:
                self._tablets[row.session] = self._of_tablet(row, after)
        for row in before.moving:
            if row.tablet.stage is Stage.streaming and row.session in self._tablets:
                self._follow(row, after)

    def _follow(self, row: TabletRow, after: View) -> None:
        now = after.tablet(row.table, row.number)
        if now is not None and now.tablet.stage is Stage.streaming:
            return
        wanted = self._tablets.pop(row.session)
        if now is not None and now.tablet.stage is Stage.write_both_read_new:
            self._check(wanted, row.name)

    def _of_ranges(self, view: View) -> Wanted:
        found: Wanted = []
        for key, seen in self._oracle.newest.items():
            table, stored = table_of(key), stored_key(key)
            if table in view.vnode_tables:
                for name in view.fetchers(token_in(stored), view.vnode_tables[table]):
                    found.append((name, table, stored, seen[0]))
        return found

    def _of_tablet(self, row: TabletRow, view: View) -> Wanted:
        """What a source has that is not given up."""
        sources = row.hosts[Role.leaving if row.kind is Kind.migration else Role.staying]
        there = [s for s in sources if s not in view.given_up]
        low, high = row.range
        return [
            (name, row.table, stored, seen[0])
            for key, seen in self._oracle.newest.items()
            if table_of(key) == row.table
            and low < token_in(stored := stored_key(key)) <= high
            and any(self._has(s, row.table, stored, seen[0]) for s in there)
            for name in row.hosts[Role.pending]
        ]

    def _check(self, wanted: Wanted, what: str) -> None:
        for name, table, stored, time in wanted:
            if table in self._oracle.dropped:
                continue
            self.checked += 1
            if not self._has(name, table, stored, time):
                text = f"{name} has streamed {what}, and lacks {stored!r} at {time}"
                self._oracle.broken(text)
                return
