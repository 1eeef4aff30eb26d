"""Commits to group0 under a guard: what the topology coordinator planned is still so when it is committed.

The coordinator plans the next stages of tablets under a guard, which names the state that it read; the commit
is refused if anything else was committed since (compare and set). Barriers and actions run without a guard, the
API commits in between, and the last coordinator may not know yet that there is a new one.
"""

from __future__ import annotations

from typing import Self

from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    LeadsTo,
    Machine,
    OneVar,
    States,
    Term,
    action,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    every,
    final,
    invariant,
    leads_to,
    liveness,
    one_of,
    optional,
    per,
    require,
    scopes,
    set_of,
    some,
    step_property,
)

WEAK = Fairness.WEAK
API = Actor("API")
COORDINATOR = Actor("topology coordinator")


class Node(Entity, scope=2):
    """A node that may be the topology coordinator."""


class Tablet(Entity, scope=1):
    """A tablet."""


class Stage(States):
    """Stages of a tablet's transition, few enough to tell; all but the first ask for something to be done."""

    none = ()
    write_both_read_old = ()  # asks for a barrier
    streaming = ()  # for an action
    cleanup = ()  # for an action


NEXT = {
    Stage.none: Stage.write_both_read_old,
    Stage.write_both_read_old: Stage.streaming,
    Stage.streaming: Stage.cleanup,
    Stage.cleanup: Stage.none,
}


class TabletCommits(Machine):
    """Topology coordinators that plan and commit, beside an API that commits too."""

    migrations = budget(2, doc="migrations that the API starts")
    drops = budget(1, doc="tables that the API drops")
    failovers = budget(1, doc="changes of the raft leader, whose node coordinates")

    exercised_at = scopes({}, {failovers: 2}, {failovers: 0, Tablet: 2})

    # group0
    stage = per(Tablet, one_of(Stage, init=Stage.none))
    dropped = set_of(Tablet)  # their tables are gone
    ready = set_of(Tablet)  # what their stage asks for has been done
    leader: OneVar[Node] = one_of(Node)
    # who coordinates, or did: volatile
    guard = set_of(Node)  # their guard names the last commit
    plan = per(Node, per(Tablet, optional(Stage)))  # the stage that is to be committed
    done = per(Node, per(Tablet, optional(Stage)))  # the stage of which they know that it is done

    # -- the coordinator -------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def take_guard(self, n: Term[Node]) -> None:
        """The coordinator reads what is committed, to plan anew; it stops if its term is over."""
        require(self._is_in_its_term(n), "its term is not over")
        require(~self.guard.has(n), "it has no guard")
        self.guard.add(n)
        for t in Tablet:
            self.plan[n][t] = None

    @action(by=COORDINATOR, fair=WEAK)
    def do_what_the_stage_asks(self, n: Term[Node], t: Term[Tablet]) -> None:
        """A barrier or an action runs, without a guard; that of a last coordinator may run still."""
        require(self._is_moving(t), "the stage asks for something")
        require(self.done[n][t] != self.stage[t], "it is not known to be done")
        self.done[n][t] = self.stage[t]
        self.ready.add(t)
        self.guard.discard(n)

    @action(by=COORDINATOR, fair=WEAK)
    def plan_stage(self, n: Term[Node], t: Term[Tablet]) -> None:
        """The coordinator plans the next stage of a tablet, where what the last one asked for is done."""
        require(self.guard.has(n), "it has a guard")
        require(self.done[n][t] == self.stage[t], "what the stage asks for is known to be done")
        self.plan[n][t] = self.stage[t].column(lambda stage: NEXT[stage])

    @action(by=COORDINATOR, fair=WEAK)
    def commit(self, n: Term[Node]) -> None:
        """All that was planned is committed at once, if nothing was since the guard was taken."""
        require(some(self.plan[n][t].is_some() for t in Tablet), "something is planned")
        require(self.guard.has(n), "nothing was committed since the guard was taken")
        for t in Tablet:
            self.stage[t] = self._planned(n, t)
            self.ready.put(t, self.ready.has(t) & self.plan[n][t].is_none())
        self._commit()

    # -- others ----------------------------------------------------------------------------------------

    @action(by=API, spends=migrations)
    def start_migration(self, t: Term[Tablet]) -> None:
        """A request of the API moves a tablet: the coordinator will find it in transition."""
        require(self.stage[t] == Stage.none, "the tablet is at rest")
        require(~self.dropped.has(t), "its table is there")
        self.stage[t] = Stage.write_both_read_old
        self._commit()

    @action(by=API, spends=drops)
    def drop_table(self, t: Term[Tablet]) -> None:
        """The table of a tablet is dropped, be the tablet in transition or not."""
        self.dropped.add(t)
        self.stage[t] = Stage.none
        self.ready.discard(t)
        self._commit()

    @action(by=COORDINATOR, spends=failovers)
    def fail_over(self, n: Term[Node]) -> None:
        """A node becomes the leader, in a new term, and knows nothing yet; the last one may go on."""
        self.leader = n
        for t in Tablet:
            self.done[n][t] = None

    # -- what recurs -----------------------------------------------------------------------------------

    def _is_in_its_term(self, n: Term[Node]) -> Bool:
        """The raft read barrier before a guard tells a node that its term is over."""
        return self.leader == n

    def _is_moving(self, t: Term[Tablet]) -> Bool:
        return self.stage[t] != Stage.none

    def _commit(self) -> None:
        """Every guard that was taken before is out of date."""
        for n in Node:
            self.guard.discard(n)

    def _planned(self, n: Term[Node], t: Term[Tablet]) -> Term[Stage]:
        found = self.stage[t]
        for stage in Stage:
            found = choose(self.plan[n][t] == stage, stage, found)
        return found

    # -- promises --------------------------------------------------------------------------------------

    @invariant
    def dropped_tables_have_no_transitions(self, t: Term[Tablet]) -> Bool:
        """No commit brings back what it did not read: the transition of a tablet goes with its table."""
        return self.dropped.has(t).implies(self.stage[t] == Stage.none)

    @step_property
    def stages_follow_each_other(self, after: Self, t: Term[Tablet]) -> Bool:
        """A stage is followed by the next one; only with its table a transition ends at once."""
        follows = after.stage[t] == self.stage[t].column(lambda stage: NEXT[stage])
        return follows | (after.stage[t] == self.stage[t]) | after.dropped.has(t)

    @step_property
    def stages_are_left_when_they_are_done(self, after: Self, t: Term[Tablet]) -> Bool:
        """001: "When stage is advanced, it means that expected invariants about cluster-wide state relevant to
        the tablet, associated with the next stage, hold".
        """
        leaves = self._is_moving(t) & (after.stage[t] != self.stage[t]) & ~after.dropped.has(t)
        return leaves.implies(self.ready.has(t))

    @invariant
    def plans_are_of_what_is_committed(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """Lemma: under a guard that is not out of date, what is planned is the next stage of what is so."""
        following = self.stage[t].column(lambda stage: NEXT[stage])
        planned = self.guard.has(n) & self.plan[n][t].is_some()
        known = self.done[n][t] != Stage.none  # there is nothing to be done at rest
        return known & planned.implies(self._is_moving(t) & (self.plan[n][t] == following))

    @invariant
    def what_is_taken_for_done_is_done(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """Lemma: who has a guard, or the coordinator, knows of nothing done that is not; what is planned is done."""
        knows = self._is_in_its_term(n) | self.guard.has(n)
        done = self._is_moving(t) & (self.done[n][t] == self.stage[t])
        planned = self.guard.has(n) & self.plan[n][t].is_some()
        return (knows & done | planned).implies(self.ready.has(t))

    @invariant
    def the_coordinator_knows_of_no_later_stage(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        """Lemma: where somebody has a guard, the coordinator knows of this stage or of nothing; of the last one
        at rest.
        """
        nothing_else = self.done[n][t].is_none() | (self.done[n][t] == self.stage[t])
        of_the_last = self.done[n][t].is_none() | (self.done[n][t] == Stage.cleanup)
        guarded = self.guard.has(n) & self.plan[n][t].is_some()
        guarded = guarded | some(self.guard.has(m) & (m != n) for m in Node)
        rests = ~self._is_moving(t) & ~self.dropped.has(t)
        return self._is_in_its_term(n).implies(
            guarded.implies(nothing_else) & rests.implies(of_the_last)
        )

    @final
    def at_rest(self) -> Bool:
        """Tablets at rest may stay so."""
        return every(~self._is_moving(t) for t in Tablet)

    @liveness
    def migrations_end(self, t: Term[Tablet]) -> LeadsTo:
        """Every migration ends, however often others commit and coordinators change."""
        return leads_to(self._is_moving(t), ~self._is_moving(t))

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(
            do_what_the_stage_asks, guard, because="to keep the guard keeps others waiting, no more"
        ),
        equivalent_drop(
            plan_stage,
            "it has a guard",
            because="what is planned before is dropped when the guard is taken",
        ),
        equivalent_loss(commit, ready, because="it notes what is so"),
        equivalent_loss(start_migration, stage, guard, because="no plan is about a tablet at rest"),
        equivalent_loss(drop_table, ready, because="it notes what is so"),
        equivalent_loss(fail_over, leader, because="the last one stays the leader"),
    )
