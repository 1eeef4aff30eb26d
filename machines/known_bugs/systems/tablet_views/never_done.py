"""Mistakes put back into `TabletViews`: what is never done."""

from __future__ import annotations

from stagewright.machines.scylladb.views.view_task import TOPOLOGY
from stagewright.machines.systems.tablet_views import WEAK, Tablet, TabletViews
from stagewright.spec import FlagVar, Term, action, every, flag, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "000-239",
    "design document 000: the view building coordinator needs to react to following tablet operations",
    breaks=TabletViews.migrations_end,
    budgets={TabletViews.migrations: 2, TabletViews.splits: 1, TabletViews.repairs: 0},
)
class NewLeadersTakeUpOneMigration(TabletViews):
    """A new leader took up one of the two migrations that it found: the other tablet stayed where it was, its task aborted."""

    left_out: FlagVar = flag()

    @action(by=TOPOLOGY, spends=TabletViews.leader_changes)
    def change_leader(self) -> None:
        """Another node becomes the raft leader, and finds one tablet or both in transition."""
        super().change_leader()
        self.left_out = every(~self._is_at_rest(Term.of(t)) for t in Tablet)

    @action(by=TOPOLOGY, fair=WEAK)
    def write_both(self, t: Term[Tablet]) -> None:
        """A migration that the leader knows goes on."""
        require(~self.left_out | (t == Tablet.t0), "the leader knows of it")
        super().write_both(t)


BUGS = known_bugs_in(globals())
