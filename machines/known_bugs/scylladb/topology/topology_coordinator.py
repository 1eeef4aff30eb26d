"""Mistakes of the topology coordinator about tablets' transitions, which design document 001 rules out."""

from __future__ import annotations

from stagewright.machines.scylladb.topology.topology_coordinator import (
    API,
    COORDINATOR,
    WEAK,
    WITHOUT_NODE,
    Coordinator,
    Stage,
    T,
    Tablet,
    TopologyCoordinator,
)
from stagewright.spec import Bool, BudgetName, Term, action, choose, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

TABLETS_ALONE: dict[BudgetName, int | None] = {
    TopologyCoordinator.requests: 0,
    TopologyCoordinator.failures: 0,
    TopologyCoordinator.failovers: 0,
    TopologyCoordinator.drops: 0,
}


@known_bug(
    "001-59",
    'design document 001: when not in the track, "there are no tablet transitions in the system"',
    breaks=TopologyCoordinator.tablets_move_in_their_track,
    budgets={**TABLETS_ALONE, TopologyCoordinator.migrations: 2},
)
class TheTrackIsEnteredLater(TopologyCoordinator):
    """The API stored the transition of a tablet and left the track to the coordinator, which entered it when it found
    the tablet.
    """

    @action(by=API, spends=TopologyCoordinator.migrations)
    def start_migration(self, t: Term[Tablet]) -> None:
        """A request of the API moves a tablet."""
        require(self.transition_state.any_of(*WITHOUT_NODE), "no node is in transition")
        require(~self._is_moving(t), "the tablet is at rest")
        require(~self.dropped.has(t), "its table is there")
        self.stage[t] = Stage.write_both_read_old
        self._modify()

    @action(by=COORDINATOR, fair=WEAK)
    def enter_track(self, c: Term[Coordinator]) -> None:
        """The coordinator finds a tablet in transition."""
        require(self._tablets_move(), "a tablet is in transition")
        self._commit(c, T.null, T.tablet_migration)

    def _saw_no_work(self, c: Term[Coordinator]) -> Bool:
        return super()._saw_no_work(c) & ~((self.read[c] == T.null) & self._tablets_move())


@known_bug(
    "001-60",
    "design document 001: when stage is advanced, the expected invariants hold",
    breaks=TopologyCoordinator.stages_are_left_when_they_are_done,
    sizes={Tablet: 2},
    budgets={**TABLETS_ALONE, TopologyCoordinator.migrations: 2},
)
class OneBarrierForAllTablets(TopologyCoordinator):
    """A barrier that had passed for one tablet moved on all that waited for one, also those whose transition had begun
    after it.
    """

    def _planned(self, c: Term[Coordinator], t: Term[Tablet]) -> Term[Stage]:
        waits = self.stage[t] == Stage.write_both_read_old
        along = waits & some(self.plan[c][o] == Stage.streaming for o in Tablet)
        return choose(along, Stage.streaming, super()._planned(c, t))


@known_bug(
    "001-66",
    "design document 001: node operations have to wait for tablet migration track to finish",
    breaks=TopologyCoordinator.operators_are_answered_when_it_is_over,
    budgets={TopologyCoordinator.migrations: 0, TopologyCoordinator.drops: 0},
)
class AnsweredWhenReadsHaveMoved(TopologyCoordinator):
    """The operator was told that the node is decommissioned when nobody read from it any more, and shut it down."""

    @action(by=COORDINATOR, fair=WEAK)
    def leave_token_ring(self, c: Term[Coordinator]) -> None:
        """Reads use the new ring, and the operator is answered."""
        super().leave_token_ring(c)
        self.waits = False


BUGS = known_bugs_in(globals())
