"""What an acknowledgment says while replicas are gained, or given away, on their rows: it reads no definition.

A write that begins when all nodes write to pending replicas is acknowledged by as many of all of them as a quorum has
and one more for each pending one: whichever replicas stay then, a quorum of them has it. Where fewer replicas are to be
left, a quorum of these has it. What a read returns that begins then is as good as acknowledged: it writes back what a
pending replica lacks.
"""

from __future__ import annotations

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.view import View
from stagewright.impl.node.keys import stored_key, token_in
from stagewright.impl.ring.vnodes import Chosen
from stagewright.impl.simulator.database.checks.oracle import Oracle, Seen
from stagewright.impl.simulator.database.checks.rows.quorum_oracle import QuorumOracle
from stagewright.impl.simulator.database.tables import table_of
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.topology.topology_states import TransitionState

_TO_BOTH = (Stage.rebuild_repair, Stage.streaming, Stage.write_both_read_new)
WRITTEN, READ = "was acknowledged", "was read"


class PendingOracle:
    """The requests of a run; `checked` counts those that were answered while replicas came or went."""

    def __init__(self, quorums: QuorumOracle, catalog: Catalog, oracle: Oracle) -> None:
        self._has = quorums.has
        self._catalog = catalog
        self._oracle = oracle
        self._begun: dict[tuple[bytes, int], Chosen] = {}
        self.checked = 0
        self._reads: dict[int, Chosen] = {}
        oracle.begins.append(self._begin)
        oracle.listeners.append(self._know)
        oracle.readers.append(self)

    def _begin(self, key: bytes, timestamp: int) -> None:
        """A client sends a write: whoever coordinates it knows of what a barrier has passed for."""
        chosen = _to_both(self._catalog.view, key)
        if chosen is not None:
            self._begun[key, timestamp] = chosen

    def _know(self, key: bytes, seen: Seen) -> None:
        """A client knows of a row: by its acknowledgment, if that was sent."""
        chosen = self._begun.pop((key, seen[0]), None)
        if chosen is not None and (key, seen[0]) in self._oracle.acknowledged:
            self._check(key, seen, chosen, WRITTEN)

    def begin_read(self, number: int, key: bytes) -> None:
        """A client asks for a row; where replicas only leave, those that stay may be asked alone."""
        chosen = _to_both(self._catalog.view, key)
        if chosen is not None and chosen.pending:
            self._reads[number] = chosen

    def end_read(self, number: int, key: bytes, seen: Seen) -> None:
        """It has it: there may be none, and then nothing is written back."""
        chosen = self._reads.pop(number, None)
        if chosen is not None and seen[0]:
            self._check(key, seen, chosen, READ)

    def _check(self, key: bytes, seen: Seen, chosen: Chosen, told: str) -> None:
        view = self._catalog.view
        if _to_both(view, key) != chosen:
            return  # replicas that have left may have been cleaned up
        self.checked += 1
        table, stored = table_of(key), stored_key(key)
        have = [n for n in chosen.writes if self._has(n, table, stored, seen[0])]
        needed = view.factor(table, chosen, writes=True) // 2 + 1 + len(chosen.pending)
        if len(have) < needed:
            text = f"{key!r} at {seen} {told}, and is on {have} of {[*chosen.writes]}"
            self._oracle.broken(f"{text}, of which {[*chosen.pending]} were pending")
        there = [n for n in chosen.fewer if n in have]
        if told == WRITTEN and chosen.fewer and len(there) < len(chosen.fewer) // 2 + 1:
            text = f"{key!r} at {seen} {told}, and is on {there} of {[*chosen.fewer]}"
            self._oracle.broken(f"{text}, which are left when the others go")


def _to_both(view: View, key: bytes) -> Chosen | None:
    """The replicas of a key if some are pending or leave for good, and every node knows that."""
    table, token = table_of(key), token_in(stored_key(key))
    if table not in view.tables:
        return None
    chosen = view.replicas(table, token)
    row = view.tablet_with(table, token)
    if row is None:
        knows = view.transition_state is TransitionState.write_both_read_new
    else:
        knows = row.tablet.stage in _TO_BOTH
    return chosen if knows and (chosen.pending or chosen.fewer) else None
