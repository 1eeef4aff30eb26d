"""The `transition_state` of the topology as logs and dumps tell of it: which may follow which, and for what node.

`topology_control.py` says why and when; this is its projection to what a line of the topology coordinator's
log, or a row of `system.topology`, shows: the transition state, and the state of the node in transition.
Sources: design document 001 (topology-over-raft, 2023-07); ScyllaDB's topology coordinator for the releases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from stagewright.machines.scylladb.topology.topology_states import (
    JOINING,
    LEAVING,
    SEED_TABLE,
    TRANSITION_TABLE,
    NodeState,
    Owner,
    TransitionState,
)
from stagewright.spec import (
    Actor,
    Bool,
    Machine,
    OneVar,
    OptionalVar,
    Profile,
    Term,
    action,
    always_reachable,
    equivalent_disabled,
    equivalent_step,
    equivalents,
    every,
    final,
    invariant,
    one_of,
    only_when,
    optional,
    profiles,
    require,
    sometimes,
    step_property,
)

COORDINATOR = Actor("topology coordinator")
OPERATOR = Actor("operator")
N, T = NodeState, TransitionState
NULL = T.null
GONE = "the newest release has that state no more"
PREEMPTING = {
    T.tablet_migration: frozenset({T.join_group0}),
    T.write_both_read_new: frozenset({T.tablet_migration}),
    T.left_token_ring: frozenset({T.tablet_migration}),
}
"""What follows beside `TRANSITION_TABLE` where a join does not wait for tablets."""
DRAINING = {
    T.join_group0: frozenset({T.tablet_draining}),
    T.tablet_draining: frozenset({T.left_token_ring}),
}
"""And where tablets leave a node that is replaced, too (6.0 to 2026.1)."""


IS_FOR = {t: (t.owner is not Owner.node, tuple(n for n in N if n in t.of)) for t in TransitionState}
IS_FOR[T.tablet_draining] = (False, (N.replacing, N.decommissioning, N.removing))
"""Of each state: whether it can be without a node in transition, and the states such a node can be in."""


@dataclass(frozen=True)
class Release(Profile):
    """What a version of ScyllaDB, or the design document, does about the topology, as far as it shows."""

    join_group0: bool  # a joining node is accepted before it gets tokens (5.4)
    publish_state: bool  # generations are published in a state; later by a fiber of their own
    rollback: bool  # left_token_ring and rollback_to_normal (6.0)
    draining_state: bool  # tablets leave a node in tablet_draining (5.4 to 2026.1)
    leaving_directly: bool  # or before its request begins (2026.2)
    finalization: bool  # tablet_resize_finalization (6.0, by another name)
    requests: bool  # truncate_table, lock (2025.1)
    removing_at_once: bool  # a removed node is left without left_token_ring (up to 2025.4)
    removing_leaves_ring: bool  # or goes through it (2026.1)
    snapshots: bool  # snapshot_tables (2026.2)
    preempting: bool  # a join does not wait for tablets in transition (2026-07)


# fmt: off
#       name             join   publish roll.  drain. direct final. reqs.  once   ring   snaps. preempting
RELEASES = (
Release("seed",          False, True,  False, False, True,  False, False, True,  False, False, False),
Release("scylla-any",    True,  False, True,  True,  True,  True,  True,  True,  True,  True,  True),
Release("scylla-6.0",    True,  False, True,  True,  False, True,  False, True,  False, False, False),
Release("scylla-2025.4", True,  False, True,  True,  False, True,  True,  True,  False, False, False),
Release("scylla-2026.1", True,  False, True,  True,  False, True,  True,  False, True,  False, False),
Release("scylla-2026.2", True,  False, True,  False, True,  True,  True,  False, True,  True,  False),
Release("scylla-master", True,  False, True,  False, True,  True,  True,  False, True,  True,  True),
)
# fmt: on
SEED, ANY_RELEASE = RELEASES[:2]


class TopologyTransition(Machine):
    """The transition state of the topology, and the state of the node for whose sake it is in it.

    `scylla-master` is the source as of 2026-08, in which a node joins while tablets are in transition;
    `scylla-any` does what any of the releases does, for logs that do not say which one wrote them.
    """

    release = profiles(*RELEASES)

    transition_state: OneVar[TransitionState] = one_of(TransitionState, init=NULL)
    in_transition: OptionalVar[NodeState] = optional(NodeState)  # the state of that node, if any

    harmless = equivalents(
        equivalent_step(
            transition_state,
            T.publish_cdc_generation,
            tuple(t for t in TransitionState if t is not TransitionState.publish_cdc_generation),
            because=GONE,
        ),
        equivalent_step(
            transition_state,
            T.tablet_draining,
            tuple(t for t in TransitionState if t is not TransitionState.tablet_draining),
            because=GONE,
        ),
    )

    # -- a node joins ----------------------------------------------------------------------------------

    @transition_state.step(NULL, T.join_group0, by=COORDINATOR)
    def accept(self, joins: Term[NodeState]) -> None:
        """The log says "bootstrap: accept node", "replace: accept node"."""
        only_when(self.release.join_group0)
        self._begins(joins, JOINING)

    @transition_state.step(T.tablet_migration, T.join_group0, by=COORDINATOR)
    def accept_at_once(self, joins: Term[NodeState]) -> None:
        """The same, while tablets are in transition: what is recorded of them stays."""
        only_when(self.release.preempting)
        self._begins(joins, JOINING)

    @transition_state.step(T.join_group0, NULL, by=COORDINATOR)
    def end_in_join_group0(self) -> None:
        """The log says "bootstrap: failed to accept": the node is left; or it owns no tokens, and is normal at once."""
        only_when(self.release.join_group0)
        self._ends()

    @transition_state.step(T.join_group0, T.commit_cdc_generation, by=COORDINATOR)
    def insert_generation(self) -> None:
        """The log says "bootstrap: insert tokens and CDC generation data"."""
        only_when(self.release.join_group0)
        self._is(N.bootstrapping)

    @transition_state.step(T.join_group0, T.write_both_read_old, by=COORDINATOR)
    def take_ownership(self) -> None:
        """The log says "replace: transition to write_both_read_old and take ownership of the replaced node's tokens"."""
        only_when(self.release.join_group0 and self.release.leaving_directly)
        self._is(N.replacing)

    @transition_state.step(T.join_group0, T.tablet_draining, by=COORDINATOR)
    def take_ownership_and_drain(self) -> None:
        """The log says "replace: transition to tablet_draining and take ownership"."""
        only_when(self.release.draining_state)
        self._is(N.replacing)

    @transition_state.step(NULL, T.commit_cdc_generation, by=COORDINATOR)
    def bootstrap(self) -> None:
        """001: a bootstrapping node starts with its generation."""
        only_when(not self.release.join_group0)
        self._at_rest()
        self.in_transition = N.bootstrapping

    @transition_state.step(NULL, T.write_both_read_old, by=COORDINATOR)
    def replace(self) -> None:
        """001: a node that replaces another takes its tokens at once."""
        only_when(not self.release.join_group0)
        self._at_rest()
        self.in_transition = N.replacing

    @transition_state.step((T.commit_cdc_generation, T.write_both_read_old), NULL, by=COORDINATOR)
    def fail_to_join(self) -> None:
        """001's diagram: a node that bootstraps or replaces another is left."""
        only_when(not self.release.rollback)
        self._is(*JOINING)
        self._ends()

    # -- CDC generations -------------------------------------------------------------------------------

    @transition_state.step(NULL, T.commit_cdc_generation, by=COORDINATOR)
    def prepare_generation(self) -> None:
        """The log says "insert CDC generation data": a generation was asked for by itself."""
        self._at_rest()

    @transition_state.step(T.commit_cdc_generation, T.write_both_read_old, by=COORDINATOR)
    def commit_generation(self) -> None:
        """The log says "committed new CDC generation", of a node that bootstraps."""
        only_when(not self.release.publish_state)
        self._is(N.bootstrapping)

    @transition_state.step(T.commit_cdc_generation, NULL, by=COORDINATOR)
    def commit_requested_generation(self) -> None:
        """The same for a generation that was asked for by itself."""
        only_when(not self.release.publish_state)
        self._of_no_node()

    @transition_state.step(T.commit_cdc_generation, T.publish_cdc_generation, by=COORDINATOR)
    def publish_next(self) -> None:
        """001: "After committing the generation we move to publish_cdc_generation"."""
        only_when(self.release.publish_state)

    @transition_state.step(T.publish_cdc_generation, T.write_both_read_old, by=COORDINATOR)
    def published(self) -> None:
        """001: "Once the generation is published, we enter write_both_read_old state"."""
        only_when(self.release.publish_state)
        self._is(N.bootstrapping)

    @transition_state.step(T.publish_cdc_generation, NULL, by=COORDINATOR)
    def published_as_requested(self) -> None:
        """001: such a request goes "only through commit_cdc_generation and publish_cdc_generation"."""
        only_when(self.release.publish_state)
        self._of_no_node()

    # -- a node leaves ---------------------------------------------------------------------------------

    @transition_state.step(NULL, T.tablet_draining, by=COORDINATOR)
    def start_draining(self, leaves: Term[NodeState]) -> None:
        """The log says "start decommission", "start removenode", where tablets leave the node first."""
        only_when(self.release.draining_state)
        self._begins(leaves, LEAVING)

    @transition_state.step(T.tablet_draining, T.write_both_read_old, by=COORDINATOR)
    def drained(self) -> None:
        """The log says "Finished tablet migration": no tablet is left on the node."""
        only_when(self.release.draining_state)

    @transition_state.step(NULL, T.write_both_read_old, by=COORDINATOR)
    def start_leaving(self, leaves: Term[NodeState]) -> None:
        """The log says "start decommission", "start removenode", where no tablet is on the node."""
        only_when(self.release.leaving_directly)
        self._begins(leaves, LEAVING)

    # -- data moves ------------------------------------------------------------------------------------

    @transition_state.step(T.write_both_read_old, T.write_both_read_new, by=COORDINATOR)
    def read_new(self) -> None:
        """The log says "streaming completed for node"."""

    @transition_state.step(T.write_both_read_new, NULL, by=COORDINATOR)
    def finish(self) -> None:
        """The log says "read fence completed": the node is normal; or left, where no left_token_ring follows."""
        if self.release.rollback:
            require(~self._must_leave_ring(), "the node does not leave the token ring first")
        self._ends()

    @transition_state.step(T.write_both_read_new, T.tablet_migration, by=COORDINATOR)
    def finish_before_tablets(self) -> None:
        """The same for a bootstrap, while tablets are in transition: they go on."""
        only_when(self.release.preempting)
        self._is(N.bootstrapping)
        self._ends()

    @transition_state.step(T.write_both_read_new, T.left_token_ring, by=COORDINATOR)
    def leave_token_ring(self) -> None:
        """The log says "decommissioning: read fence completed", and of a node that is removed."""
        only_when(self.release.rollback)
        require(self._may_leave_ring(), "the node leaves the token ring first")

    # -- the way back ----------------------------------------------------------------------------------

    @transition_state.step(
        (T.join_group0, T.commit_cdc_generation, T.tablet_draining, T.write_both_read_old),
        T.left_token_ring,
        by=COORDINATOR,
    )
    def roll_back_join(self) -> None:
        """The log says "rollback … moving transition state to left token ring"."""
        only_when(self.release.rollback)
        self._is(*JOINING)

    @transition_state.step(
        (T.tablet_draining, T.write_both_read_old), T.rollback_to_normal, by=COORDINATOR
    )
    def roll_back_leave(self) -> None:
        """The log says "rollback … moving transition state to rollback to normal"."""
        only_when(self.release.rollback)
        self._is(*LEAVING)

    @transition_state.step(T.left_token_ring, NULL, by=COORDINATOR)
    def finish_left(self) -> None:
        """The log says "finished decommissioning node", "finished removing node", "finished rollback"."""
        only_when(self.release.rollback)
        self._ends()

    @transition_state.step(T.left_token_ring, T.tablet_migration, by=COORDINATOR)
    def finish_left_before_tablets(self) -> None:
        """The same, while tablets are in transition."""
        only_when(self.release.preempting)
        self._ends()

    @transition_state.step(T.rollback_to_normal, T.tablet_migration, by=COORDINATOR)
    def complete_rollback(self) -> None:
        """The log says "complete rollback … to state normal"."""
        only_when(self.release.rollback)
        self._ends()

    # -- beside nodes that join and leave --------------------------------------------------------------

    @action(by=COORDINATOR)
    def start_rebuild(self) -> None:
        """The log says "start rebuilding": the topology as a whole does not transition."""
        require(self.transition_state == NULL, "no transition state")
        require(self.in_transition.is_none(), "no node is in transition")
        self.in_transition = N.rebuilding

    @action(by=COORDINATOR)
    def finish_rebuild(self) -> None:
        """The log says "rebuilding completed"; tablets that were moved by hand meanwhile may still be in transition."""
        self._is(N.rebuilding)
        self._ends()

    @transition_state.step(NULL, T.tablet_migration, by=COORDINATOR)
    def start_tablets(self) -> None:
        """The log says "Starting tablet migration", "Moving tablet"; an operator moves tablets during a rebuild, too."""

    @transition_state.step(T.tablet_migration, NULL, by=COORDINATOR)
    def finish_tablets(self) -> None:
        """The log says "Finished tablet migration"."""

    @transition_state.step(NULL, T.tablet_resize_finalization, by=COORDINATOR)
    def start_resize(self) -> None:
        """Tablets of a table are split or merged for good."""
        only_when(self.release.finalization)
        self._at_rest()

    @transition_state.step(T.tablet_resize_finalization, NULL, by=COORDINATOR)
    def finish_resize(self) -> None:
        """The log says "Finished tablet resize finalization"."""
        only_when(self.release.finalization)

    @transition_state.step(NULL, T.truncate_table, by=COORDINATOR)
    def start_truncating(self) -> None:
        """The log says "TRUNCATE TABLE requested"."""
        only_when(self.release.requests)
        self._at_rest()

    @transition_state.step(NULL, T.snapshot_tables, by=COORDINATOR)
    def start_snapshots(self) -> None:
        """The log says "SNAPSHOT TABLES requested"."""
        only_when(self.release.snapshots)
        self._at_rest()

    @transition_state.step(NULL, T.lock, by=OPERATOR)
    def lock(self) -> None:
        """The topology is locked from outside."""
        only_when(self.release.requests)

    @transition_state.step((T.truncate_table, T.snapshot_tables, T.lock), NULL, by=COORDINATOR)
    def finish_request(self) -> None:
        """The request "has completed"; or the lock is given back."""
        only_when(self.release.requests)

    # -- helpers ---------------------------------------------------------------------------------------

    def _of_no_node(self) -> None:
        require(self.in_transition.is_none(), "no node is in transition")

    def _at_rest(self) -> None:
        self._of_no_node()

    def _begins(self, state: Term[NodeState], states: frozenset[NodeState]) -> None:
        self._at_rest()
        names = [s for s in N if s in states]
        require(state.any_of(*names), f"it is {' or '.join(s.name for s in names)}")
        self.in_transition = state

    def _is(self, *states: NodeState) -> None:
        names = [s for s in N if s in states]
        what = " or ".join(s.name for s in names)
        require(self.in_transition.any_of(*names), f"a node is {what}")

    def _ends(self) -> None:
        self.in_transition = None

    def _must_leave_ring(self) -> Bool:
        """Read fence completed: left_token_ring is next."""
        if self.release.removing_at_once:
            return self.in_transition == N.decommissioning
        return self.in_transition.any_of(N.decommissioning, N.removing)

    def _may_leave_ring(self) -> Bool:
        if self.release.removing_leaves_ring:
            return self.in_transition.any_of(N.decommissioning, N.removing)
        return self.in_transition == N.decommissioning

    # -- promises --------------------------------------------------------------------------------------

    @invariant
    def states_are_of_the_nodes_that_they_are_for(self) -> Bool:
        """001, the transition states: each serves nodes that join, that leave, or no node at all."""
        return every((self.transition_state == t).implies(self._is_for(*IS_FOR[t])) for t in IS_FOR)

    def _is_for(self, none: bool, nodes: tuple[NodeState, ...]) -> Bool:
        is_none = self.in_transition.is_none()
        if not nodes:
            return is_none
        found = self.in_transition.any_of(*nodes)
        return is_none | found if none else found

    @step_property
    def each_step_shows(self, after: Self) -> Bool:
        """Every step changes what a log or a dump reports."""
        moves = self.transition_state != after.transition_state
        return moves | (self.in_transition != after.in_transition)

    @step_property
    def states_follow_each_other_as_they_should(self, after: Self) -> Bool:
        """001: the ways through the transition states, and those that the releases added."""
        old, new = self.transition_state, after.transition_state

        def follows(t: TransitionState) -> Bool:
            table = TRANSITION_TABLE if self.release.rollback else SEED_TABLE
            next_ones = table[t] | {t}
            if self.release.preempting:
                next_ones |= PREEMPTING.get(t, frozenset())
            if self.release.draining_state:
                next_ones |= DRAINING.get(t, frozenset())
            return (old == t).implies(new.any_of(*(s for s in T if s in next_ones)))

        return every(follows(t) for t in TransitionState)

    @step_property
    def one_node_at_a_time(self, after: Self) -> Bool:
        """001: "one of the nodes is in a bootstrapping/decommissioning/removing/replacing state", until it is at rest again."""
        goes_on = self.in_transition.is_some() & after.in_transition.is_some()
        return goes_on.implies(self.in_transition == after.in_transition)

    @step_property
    def rebuilds_end_with_no_transition_state(self, after: Self) -> Bool:
        """001: "the rebuilding state which does not change the topology" ends by itself: the track of tablets that move beside it,
        or the lock of an operator, is not left for the node that still streams.
        """
        ends = (self.in_transition == N.rebuilding) & after.in_transition.is_none()
        return ends.implies(self.transition_state == after.transition_state)

    @step_property
    def reads_go_back_to_no_ring(self, after: Self) -> Bool:
        """Once reads have used the new ring there is no way back for a node that joins (6.0)."""
        joins = self.in_transition.any_of(*(s for s in N if s in JOINING))
        reads_new = self.transition_state == T.write_both_read_new
        return (joins & reads_new).implies(after.transition_state != T.left_token_ring)

    @step_property
    def tokens_wait_for_their_generation(self, after: Self) -> Bool:
        """003: before it modifies the ring a joining node "will introduce a new CDC generation"."""
        bootstraps = self.in_transition == N.bootstrapping
        early = (self.transition_state == T.join_group0) & (
            after.transition_state == T.write_both_read_old
        )
        return bootstraps.implies(~early)

    @step_property
    def who_leaves_leaves_the_ring_first(self, after: Self) -> Bool:
        """A node that leaves is left only after left_token_ring; a removed one since 2026.1 (scylladb)."""
        only_when(self.release.rollback)
        reads_new = self.transition_state == T.write_both_read_new
        decommissions = self.in_transition == N.decommissioning
        removes = self.in_transition == N.removing
        leaves = decommissions if self.release.removing_at_once else decommissions | removes
        ring_first = (reads_new & leaves).implies(after.transition_state == T.left_token_ring)
        replaces = self.in_transition == N.replacing
        return ring_first & (reads_new & replaces).implies(after.transition_state == NULL)

    @sometimes
    def the_topology_is_in_each_state(self, state: Term[TransitionState]) -> Bool:
        """001: "there entire topology can also be in a transitioning state": each that the release has is seen by its name."""
        release = self.release
        there = {
            T.join_group0: release.join_group0,
            T.publish_cdc_generation: release.publish_state,
            T.tablet_draining: release.draining_state,
            T.left_token_ring: release.rollback,
            T.rollback_to_normal: release.rollback,
            T.tablet_resize_finalization: release.finalization,
            T.truncate_table: release.requests,
            T.snapshot_tables: release.snapshots,
            T.lock: release.requests,
        }
        not_there = tuple(t for t in T if not there.get(t, True))
        return (self.transition_state == state) | state.any_of(*not_there)

    @always_reachable
    def a_node_is_in_transition(self) -> Bool:
        """A node joins or leaves."""
        return self.transition_state == T.write_both_read_new

    @final
    def may_rest(self) -> Bool:
        """Nothing more may ever be asked for."""
        return self.transition_state == NULL

    seen_elsewhere = equivalents(
        equivalent_disabled(
            because="what is seen here `topology-control` does, whose steps would be none without it"
        ),
        equivalent_disabled(
            accept_at_once,
            finish_before_tablets,
            finish_left_before_tablets,
            because="a join may wait for tablets in transition, as it did before 2026-07",
        ),
    )
