"""How the topology coordinator reads, waits and commits: guards, plans, and the event that wakes it.

A coordinator takes a guard on group0 and reads the topology under it. It gives the guard up while a barrier or an
action runs, for others commit meanwhile, and takes it again. A commit succeeds only if nobody committed since the
guard was taken (compare and set). An old coordinator may still be at work when a new one begins. There are two
tracks, which exclude each other: the decommission of one node, of which `topology_control.py` has the other
operations, and tablets, whose transitions are as in `tablet_migration.py`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.cluster import NETWORK
from stagewright.machines.scylladb.topology.control.topology_record import OPERATOR
from stagewright.machines.scylladb.topology.topology_states import NodeState
from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    SetVar,
    States,
    Term,
    accepts,
    action,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    independent,
    invariant,
    leads_to,
    lemma,
    liveness,
    one_of,
    optional,
    per,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
)

WEAK = Fairness.WEAK
API = Actor("API")
COORDINATOR = Actor("topology coordinator")


class Coordinator(Entity, scope=2):
    """A node that is, or was, the topology coordinator."""


class Tablet(Entity, scope=1):
    """A tablet."""


class Transition(States):
    """The transition states of a decommission, during which the node is decommissioning, and of the tablets' track."""

    # fmt: off
    #                     goes on to,                                   or back to
    null                = ("write_both_read_old", "tablet_migration"), ()
    write_both_read_old = ("write_both_read_new",),                    ("rollback_to_normal",)
    write_both_read_new = ("left_token_ring",),                        ()
    left_token_ring     = ("null",),                                   ()
    rollback_to_normal  = ("null",),                                   ()
    tablet_migration    = ("null",),                                   ()
    # fmt: on

    def __init__(self, goes_on: tuple[str, ...], goes_back: tuple[str, ...]) -> None:
        self.goes_on = goes_on
        self.goes_back = goes_back


T = Transition
FOLLOWERS = {t: frozenset(Transition[name] for name in (*t.goes_on, *t.goes_back)) for t in T}
WITHOUT_NODE = (T.null, T.tablet_migration)
"""While the transition state is one of these, no node is in transition."""


class Stage(States):
    """Stages of a tablet's transition, few enough to tell; all but the first ask for something to be done."""

    # fmt: off
    #                     is followed by
    none                = "write_both_read_old"
    write_both_read_old = "streaming"  # when a barrier has passed
    streaming           = "cleanup"    # when an action is done
    cleanup             = "none"       # when an action is done
    # fmt: on

    def __init__(self, following: str) -> None:
        self.following = following


class At(Enum):
    """Where a coordinator is in its loop."""

    top = auto()  # it knows nothing
    decided = auto()  # it has read the topology, and holds a guard
    in_barrier = auto()  # it has given its guard up
    passed = auto()  # the barrier passed, and it holds a guard again
    waiting = auto()  # there was no work: it waits for an event


class TopologyCoordinator(Machine):
    """Two coordinators, each of which may take the other's place, beside an API that commits too.

    They drive the decommission of a node, and migrations of tablets.
    """

    requests = budget(1, doc="requests to leave")
    migrations = budget(1, doc="migrations that the API starts")
    drops = budget(1, doc="tables that the API drops")
    failures = fault_budget(1, doc="barriers that fail")
    failovers = fault_budget(1, doc="changes of the raft leader, whose node coordinates")

    exercised_at = scopes(
        {migrations: 0, drops: 0},
        {requests: 2, failovers: 2, migrations: 0, drops: 0},
        {requests: 0, failures: 0, migrations: 2, failovers: 2},
        {requests: 0, failures: 0, migrations: 2, Tablet: 2},
        {drops: 0, failures: 0},
        {},
        {requests: 0, failures: 2, failovers: 2, Tablet: 1},
        {drops: 0, failures: 2, Tablet: 1},
    )

    # committed to group0
    node_state: OneVar[NodeState] = one_of(NodeState, init=NodeState.normal)
    transition_state: OneVar[Transition] = one_of(Transition, init=T.null)
    requested: FlagVar = flag()
    stage = per(Tablet, one_of(Stage, init=Stage.none))
    dropped: SetVar[Tablet] = set_of(Tablet)  # their tables are gone
    ready: SetVar[Tablet] = set_of(Tablet)  # what their stage asks for has been done
    leader: OneVar[Coordinator] = one_of(Coordinator)
    # the coordinators
    at = per(Coordinator, one_of(At, init=At.top))
    read = per(Coordinator, one_of(Transition, init=T.null))  # as it was when last read
    saw_request: SetVar[Coordinator] = set_of(Coordinator)  # a request was pending then
    # nobody has committed since it took its guard
    guarded: SetVar[Coordinator] = set_of(Coordinator)
    plan = per(Coordinator, per(Tablet, optional(Stage)))  # the stage that is to be committed
    # the stage of which it knows that it is done
    done = per(Coordinator, per(Tablet, optional(Stage)))
    events: SetVar[Coordinator] = set_of(Coordinator)  # something happened since it looked
    # the operator
    waits: FlagVar = flag()  # for the answer to a request

    # -- the loop --------------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def start_operation(self, c: Term[Coordinator]) -> None:
        """The leader takes a guard and reads the topology, to decide and plan again."""
        require(self.at[c] == At.top, "the coordinator is at the top of its loop")
        require(self._is_in_its_term(c), "the coordinator leads")
        self.guarded.add(c)
        for t in Tablet:
            self.plan[c][t] = None
        self.read[c] = self.transition_state
        self.saw_request.put(c, self.requested)
        self.events.discard(c)
        self.at[c] = At.decided

    def _is_in_its_term(self, c: Term[Coordinator]) -> Bool:
        """The raft read barrier before a guard tells a node that its term is over."""
        return self.leader == c

    @action(by=COORDINATOR, fair=WEAK)
    def run_barrier(self, c: Term[Coordinator]) -> None:
        """A node's transition goes on: the guard is given up while the barrier of its state runs."""
        require(self.at[c] == At.decided, "the coordinator has decided")
        require(~self.read[c].any_of(*WITHOUT_NODE), "a node's transition goes on")
        self.guarded.discard(c)
        self.at[c] = At.in_barrier

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self, c: Term[Coordinator]) -> None:
        """The barrier passed; the guard is taken, and the node looked up, again."""
        require(self.at[c] == At.in_barrier, "a barrier runs")
        self._looks_again(c)
        self.guarded.add(c)
        self.at[c] = At.passed

    def _looks_again(self, c: Term[Coordinator]) -> None:
        require(self._unchanged(c), "the topology is still in the state of the barrier")

    def _unchanged(self, c: Term[Coordinator]) -> Bool:
        return self.read[c] == self.transition_state

    @action(by=COORDINATOR, fair=WEAK)
    def start_over(self, c: Term[Coordinator]) -> None:
        """Another state is found than the barrier was run for."""
        require(self.at[c] == At.in_barrier, "a barrier runs")
        require(~self._unchanged(c), "the topology is in another state")
        self.at[c] = At.top

    @action(by=COORDINATOR, fair=WEAK)
    def lose_race(self, c: Term[Coordinator]) -> None:
        """Somebody committed since the guard was taken: group0_concurrent_modification."""
        require(self.at[c].any_of(At.decided, At.passed), "the coordinator holds a guard")
        require(~self.guarded.has(c), "its guard is of an older state")
        self.at[c] = At.top

    # -- the decommission ------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def start_decommission(self, c: Term[Coordinator]) -> None:
        """The request to leave is taken up."""
        require(self.saw_request.has(c), "a request is pending")
        self._commit(c, T.null, T.write_both_read_old)
        self.requested = False
        self.node_state = NodeState.decommissioning

    @action(by=COORDINATOR, fair=WEAK)
    def read_new(self, c: Term[Coordinator]) -> None:
        """Everything is streamed."""
        self._barrier_passed(c)
        self._commit(c, T.write_both_read_old, T.write_both_read_new)

    @action(by=COORDINATOR, fair=WEAK)
    def leave_token_ring(self, c: Term[Coordinator]) -> None:
        """Reads use the new ring."""
        self._barrier_passed(c)
        self._commit(c, T.write_both_read_new, T.left_token_ring)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_left(self, c: Term[Coordinator]) -> None:
        """The node is left."""
        self._barrier_passed(c)
        self._commit(c, T.left_token_ring, T.null)
        self.node_state = NodeState.left
        self.waits = False

    @action(by=COORDINATOR, spends=failures)
    def roll_back(self, c: Term[Coordinator]) -> None:
        """The barrier failed before reads used the new ring."""
        require(self.at[c] == At.in_barrier, "a barrier runs")
        self._looks_again(c)
        require(self.read[c] == T.write_both_read_old, "there is a way back")
        self._becomes(c, T.rollback_to_normal)

    @action(by=COORDINATOR, fair=WEAK)
    def complete_rollback(self, c: Term[Coordinator]) -> None:
        """The node is normal again."""
        self._barrier_passed(c)
        self._commit(c, T.rollback_to_normal, T.null)
        self.node_state = NodeState.normal
        self.waits = False

    def _barrier_passed(self, c: Term[Coordinator]) -> None:
        require(self.at[c] == At.passed, "barrier passed")

    def _commit(self, c: Term[Coordinator], source: Transition, target: Transition) -> None:
        require(self.read[c] == source, f"it has read {source.name}")
        require(self.guarded.has(c), "nobody committed since it took its guard")
        self._becomes(c, target)

    def _becomes(self, c: Term[Coordinator], target: Transition) -> None:
        self.transition_state = target
        self._modify(c)

    # -- tablets ---------------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def do_what_the_stage_asks(self, c: Term[Coordinator], t: Term[Tablet]) -> None:
        """A barrier or an action runs, without a guard; that of a last coordinator may run still."""
        require(self.read[c] == T.tablet_migration, "it has seen that tablets are in transition")
        require(self._is_moving(t), "the stage asks for something")
        require(self.done[c][t] != self.stage[t], "it is not known to be done")
        self.done[c][t] = self.stage[t]
        self.ready.add(t)
        self.guarded.discard(c)
        rests = self.at[c].any_of(At.decided, At.waiting)
        self.at[c] = choose(rests, At.top, self.at[c])

    @action(by=COORDINATOR, fair=WEAK)
    def plan_stage(self, c: Term[Coordinator], t: Term[Tablet]) -> None:
        """The coordinator plans the next stage of a tablet, where what the last one asked for is done."""
        require(self.guarded.has(c), "it has a guard")
        require(self._is_known_to_be_done(c, t), "what the stage asks for is known to be done")
        self.plan[c][t] = self.stage[t].column(_following)

    @action(by=COORDINATOR, fair=WEAK)
    def commit_plan(self, c: Term[Coordinator]) -> None:
        """All that was planned is committed at once, if nothing was since the guard was taken."""
        require(some(self.plan[c][t].is_some() for t in Tablet), "something is planned")
        require(self.guarded.has(c), "nobody committed since it took its guard")
        for t in Tablet:
            self.stage[t] = self._planned(c, t)
            self.ready.put(t, self.ready.has(t) & self.plan[c][t].is_none())
        self._modify(c)

    @action(by=COORDINATOR, fair=WEAK)
    def leave_track(self, c: Term[Coordinator]) -> None:
        """No tablet is in transition any more: the topology is at rest."""
        require(~self._tablets_move(), "no tablet is in transition")
        self._commit(c, T.tablet_migration, T.null)

    @action(by=API, spends=migrations)
    def start_migration(self, t: Term[Tablet]) -> None:
        """A request of the API moves a tablet: the coordinator will find it in transition."""
        require(self.transition_state.any_of(*WITHOUT_NODE), "no node is in transition")
        require(~self._is_moving(t), "the tablet is at rest")
        require(~self.dropped.has(t), "its table is there")
        self.transition_state = T.tablet_migration
        self.stage[t] = Stage.write_both_read_old
        self._modify()

    @action(by=API, spends=drops)
    def drop_table(self, t: Term[Tablet]) -> None:
        """The table of a tablet is dropped, be the tablet in transition or not."""
        self.dropped.add(t)
        self.stage[t] = Stage.none
        self.ready.discard(t)
        self._modify()

    def _is_moving(self, t: Term[Tablet]) -> Bool:
        return self.stage[t] != Stage.none

    def _tablets_move(self) -> Bool:
        return some(self._is_moving(t) for t in Tablet)

    def _is_known_to_be_done(self, c: Term[Coordinator], t: Term[Tablet]) -> Bool:
        return self.done[c][t] == self.stage[t]

    def _planned(self, c: Term[Coordinator], t: Term[Tablet]) -> Term[Stage]:
        found = self.stage[t]
        for stage in Stage:
            found = choose(self.plan[c][t] == stage, stage, found)
        return found

    # -- waiting ---------------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def wait(self, c: Term[Coordinator]) -> None:
        """There was no work when it looked, and nothing has happened since: it waits, without its guard."""
        require(self.at[c] == At.decided, "the coordinator has decided")
        require(self._saw_no_work(c), "there was no work")
        self._nothing_happened(c)
        self.guarded.discard(c)
        self.at[c] = At.waiting

    def _saw_no_work(self, c: Term[Coordinator]) -> Bool:
        """Neither a transition nor a request; or tablets, and what they ask for is still being done."""
        at_rest = (self.read[c] == T.null) & ~self.saw_request.has(c)
        done = some(self._is_moving(t) & self._is_known_to_be_done(c, t) for t in Tablet)
        return at_rest | (self._tablets_move() & ~done)

    def _nothing_happened(self, c: Term[Coordinator]) -> None:
        require(~self.events.has(c), "no event came since")

    def _modify(self, by: Term[Coordinator] | None = None) -> None:
        """Every guard that was taken before is out of date, and whoever waits is woken."""
        self._outdate_guards()
        for c in Coordinator:
            waits = self.at[c] == At.waiting
            looks = waits if by is None else waits | (by == c)
            self.at[c] = choose(looks, At.top, self.at[c])
            self.events.add(c)

    def _outdate_guards(self) -> None:
        self.guarded = frozenset()

    # -- what happens around it -------------------------------------------------------------------------------------

    @action(by=OPERATOR, spends=requests)
    def ask_to_leave(self) -> None:
        """A request is committed: an event."""
        require(self.node_state == NodeState.normal, "the node is normal")
        self.requested = True
        self.waits = True
        self._modify()

    @action(by=NETWORK, spends=failovers)
    def elect(self, c: Term[Coordinator]) -> None:
        """Another node becomes the leader, in whatever it still does; the old one may not know yet.

        What is done of the stages it has to find out.
        """
        require(self.leader != c, "another node leads")
        self.leader = c
        for t in Tablet:
            self.done[c][t] = None

    # -- promises --------------------------------------------------------------------------------------

    @invariant
    def node_state_fits_transition_state(self) -> Bool:
        """The state of the node and that of the topology are a pair of the table (scylladb #16568)."""
        moving = self.node_state == NodeState.decommissioning
        return ~self.transition_state.any_of(*WITHOUT_NODE) == moving

    @step_property
    def commits_follow_the_table(self, after: Self) -> Bool:
        """001: the order of the transition states; nobody undoes what another coordinator has committed."""
        old, new = self.transition_state, after.transition_state
        return (old != new).implies(old.column(lambda state: FOLLOWERS[state]).has(new))

    @step_property
    def nodes_that_left_are_kept(self, after: Self) -> Bool:
        """001: "Nodes in state left are never removed from the state"."""
        is_left = self.node_state == NodeState.left
        return is_left.implies(after.node_state == NodeState.left)

    @step_property
    def operators_are_answered_when_it_is_over(self, after: Self) -> Bool:
        """001: node operations "have to wait for tablet migration track to finish before they can take over the state
        machine": whoever asked for one is answered when it has ended, and not before: the node is left, or normal again.
        """
        left = (self.transition_state == T.left_token_ring) & (after.node_state == NodeState.left)
        back = self.transition_state == T.rollback_to_normal
        back = back & (after.node_state == NodeState.normal)
        ends = (left | back) & (after.transition_state == T.null)
        return (self.waits & ~after.waits).implies(ends)

    @invariant
    def requests_are_of_who_waits(self) -> Bool:
        """001: "When a request is issued to a node the entry is added to the map": by an operator, who waits for the answer. No
        coordinator issues one, nor again one that it has answered.
        """
        return self.requested.implies(self.waits)

    @step_property
    def states_are_left_after_their_barrier(self, after: Self) -> Bool:
        """Who moves a node's transition on has run the barrier of the state that it leaves."""
        old = self.transition_state
        moves = (old != after.transition_state) & ~old.any_of(*WITHOUT_NODE)
        return moves.implies(
            some(
                self.at[c].any_of(At.in_barrier, At.passed)
                & (self.read[c] == old)
                & (after.at[c] == At.top)
                for c in Coordinator
            )
        )

    @invariant
    def tablets_move_in_their_track(self, t: Term[Tablet]) -> Bool:
        """001: "The tablet migration track excludes with other topology changes"."""
        return self._is_moving(t).implies(self.transition_state == T.tablet_migration)

    @invariant
    def dropped_tables_have_no_transitions(self, t: Term[Tablet]) -> Bool:
        """No commit brings back what it did not read: the transition of a tablet goes with its table."""
        return self.dropped.has(t).implies(~self._is_moving(t))

    @step_property
    def stages_follow_each_other(self, after: Self, t: Term[Tablet]) -> Bool:
        """A stage is followed by the next one, and no replica is cleaned up before another was streamed to; only
        with its table a transition ends at once.
        """
        follows = after.stage[t] == self.stage[t].column(_following)
        same = after.stage[t] == self.stage[t]
        streamed = (after.stage[t] == Stage.cleanup).implies(self.stage[t] == Stage.streaming)
        return same | (follows & streamed) | after.dropped.has(t)

    @step_property
    def stages_are_left_when_they_are_done(self, after: Self, t: Term[Tablet]) -> Bool:
        """001: "When stage is advanced, it means that expected invariants about cluster-wide state relevant to
        the tablet, associated with the next stage, hold".
        """
        leaves = self._is_moving(t) & (after.stage[t] != self.stage[t]) & ~after.dropped.has(t)
        return leaves.implies(self.ready.has(t))

    @accepts(ask_to_leave)
    def requests_are_committed_at_any_time(self) -> Bool:
        """001: "When a request is issued to a node the entry is added to the map", whatever coordinators do meanwhile."""
        return self.node_state == NodeState.normal

    @accepts(start_migration)
    def tablets_are_moved_beside_others(self, t: Term[Tablet]) -> Bool:
        """001: "Tablets are migrated in parallel and independently": the API moves one while others are in transition."""
        rests = ~self._is_moving(t) & ~self.dropped.has(t)
        return rests & self.transition_state.any_of(*WITHOUT_NODE)

    @accepts(do_what_the_stage_asks)
    def tablets_are_worked_on_independently(self, c: Term[Coordinator], t: Term[Tablet]) -> Bool:
        """001: "Tablets are migrated in parallel and independently": what the stage of one asks for is done however
        far the others are.
        """
        sees = self.guarded.has(c) & (self.transition_state == T.tablet_migration)
        return sees & (self.stage[t] != Stage.none) & (self.done[c][t] != self.stage[t])

    @accepts(commit_plan)
    def tablets_advance_independently(self, c: Term[Coordinator]) -> Bool:
        """The same for its next stage: as soon as one is planned, for whichever tablet, it can be committed."""
        return self.guarded.has(c) & some(self.plan[c][t].is_some() for t in Tablet)

    @independent(plan_stage, start_migration, drop_table, of=Tablet)
    def tablets_are_planned_independently(self) -> None:
        """001, "independently": a tablet is given its next stage, or moved by the API, or dropped, wherever others are."""

    @independent(
        start_operation,
        run_barrier,
        pass_barrier,
        start_over,
        start_decommission,
        read_new,
        leave_token_ring,
        finish_left,
        complete_rollback,
        plan_stage,
        commit_plan,
        leave_track,
        of=Coordinator,
    )
    def coordinators_wait_for_no_other(self) -> None:
        """001: "All this happens atomically": a coordinator commits what nobody else has changed since it read it, and asks
        none that may be still at work, or dead.
        """

    @accepts(drop_table)
    def tables_are_dropped_at_any_time(self, t: Term[Tablet]) -> Bool:
        """No coordinator is asked, whatever it has begun with the tablet."""
        return ~self.dropped.has(t)

    @accepts(wait)
    def coordinators_rest_where_there_is_no_work(self, c: Term[Coordinator]) -> Bool:
        """001: "If there is no work for the state machine": neither a transition nor a request, or only tablets of which none
        is ready for its next stage. A coordinator that has read so, and knows of nothing since, need not look again before
        something happens.
        """
        no_work = (self.transition_state == T.null) & ~self.requested & ~self._tablets_move()
        moving = (self.transition_state == T.tablet_migration) & self._tablets_move()
        at_work = moving & self.ready.is_empty()
        return (self.at[c] == At.decided) & self.guarded.has(c) & (no_work | at_work)

    @sometimes(at={requests: 0, migrations: 1, drops: 1, failovers: 0})
    def a_table_goes_while_its_tablet_moves(self, t: Term[Tablet]) -> Bool:
        """The API asks nobody: the coordinator finds the track without the tablet for which it is there."""
        return self.dropped.has(t) & (self.transition_state == T.tablet_migration)

    @sometimes(at={requests: 0, migrations: 1, drops: 0, failovers: 0})
    def a_tablet_is_left_to_clean_up(self, t: Term[Tablet]) -> Bool:
        """001, "Tablet migration": what the API has asked for gets as far as to its last stage."""
        return self.stage[t] == Stage.cleanup

    @sometimes(at={requests: 1, migrations: 0, failures: 1, failovers: 0})
    def a_decommission_is_undone(self, after: Self) -> Bool:
        """A barrier that fails in time takes nobody out of the ring: the operator is told that the node has stayed."""
        undone = (self.transition_state == T.rollback_to_normal) & self.waits & ~after.waits
        return undone & (after.node_state == NodeState.normal)

    # -- lemmas for the proof --------------------------------------------------------------------------

    @lemma
    def guards_are_of_what_was_read(self, c: Term[Coordinator]) -> Bool:
        """Who has a guard has decided, or passed its barrier, and what it read is so."""
        sure = self.at[c].any_of(At.decided, At.passed) & self._unchanged(c)
        barrier = self.at[c].any_of(At.in_barrier, At.passed)
        unplanned = every(self.plan[c][t].is_none() for t in Tablet)
        of_a_node = ~self.read[c].any_of(*WITHOUT_NODE)
        known = self.guarded.has(c).implies(sure) & barrier.implies(of_a_node)
        return known & of_a_node.implies(unplanned)

    @lemma
    def requests_are_of_a_normal_node(self, c: Term[Coordinator]) -> Bool:
        """Whom a coordinator with a guard saw asking still asks; nobody asks during its own transition."""
        saw = self.saw_request.has(c)
        pending = (self.guarded.has(c) & saw).implies(self.requested)
        normal = self.requested.implies(self.node_state == NodeState.normal)
        return pending & normal & saw.implies(self.read[c].any_of(*WITHOUT_NODE))

    @lemma
    def plans_are_of_what_is_committed(self, c: Term[Coordinator], t: Term[Tablet]) -> Bool:
        """Under a guard that is not out of date, what is planned is the next stage of what is so."""
        following = self.stage[t].column(_following)
        planned = self.guarded.has(c) & self.plan[c][t].is_some()
        known = self.done[c][t] != Stage.none  # there is nothing to be done at rest
        return known & planned.implies(self._is_moving(t) & (self.plan[c][t] == following))

    @lemma
    def what_is_taken_for_done_is_done(self, c: Term[Coordinator], t: Term[Tablet]) -> Bool:
        """Who has a guard, or the coordinator, knows of nothing done that is not; what is planned is done."""
        knows = self._is_in_its_term(c) | self.guarded.has(c)
        done = self._is_moving(t) & self._is_known_to_be_done(c, t)
        planned = self.guarded.has(c) & self.plan[c][t].is_some()
        return (knows & done | planned).implies(self.ready.has(t))

    @lemma
    def the_coordinator_knows_of_no_later_stage(
        self, c: Term[Coordinator], t: Term[Tablet]
    ) -> Bool:
        """Where somebody has a guard, the coordinator knows of this stage or of nothing; of the last one at rest."""
        nothing_else = self.done[c][t].is_none() | (self.done[c][t] == self.stage[t])
        of_the_last = self.done[c][t].is_none() | (self.done[c][t] == Stage.cleanup)
        guarded = self.guarded.has(c) & self.plan[c][t].is_some()
        guarded = guarded | some(self.guarded.has(other) & (other != c) for other in Coordinator)
        rests = ~self._is_moving(t) & ~self.dropped.has(t)
        return self._is_in_its_term(c).implies(
            (guarded & self._is_moving(t)).implies(nothing_else) & rests.implies(of_the_last)
        )

    # -- where it may stop, and where it must get --------------------------------------------------------

    @final
    def at_rest(self) -> Bool:
        """Nothing is asked for and nothing goes on."""
        return (self.transition_state == T.null) & ~self.requested

    @liveness
    def work_is_noticed(self) -> LeadsTo:
        """Whoever asks is answered: the coordinator does not sleep over a request (scylladb #27958)."""
        return leads_to(self.waits, ~self.waits)

    @liveness
    def migrations_end(self, t: Term[Tablet]) -> LeadsTo:
        """Every migration ends, however often others commit and coordinators change."""
        return leads_to(self._is_moving(t), ~self._is_moving(t))

    @liveness
    def the_track_is_left(self) -> LeadsTo:
        """When its tablets have moved, the topology is at rest: other changes can have their turn."""
        return leads_to(
            self.transition_state == T.tablet_migration, self.transition_state == T.null
        )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            start_over,
            "a barrier runs",
            because="to start over is always right, as long as it comes to an end",
        ),
        equivalent_loss(
            _modify,
            events,
            because="only who has seen a topology at rest may sleep, over a request or a migration alone",
        ),
        equivalent_drop(
            do_what_the_stage_asks,
            "it has seen that tablets are in transition",
            because="what is done is done, also by one that knows it from before",
        ),
        equivalent_loss(
            _modify,
            at,
            because="who does not know of its own commit loses its next race; to start over is always right",
        ),
        equivalent_replacement(
            _modify,
            "becomes: decided for top",
            "at[c2] becomes: c for c2",
            because="whoever goes on under a guard that is out of date loses its next race; to start over is always right",
        ),
        equivalent_replacement(
            _modify,
            "events",
            because="only who has seen a topology at rest may sleep, over a request or a migration alone",
        ),
        equivalent_loss(
            do_what_the_stage_asks,
            at,
            because="to start over is always right, as long as it comes to an end",
        ),
        equivalent_replacement(
            do_what_the_stage_asks,
            "in_barrier for decided",
            "decided for top",
            because="who goes on without a guard loses its next race; to start over is always right",
        ),
        equivalent_drop(
            plan_stage,
            "it has a guard",
            because="what is planned before is dropped when the guard is taken",
        ),
        equivalent_loss(commit_plan, ready, because="it notes what is so"),
        equivalent_loss(drop_table, ready, because="it notes what is so"),
        equivalent_replacement(
            drop_table,
            "yes for no",
            because="a tablet whose table is gone has no stage any more that asks for something",
        ),
        equivalent_drop(
            wait,
            "the coordinator has decided",
            because="whoever waits is woken by every event that comes then",
        ),
        equivalent_loss(wait, at, because="who does not wait looks again when something happens"),
        equivalent_replacement(
            wait, "top for waiting", because="who does not wait looks again at once"
        ),
        equivalent_drop(elect, "another node leads", because="an election that changes nothing"),
        equivalent_loss(elect, leader, because="an election that changes nothing"),
    )


def _following(stage: Stage) -> Stage:
    return Stage[stage.following]
