"""CDC generations in the topology state machine: committed, published to clients, and rolled back joins.

Sources: design document 001 (topology-over-raft), `commit_cdc_generation` and `publish_cdc_generation`; for the
release ScyllaDB's topology coordinator and its publisher. What nodes do with generations is in
`cdc_generations.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from stagewright.spec import (
    ANY,
    NO_DEADLOCK,
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    OptionalVar,
    Profile,
    SetVar,
    Term,
    accepts,
    action,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_step,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    history,
    initially,
    invariant,
    known_violations,
    leads_to,
    lemma,
    liveness,
    one_of,
    only_when,
    optional,
    profiles,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    violated,
)

WEAK = Fairness.WEAK
COORDINATOR = Actor("topology coordinator")
OPERATOR = Actor("operator")


class Generation(Enum):
    """CDC generations, in the order in which they are committed."""

    first = auto()
    second = auto()
    third = auto()

    @property
    def number(self) -> int:
        """How many there are before it."""
        return list(Generation).index(self)


class Transition(Enum):
    """The states of the topology that a CDC generation goes through."""

    none = auto()
    commit_cdc_generation = auto()
    publish_cdc_generation = auto()
    write_both_read_old = auto()  # the joining node's tokens are in the ring
    left_token_ring = auto()  # rolled back


NONE = Transition.none
COMMIT, PUBLISH = Transition.commit_cdc_generation, Transition.publish_cdc_generation
WRITE_BOTH, ROLLED_BACK = Transition.write_both_read_old, Transition.left_token_ring


@dataclass(frozen=True)
class Release(Profile):
    """How a version of ScyllaDB, or the design document, publishes CDC generations."""

    publisher: bool  # beside the topology state machine, from a queue (5.4)
    rollback: bool  # of joins (6.0)


SEED = Release("seed", False, False)
SCYLLA_2026_2 = Release("scylla-2026.2", True, True)


class CdcPublication(Machine):
    """Nodes join, and users ask for new generations; each generation is committed, then published.

    Under `seed` publishing is a state that every topology change goes through, and there is no way back.
    """

    release = profiles(SEED, SCYLLA_2026_2)
    failures = fault_budget(
        1, doc="barriers and streams that fail, losses of the description tables"
    )
    failovers = fault_budget(1, doc="changes of the topology coordinator")

    exercised_at = scopes({}, {failures: 2, failovers: 2})

    # committed to group0
    in_group0: FlagVar = flag(init=ANY)  # the topology; before, nodes gossip
    transition: OneVar[Transition] = one_of(Transition, init=NONE)
    joins: FlagVar = flag()  # the transition is a join, not a request for a new generation alone
    new_generation: OptionalVar[Generation] = optional(Generation)  # its data is there
    committed: SetVar[Generation] = set_of(Generation, init=ANY)
    unpublished: SetVar[Generation] = set_of(Generation)
    # of joins, in the ring
    tokens: SetVar[Generation] = set_of(Generation, init={Generation.first})
    # the tables for CDC clients
    described: SetVar[Generation] = set_of(Generation, init=ANY)
    writable: FlagVar = flag(init=True)  # enough of their replicas are up
    failed: FlagVar = history(flag())  # a barrier or a stream has, of the last topology change
    # what the publisher knows
    publishing: OptionalVar[Generation] = optional(Generation)  # described, still in the queue

    @initially
    def one_generation(self) -> Bool:
        """Topology is in group0 from the start, or gossiped and about to be upgraded."""
        first = frozenset({Generation.first})
        if not self.release.publisher:
            return self.in_group0 & (self.committed == first) & (self.described == first)
        group0 = (self.committed == first) & (self.described == first)
        gossip = self.committed.is_empty() & (self.described - first).is_empty()
        return choose(self.in_group0, group0, gossip)

    # -- commit and publish ---------------------------------------------------------------------------------

    @transition.step(NONE, COMMIT, by=COORDINATOR)
    def begin(self, g: Term[Generation], join: Bool) -> None:
        """A node joins, or a user asks for a new generation: its data is written to internal tables."""
        is_next = g.number_column(lambda generation: generation.number) == self.committed.size()
        require(self.in_group0, "topology is in group0")
        require(is_next, "it is the next generation")
        self.new_generation = g
        self.joins = join
        self.failed = False

    @transition.step(COMMIT, PUBLISH, by=COORDINATOR, fair=WEAK)
    def commit_before_publishing(self, g: Term[Generation]) -> None:
        """Every node has the data: the generation gets its timestamp, and is to be published next."""
        only_when(not self.release.publisher)
        self._commit(g)

    @transition.step(COMMIT, WRITE_BOTH, by=COORDINATOR, fair=WEAK)
    def commit_for_join(self, g: Term[Generation]) -> None:
        """The generation gets its timestamp and is queued; in the same command its tokens join the ring."""
        only_when(self.release.publisher)
        require(self.joins, "a node joins")
        self._commit(g)
        self._queue(g)
        self.tokens.add(g)

    @transition.step(COMMIT, NONE, by=COORDINATOR, fair=WEAK)
    def commit_for_request(self, g: Term[Generation]) -> None:
        """The generation that a user asked for gets its timestamp and is queued."""
        only_when(self.release.publisher)
        require(~self.joins, "no node joins")
        self._commit(g)
        self._queue(g)
        self.new_generation = None

    @transition.step(PUBLISH, WRITE_BOTH, by=COORDINATOR, fair=WEAK)
    def publish_for_join(self, g: Term[Generation]) -> None:
        """The generation is written to the tables for CDC clients; then the node's tokens join the ring."""
        only_when(not self.release.publisher)
        require(self.joins, "a node joins")
        self._describe(g)
        self.tokens.add(g)

    @transition.step(PUBLISH, NONE, by=COORDINATOR, fair=WEAK)
    def publish_for_request(self, g: Term[Generation]) -> None:
        """The generation that a user asked for is written to the tables for CDC clients."""
        only_when(not self.release.publisher)
        require(~self.joins, "no node joins")
        self._describe(g)
        self.new_generation = None

    @transition.step(WRITE_BOTH, NONE, by=COORDINATOR, fair=WEAK)
    def finish_join(self) -> None:
        """Data is streamed and read from the new node: it is a normal one."""
        self._end()

    # -- the way back ---------------------------------------------------------------------------------------

    @transition.step(
        COMMIT,
        ROLLED_BACK,
        by=COORDINATOR,
        spends=failures,
    )
    def fail_barrier(self) -> None:
        """A node does not answer the barrier: the generation is not committed, and the join is undone."""
        only_when(self.release.rollback)
        require(self.joins, "a node joins")
        self.failed = True

    @transition.step(WRITE_BOTH, ROLLED_BACK, by=COORDINATOR, spends=failures)
    def fail_streaming(self, g: Term[Generation]) -> None:
        """The join fails; its tokens leave the ring, its generation stays what it is."""
        only_when(self.release.rollback)
        require(self.new_generation == g, "the generation was made for it")
        self.tokens.discard(g)
        self.failed = True

    @transition.step(ROLLED_BACK, NONE, by=COORDINATOR, fair=WEAK)
    def finish_rollback(self) -> None:
        """The node has left."""
        only_when(self.release.rollback)
        self._end()

    # -- the publisher --------------------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def describe(self, g: Term[Generation]) -> None:
        """The publisher writes the oldest generation of the queue to the tables; again after a failover."""
        only_when(self.release.publisher)
        require(self.unpublished.has(g), "it is in the queue")
        require(~some(self._is_queued_before(g, h) for h in list(Generation)), "it is the oldest")
        require(self.writable, "the tables can be written")
        self.described.add(g)
        self.publishing = g

    @action(by=COORDINATOR, fair=WEAK)
    def take_from_queue(self, g: Term[Generation]) -> None:
        """What was written leaves the queue."""
        only_when(self.release.publisher)
        require(self.publishing == g, "it is written")
        self.unpublished.discard(g)
        self.publishing = None

    # -- around it --------------------------------------------------------------------------------------------

    @action(by=COORDINATOR, spends=failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator: what only the old one knew is lost."""
        self.publishing = None

    @action(spends=failures)
    def lose_tables(self) -> None:
        """Too many replicas of the tables for CDC clients go down for good."""
        self.writable = False

    @action(by=OPERATOR, fair=WEAK)
    def replace_replica(self) -> None:
        """The operator has a dead node replaced, which is a topology change of its own."""
        require(~self.writable, "a replica is lost")
        require(self.transition == NONE, "no other topology change is going on")
        self.writable = True

    @action(by=OPERATOR, fair=WEAK)
    def upgrade(self) -> None:
        """A cluster that gossiped moves its topology to group0, with the generation that it has."""
        only_when(self.release.publisher)
        require(~self.in_group0, "topology is gossiped")
        self.in_group0 = True
        self.committed.add(Generation.first)
        self._queue(Term.of(Generation.first))

    # -- helpers ----------------------------------------------------------------------------------------------

    def _commit(self, g: Term[Generation]) -> None:
        require(self.new_generation == g, "its data is written")
        self.committed.add(g)

    def _queue(self, g: Term[Generation]) -> None:
        self.unpublished.add(g)

    def _describe(self, g: Term[Generation]) -> None:
        require(self.new_generation == g, "it was committed last")
        require(self.writable, "the tables can be written")
        self.described.add(g)

    def _end(self) -> None:
        self.new_generation = None
        self.joins = False

    def _is_queued_before(self, g: Term[Generation], h: Generation) -> Bool:
        older = g.number_column(lambda generation: generation.number) > h.number
        return self.unpublished.has(h) & older

    # -- promises ---------------------------------------------------------------------------------------------

    @invariant
    def tokens_join_after_their_generation(self, g: Term[Generation]) -> Bool:
        """003: before the node refines the vnodes "it will introduce a new CDC generation whose token
        ranges refine those new (smaller) vnodes".
        """
        return (self.in_group0 & self.tokens.has(g)).implies(self.committed.has(g))

    @invariant
    def a_node_joins_with_its_tokens_in_the_ring(self) -> Bool:
        """001, write_both_read_old: writes go to "replicas calculated according to modified token ring"."""
        joining = every(
            (self.new_generation == g).implies(self.tokens.has(g)) for g in list(Generation)
        )
        return (self.transition == WRITE_BOTH).implies(self.joins & joining)

    @invariant
    def a_node_that_left_has_no_tokens_in_the_ring(self) -> Bool:
        """A join that is rolled back leaves the ring as it was."""
        none = every(
            (self.new_generation == g).implies(~self.tokens.has(g)) for g in list(Generation)
        )
        return (self.transition == ROLLED_BACK).implies(self.joins & none)

    @step_property
    def tokens_are_of_the_node_that_joins(self, after: Self, g: Term[Generation]) -> Bool:
        """001: a request for a new generation may "go only through commit_cdc_generation and
        publish_cdc_generation states": tokens come and go with the node that joins, and are its own.
        """
        changed = self.tokens.has(g) != after.tokens.has(g)
        return changed.implies(self.joins & (self.new_generation == g))

    @step_property
    def tokens_come_with_a_join_and_go_with_its_failure(
        self, after: Self, g: Term[Generation]
    ) -> Bool:
        """003: "When a new node joins the cluster it modifies the token ring", for good when it has joined, and not
        once it was given up.
        """
        comes = ~self.tokens.has(g) & after.tokens.has(g)
        goes = self.tokens.has(g) & ~after.tokens.has(g)
        joins, fails = after.transition == WRITE_BOTH, after.transition == ROLLED_BACK
        return comes.implies(joins) & goes.implies(fails)

    @invariant
    def a_transition_has_a_generation(self) -> Bool:
        """001, commit_cdc_generation: "a new CDC generation data was written to internal tables earlier"."""
        none = (self.transition == NONE) == self.new_generation.is_none()
        return none & (self.transition == NONE).implies(~self.joins)

    @step_property
    def a_topology_change_goes_one_way(self, after: Self) -> Bool:
        """001: "After committing the generation we move to publish_cdc_generation. Once the generation is
        published, we enter write_both_read_old state"; what was rolled back does not come back, and what was begun as
        a join ends as one, whoever coordinates.
        """
        way = {
            COMMIT: (NONE,),
            PUBLISH: (COMMIT,),
            WRITE_BOTH: (COMMIT, PUBLISH),
            ROLLED_BACK: (COMMIT, WRITE_BOTH),
        }
        changed = after.transition != self.transition
        in_order = every(
            (changed & (after.transition == target)).implies(self.transition.any_of(*sources))
            for target, sources in way.items()
        )
        left_out = (self.transition == COMMIT) & self.joins & (after.transition == NONE)
        goes_on = (self.transition != NONE) & (after.transition != NONE)
        return in_order & ~left_out & goes_on.implies(self.joins == after.joins)

    @step_property
    def joins_are_undone_when_something_has_failed(self, after: Self) -> Bool:
        """001, commit_cdc_generation: the data "was written to internal tables earlier and now we need to commit the
        generation", whoever coordinates: a join is rolled back for a barrier or a stream of its own that failed, and for
        nothing else.
        """
        only_when(self.release.rollback)
        undone = (self.transition != ROLLED_BACK) & (after.transition == ROLLED_BACK)
        return undone.implies(after.failed)

    @invariant
    def each_topology_change_has_a_generation_of_its_own(self, g: Term[Generation]) -> Bool:
        """003: before a node refines the vnodes "it will introduce a new CDC generation" whose ranges refine those that there
        will be: one that was committed is another ring's, also if its join was rolled back.
        """
        is_new = (self.transition == COMMIT) & (self.new_generation == g)
        return is_new.implies(~self.committed.has(g))

    @step_property
    def requests_create_a_generation(self, after: Self) -> Bool:
        """001: a request from the user "to create a new CDC generation" is over when there is one."""
        over = (self.transition == COMMIT) & (after.transition == NONE)
        committed = some(
            (self.new_generation == g) & after.committed.has(g) for g in list(Generation)
        )
        return over.implies(committed)

    @accepts(begin)
    def topology_changes_do_not_wait_for_clients(self, g: Term[Generation], join: Bool) -> Bool:
        """001: publish_cdc_generation is a state of the topology change itself: when that is over, the next may
        begin, a join or a request "to create a new CDC generation", whether CDC clients can see the last one or not
        (scylladb #15194).
        """
        place = g.number_column(lambda generation: generation.number)
        free = self.in_group0 & (self.transition == NONE)
        return free & (place == self.committed.size())

    @accepts(describe)
    def generations_are_published_whatever_the_topology_does(self, g: Term[Generation]) -> Bool:
        """003: nodes describe a generation "when nodes learn about a CDC generation", and wait for no topology change
        (scylladb #15194).
        """
        only_when(self.release.publisher)
        before = every(~self._is_queued_before(g, h) for h in list(Generation))
        waits = self.committed.has(g) & ~self.described.has(g)
        return self.in_group0 & waits & before & self.writable

    @accepts(take_from_queue)
    def the_queue_goes_on_whatever_the_topology_does(self, g: Term[Generation]) -> Bool:
        """The same of what has been described: the next one, which is described when this one has left the queue, would
        wait for a topology change otherwise.
        """
        only_when(self.release.publisher)
        return self.publishing == g

    @accepts(commit_for_join)
    def joins_are_committed_whatever_is_published(self, g: Term[Generation]) -> Bool:
        """Publishing does not block the topology state machine (scylladb #15194), and that waits for no client."""
        only_when(self.release.publisher)
        return (self.transition == COMMIT) & self.joins & (self.new_generation == g)

    @accepts(commit_for_request)
    def requests_are_committed_whatever_is_published(self, g: Term[Generation]) -> Bool:
        """The same of a generation that a user asked for."""
        only_when(self.release.publisher)
        return (self.transition == COMMIT) & ~self.joins & (self.new_generation == g)

    @accepts(finish_join)
    def joins_end_whatever_is_published(self) -> Bool:
        """The same where the node has joined."""
        return self.transition == WRITE_BOTH

    @accepts(finish_rollback)
    def rollbacks_end_whatever_is_published(self) -> Bool:
        """The same where its join was rolled back."""
        only_when(self.release.rollback)
        return self.transition == ROLLED_BACK

    @accepts(commit_before_publishing)
    def generations_are_committed_whatever_clients_can_see(self, g: Term[Generation]) -> Bool:
        """001: "we need to commit the generation - create a timestamp for it and tell every node": a step ahead of the
        one for which the tables of clients are needed.
        """
        only_when(not self.release.publisher)
        return (self.transition == COMMIT) & (self.new_generation == g)

    @accepts(replace_replica)
    def dead_replicas_are_replaced_whatever_is_published(self) -> Bool:
        """The same of the topology change without which nothing more is published (scylladb #15194)."""
        return ~self.writable & (self.transition == NONE)

    @accepts(upgrade)
    def clusters_are_upgraded_at_any_time(self) -> Bool:
        """Topology moves to group0 when its operator asks for it, whatever clients see of the generation by then."""
        only_when(self.release.publisher)
        return ~self.in_group0

    @step_property
    def one_topology_change_at_a_time(self, after: Self) -> Bool:
        """001: a topology change has to "wait" until the state machine is free: so has that of a dead node."""
        return (~self.writable & after.writable).implies(self.transition == NONE)

    @step_property
    def generations_are_queued_when_they_are_committed(
        self, after: Self, g: Term[Generation]
    ) -> Bool:
        """A generation is queued with its commit, or again after it: whoever describes it twice does no harm."""
        queued = ~self.unpublished.has(g) & after.unpublished.has(g)
        return queued.implies(after.committed.has(g))

    @invariant
    def clients_see_committed_generations_only(self, g: Term[Generation]) -> Bool:
        """001, publish_cdc_generation: "a new CDC generation was committed and now we need to publish it"."""
        return (self.in_group0 & self.described.has(g)).implies(self.committed.has(g))

    @sometimes
    def clients_see_a_generation_while_its_node_joins(self) -> Bool:
        """003: they are to learn of the streams before the generation operates, "a minute or two" after it was made: not
        when the node that it was made for has streamed its data. (Under 001 its tokens wait for the description.)
        """
        described = some((self.new_generation == g) & self.described.has(g) for g in Generation)
        return (self.transition == WRITE_BOTH) & described

    @invariant
    def generations_are_described_in_their_order(self) -> Bool:
        """A client that has seen a generation misses none before it (scylladb PR #15281)."""
        pairs = [(g, h) for g in Generation for h in Generation if g.number < h.number]
        return every(
            (self.described.has(h) & self.committed.has(g)).implies(self.described.has(g))
            for g, h in pairs
        )

    @invariant
    def the_queue_loses_nothing(self, g: Term[Generation]) -> Bool:
        """A committed generation that the publisher has not described is in its queue (scylladb #15194)."""
        if not self.release.publisher:
            pending = (self.transition == PUBLISH) & (self.new_generation == g)
        else:
            pending = self.unpublished.has(g)
        return self.committed.has(g).implies(self.described.has(g) | pending)

    @lemma
    def a_new_generation_is_the_next_one(self, g: Term[Generation]) -> Bool:
        """It is committed when the commit's state is left, and its tokens come then."""
        is_new = self.new_generation == g
        place = g.number_column(lambda generation: generation.number)
        next_one = (self.transition == COMMIT).implies(
            ~self.tokens.has(g) & (place == self.committed.size())
        )
        committed = self.transition.any_of(PUBLISH, WRITE_BOTH).implies(self.committed.has(g))
        return is_new.implies(next_one & committed)

    @lemma
    def generations_are_committed_in_their_order(self) -> Bool:
        """None is skipped, and what is gossiped is the first one."""
        pairs = [(g, h) for g in Generation for h in Generation if g.number < h.number]
        in_order = every(self.committed.has(h).implies(self.committed.has(g)) for g, h in pairs)
        later = [g for g in Generation if g is not Generation.first]
        only_first = every(~self.tokens.has(g) & ~self.described.has(g) for g in later)
        gossip = (self.transition == NONE) & self.committed.is_empty() & only_first
        return in_order & choose(self.in_group0, ~self.committed.is_empty(), gossip)

    @lemma
    def the_publisher_works_on_its_queue(self, g: Term[Generation]) -> Bool:
        """The queue has committed generations only, and what is about to leave it is described."""
        queued = self.unpublished.has(g).implies(self.committed.has(g))
        return queued & (self.publishing == g).implies(self.described.has(g))

    @liveness
    def generations_are_described(self, g: Term[Generation]) -> LeadsTo:
        """001: "a new CDC generation was committed and now we need to publish it to user-facing description
        tables", whatever becomes of the join (scylladb #15194).
        """
        return leads_to(self.committed.has(g), self.described.has(g))

    @liveness
    def topology_changes_end(self) -> LeadsTo:
        """Publishing does not block the topology state machine (scylladb #15194)."""
        return leads_to(self.transition != NONE, self.transition == NONE)

    @liveness
    def the_queue_is_emptied(self, g: Term[Generation]) -> LeadsTo:
        """What is described leaves the queue, so that it can be cleared one day."""
        return leads_to(self.unpublished.has(g), ~self.unpublished.has(g))

    @final
    def at_rest(self) -> Bool:
        """A cluster may have all the generations that it ever gets."""
        return (self.transition == NONE) & self.writable

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            topology_changes_end,
            generations_are_described,
            NO_DEADLOCK,
            under=SEED,
            because="once the tables for CDC clients cannot be written, their dead replica is to be replaced by a "
            "topology change, which waits for the publication, for ever",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_step(
            transition,
            Transition.publish_cdc_generation,
            tuple(t for t in Transition if t is not Transition.publish_cdc_generation),
            because="no release has that state any more",
        ),
        equivalent_loss(begin, failed, because="then more is excused by an earlier failure"),
        equivalent_replacement(
            begin,
            "failed becomes: yes for no",
            because="then more is excused by an earlier failure",
        ),
        equivalent_drop(
            commit_for_request,
            "transition is commit_cdc_generation",
            because="a request has no other state",
        ),
        equivalent_loss(
            fail_barrier, transition, because="a barrier that failed may as well be tried again"
        ),
        equivalent_drop(
            describe,
            "the tables can be written",
            because="tables that cannot be written are not: what is described is seen",
        ),
        equivalent_loss(
            take_from_queue,
            publishing,
            because="what is not in the queue any more leaves it in vain, and no generation comes into it twice",
        ),
        equivalent_loss(
            fail_over,
            publishing,
            because="a coordinator that knows all that its predecessor knew does no harm",
        ),
        equivalent_loss(lose_tables, writable, because="tables that are not lost do no harm"),
        equivalent_drop(
            replace_replica, "a replica is lost", because="without it there is nothing to replace"
        ),
    )
