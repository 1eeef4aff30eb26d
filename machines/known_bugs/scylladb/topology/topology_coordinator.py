"""Mistakes put back into `TopologyCoordinator`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import NETWORK
from stagewright.machines.scylladb.topology import topology_coordinator
from stagewright.machines.scylladb.topology.control.topology_record import OPERATOR
from stagewright.machines.scylladb.topology.topology_coordinator import (
    API,
    COORDINATOR,
    WEAK,
    WITHOUT_NODE,
    At,
    Coordinator,
    Stage,
    T,
    Tablet,
    TopologyCoordinator,
    Transition,
)
from stagewright.spec import (
    Bool,
    BudgetName,
    Term,
    action,
    choose,
    count,
    every,
    flag,
    per,
    require,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

NO_WORK = 'design document 001: "If there is no work for the state machine"'
INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'
TABLETS_ALONE: dict[BudgetName, int | None] = {
    TopologyCoordinator.requests: 0,
    TopologyCoordinator.failures: 0,
    TopologyCoordinator.failovers: 0,
    TopologyCoordinator.drops: 0,
}


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "001-12",
    "design document 001, Tablet migration: a stage is advanced when its invariants hold",
    breaks=TopologyCoordinator.stages_are_left_when_they_are_done,
    budgets={
        TopologyCoordinator.requests: 0,
        TopologyCoordinator.failures: 0,
        TopologyCoordinator.migrations: 2,
    },
)
class NobodyChecksTheTerm(TopologyCoordinator):
    """A coordinator whose term is over could take a guard, and took a stage of the next migration for the one that it
    had done.
    """

    def _is_in_its_term(self, c: Term[Coordinator]) -> Bool:
        return (self.leader == c) | (self.leader != c)


@known_bug(
    "001-13",
    "design document 001, Topology states: the coordinator reads, decides and commits",
    breaks=(
        TopologyCoordinator.tablets_move_in_their_track,
        TopologyCoordinator.dropped_tables_have_no_transitions,
    ),
    budgets={TopologyCoordinator.requests: 0, TopologyCoordinator.failures: 0},
)
class CommitsLeaveGuardsAlone(TopologyCoordinator):
    """A commit overwrote what others had committed since its guard was taken: the stage of a table that was dropped."""

    def _outdate_guards(self) -> None:
        """Whoever has a guard may commit."""


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


@known_bug(
    "P01",
    "scylladb #16568",
    breaks=TopologyCoordinator.node_state_fits_transition_state,
    budgets={
        TopologyCoordinator.migrations: 0,
        TopologyCoordinator.drops: 0,
        TopologyCoordinator.failures: 1,
        TopologyCoordinator.failovers: 1,
    },
)
class StaleNodeAfterTheBarrier(TopologyCoordinator):
    """After a barrier the coordinator took its guard again, but went on with the node as it had read it
    before: it moved the topology on for a node that was being rolled back.
    """

    def _looks_again(self, c: Term[Coordinator]) -> None:
        """What was read before the barrier is taken for the truth."""


@known_bug(
    "001-717",
    'design document 001: "When a request is issued to a node the entry is added to the map"',
    breaks=TopologyCoordinator.requests_are_of_who_waits,
    budgets={TopologyCoordinator.migrations: 0, TopologyCoordinator.drops: 0},
)
class WhatIsRolledBackIsTriedAgain(TopologyCoordinator):
    """A decommission that had been rolled back was begun again, although its operator had been told that the node stays."""

    @action(by=COORDINATOR, fair=WEAK)
    def complete_rollback(self, c: Term[Coordinator]) -> None:
        """The node is normal again, and is to leave still."""
        super().complete_rollback(c)
        self.requested = True


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "001-368",
    'design document 001: "Tablets are migrated in parallel and independently"',
    breaks=(TopologyCoordinator.migrations_end, TopologyCoordinator.the_track_is_left),
    sizes={topology_coordinator.Tablet: 2},
    budgets={
        TopologyCoordinator.requests: 0,
        TopologyCoordinator.failures: 0,
        TopologyCoordinator.migrations: 2,
    },
)
class TheNextLeaderLooksForOneTablet(TopologyCoordinator):
    """A new coordinator took up the one tablet in transition, and nothing where it found two of them."""

    unknown = per(topology_coordinator.Tablet, flag())  # to the coordinator

    @action(by=NETWORK, spends=TopologyCoordinator.failovers)
    def elect(self, c: Term[Coordinator]) -> None:
        """Another node becomes the leader."""
        super().elect(c)
        two = count(self._is_moving(t) for t in topology_coordinator.Tablet) >= 2
        for t in topology_coordinator.Tablet:
            self.unknown[t] = two

    @action(by=topology_coordinator.COORDINATOR, fair=WEAK)
    def do_what_the_stage_asks(
        self, c: Term[Coordinator], t: Term[topology_coordinator.Tablet]
    ) -> None:
        """A barrier or an action runs, for a tablet that the coordinator knows."""
        super().do_what_the_stage_asks(c, t)
        require(~self.unknown[t], "the coordinator knows the tablet")


@known_bug(
    "P13",
    "scylladb #27958",
    breaks=TopologyCoordinator.work_is_noticed,
    budgets={
        TopologyCoordinator.migrations: 0,
        TopologyCoordinator.drops: 0,
        TopologyCoordinator.failures: 0,
        TopologyCoordinator.failovers: 0,
    },
)
class EventBetweenLookAndWait(TopologyCoordinator):
    """A request came after the coordinator had looked for work and before it waited for the event, which
    had fired by then: it slept over the request.
    """

    def _nothing_happened(self, c: Term[Coordinator]) -> None:
        """It was not looked at again."""


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "001-217",
    NO_WORK,
    breaks=TopologyCoordinator.coordinators_rest_where_there_is_no_work,
)
class OnlyTabletsAreWaitedFor(TopologyCoordinator):
    """A coordinator slept while tablets moved; at rest it read the topology again and again."""

    def _saw_no_work(self, c: Term[Coordinator]) -> Bool:
        return super()._saw_no_work(c) & (self.at[c] == At.decided) & self._tablets_move()


@known_bug(
    "001-229",
    'design document 001: "When a request is issued to a node the entry is added to the map"',
    breaks=TopologyCoordinator.requests_are_committed_at_any_time,
    budgets={TopologyCoordinator.requests: 1, TopologyCoordinator.migrations: 1},
)
class RequestsWaitForTheTrack(TopologyCoordinator):
    """A request was committed when no tablet moved: the balancer, which sees none, moved the next."""

    @action(by=OPERATOR, spends=TopologyCoordinator.requests)
    def ask_to_leave(self) -> None:
        """A request is committed at rest."""
        require(self.transition_state == Transition.null, "the topology is at rest")
        super().ask_to_leave()


@known_bug(
    "001-230",
    INDEPENDENTLY,
    breaks=TopologyCoordinator.tablets_are_moved_beside_others,
    sizes={Tablet: 2},
    budgets={TopologyCoordinator.requests: 0, TopologyCoordinator.migrations: 2},
)
class TheApiWaitsForTheTrack(TopologyCoordinator):
    """The API moved a tablet when the track of the last one had been left."""

    @action(by=API, spends=TopologyCoordinator.migrations)
    def start_migration(self, t: Term[Tablet]) -> None:
        """A request of the API moves a tablet at rest."""
        require(self.transition_state == Transition.null, "the topology is at rest")
        super().start_migration(t)


@known_bug(
    "001-231",
    'design document 000: tasks are "aborted due to keyspace/view drop", in whatever state',
    breaks=TopologyCoordinator.tables_are_dropped_at_any_time,
    budgets={TopologyCoordinator.requests: 0},
)
class WhatIsDoneIsNotDropped(TopologyCoordinator):
    """A table was not dropped while a stage of its tablet was done and not yet left."""

    @action(by=API, spends=TopologyCoordinator.drops)
    def drop_table(self, t: Term[Tablet]) -> None:
        """The table is dropped between two stages."""
        require(~self.ready.has(t), "nothing is to be committed of it")
        super().drop_table(t)


@known_bug(
    "001-511",
    INDEPENDENTLY,
    breaks=TopologyCoordinator.tablets_advance_independently,
    sizes={Tablet: 2},
    budgets={**TABLETS_ALONE, TopologyCoordinator.migrations: 2},
)
class TabletsAdvanceInStep(TopologyCoordinator):
    """A plan was committed when it had a stage for every tablet in transition: the slowest held up all others."""

    @action(by=COORDINATOR, fair=WEAK)
    def commit_plan(self, c: Term[Coordinator]) -> None:
        """What was planned is committed, once all tablets are in it."""
        waits = some(self._is_moving(t) & self.plan[c][t].is_none() for t in Tablet)
        require(~waits, "every tablet that moves is in the plan")
        super().commit_plan(c)


@known_bug(
    "001-512",
    INDEPENDENTLY,
    breaks=TopologyCoordinator.tablets_are_worked_on_independently,
    sizes={Tablet: 2},
    budgets={**TABLETS_ALONE, TopologyCoordinator.migrations: 2},
)
class OneTabletIsWorkedOnAtATime(TopologyCoordinator):
    """What the stage of a tablet asks for was begun when none was left whose next stage was to be committed."""

    @action(by=COORDINATOR, fair=WEAK)
    def do_what_the_stage_asks(self, c: Term[Coordinator], t: Term[Tablet]) -> None:
        """A barrier or an action runs, if no other tablet is done with its own."""
        others = some((other != t) & self.ready.has(other) for other in Tablet)
        require(~others, "no other tablet is ready for its next stage")
        super().do_what_the_stage_asks(c, t)


@known_bug(
    "001-580",
    INDEPENDENTLY,
    breaks=TopologyCoordinator.tablets_are_planned_independently,
    sizes={Tablet: 2},
    budgets={**TABLETS_ALONE, TopologyCoordinator.migrations: 2},
)
class TabletsArePlannedTogether(TopologyCoordinator):
    """The next stage of a tablet was planned when all that were in transition were done with theirs."""

    @action(by=COORDINATOR, fair=WEAK)
    def plan_stage(self, c: Term[Coordinator], t: Term[Tablet]) -> None:
        """The stage of each tablet is done, and this one gets its next one."""
        done = ((self.stage[o] == Stage.none) | self._is_known_to_be_done(c, o) for o in Tablet)
        require(every(done), "every tablet is done with its stage")
        super().plan_stage(c, t)


@known_bug(
    "001-605",
    'design document 001: "All this happens atomically"',
    breaks=TopologyCoordinator.coordinators_wait_for_no_other,
    budgets={
        TopologyCoordinator.migrations: 0,
        TopologyCoordinator.drops: 0,
        TopologyCoordinator.failures: 0,
    },
)
class TheOldCoordinatorIsWaitedFor(TopologyCoordinator):
    """Reads moved when the coordinator before had found out that its term was over: while it waited for a barrier, or was
    dead, the operation stood still.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def read_new(self, c: Term[Coordinator]) -> None:
        """Everything is streamed, and nobody else runs a barrier."""
        alone = every(self.at[other] != At.in_barrier for other in Coordinator)
        require(alone, "no other barrier runs")
        super().read_new(c)


BUGS = known_bugs_in(globals())
