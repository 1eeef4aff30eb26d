"""Mistakes put back into `CdcPublication`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.cdc.cdc_publication import (
    COMMIT,
    COORDINATOR,
    NONE,
    OPERATOR,
    ROLLED_BACK,
    WEAK,
    WRITE_BOTH,
    CdcPublication,
    Generation,
    Transition,
)
from stagewright.spec import Bool, Fairness, FlagVar, Term, action, choose, flag, only_when, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in, released_bug

DESCRIBED = "design document 003: nodes describe a generation when they learn about it"


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "001-56",
    "design document 001, the transition diagram: what fails is left",
    breaks=CdcPublication.a_topology_change_goes_one_way,
)
class ARollbackIsTriedAgain(CdcPublication):
    """A coordinator that took over while a join was rolled back found the node bootstrapping, and went on with the join."""

    @CdcPublication.transition.step(ROLLED_BACK, WRITE_BOTH, by=COORDINATOR)
    def resume_join(self, g: Term[Generation]) -> None:
        """The generation of the join is there: its tokens join the ring."""
        require((self.new_generation == g) & self.committed.has(g), "it is committed")
        self.tokens.add(g)


@known_bug(
    "001-57",
    "design document 001: a new CDC generation was committed and now we need to publish it",
    breaks=CdcPublication.clients_see_committed_generations_only,
)
class WhatIsWrittenIsPublished(CdcPublication):
    """A publisher with nothing in its queue published the generation that was to come, whose data was written: the join
    failed, and clients read from streams that no write ever goes to.
    """

    @action(by=COORDINATOR)
    def describe_early(self, g: Term[Generation]) -> None:
        """The generation whose data was written last is written to the tables for CDC clients."""
        require((self.transition == COMMIT) & (self.new_generation == g), "its data is written")
        require(self.unpublished.is_empty() & self.writable, "the publisher has time")
        self.described.add(g)


@known_bug(
    "003-10",
    "design document 001, after a request from the user to create a new CDC generation",
    breaks=(
        CdcPublication.tokens_are_of_the_node_that_joins,
        CdcPublication.tokens_come_with_a_join_and_go_with_its_failure,
    ),
)
class ARequestedGenerationBringsTokens(CdcPublication):
    """What commits a generation inserts the tokens for which it was made, whoever asked for it."""

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def commit_for_request(self, g: Term[Generation]) -> None:
        """The generation is committed like that of a join."""
        super().commit_for_request(g)
        self.tokens.add(g)


@known_bug(
    "003-19",
    "design document 003: before that, it will introduce a new CDC generation",
    breaks=CdcPublication.tokens_join_after_their_generation,
)
class TokensJoinWithTheData(CdcPublication):
    """The tokens of a node joined the ring when the data of its generation was written, before that got its timestamp."""

    @action(by=COORDINATOR)
    def insert_tokens(self, g: Term[Generation]) -> None:
        """The data is written: the tokens join the ring."""
        require((self.transition == COMMIT) & (self.new_generation == g), "its data is written")
        require(self.joins, "a node joins")
        self.tokens.add(g)

    @CdcPublication.transition.step(
        COMMIT, ROLLED_BACK, by=COORDINATOR, spends=CdcPublication.failures
    )
    def fail_barrier(self) -> None:
        """The join is undone, and its tokens leave the ring."""
        require(self.joins, "a node joins")
        for g in Generation:
            self.tokens.put(g, self.tokens.has(g) & (self.new_generation != g))
        self.failed = True


@known_bug(
    "003-29",
    "design document 003: nodes describe a generation when they learn about it",
    breaks=CdcPublication.clients_see_a_generation_while_its_node_joins,
)
class PublishedWhenTheNodeHasJoined(CdcPublication):
    """The publisher waited until the topology was at rest: a node streams for hours while its generation operates."""

    @action(by=COORDINATOR, fair=WEAK)
    def describe(self, g: Term[Generation]) -> None:
        """The publisher writes the oldest generation of the queue to the tables, at rest."""
        require(self.transition == NONE, "no topology change is going on")
        super().describe(g)


@known_bug(
    "003-45",
    "design document 003: before that, it will introduce a new CDC generation",
    breaks=CdcPublication.each_topology_change_has_a_generation_of_its_own,
)
class WhatIsCommittedIsUsedAgain(CdcPublication):
    """The generation of a join that was rolled back served the next one: its ranges do not refine the vnodes that another
    node's tokens make.
    """

    @CdcPublication.transition.step(NONE, COMMIT, by=COORDINATOR)
    def begin(self, g: Term[Generation], join: Bool) -> None:
        """A node joins, or a user asks for a new generation: a new one is made, if none is left over."""
        is_next = g.number_column(lambda generation: generation.number) == self.committed.size()
        require(self.in_group0, "topology is in group0")
        left_over = join & self.committed.has(g) & ~self.tokens.has(g)
        require(is_next | left_over, "it is the next generation, or is left over")
        self.new_generation = g
        self.joins = join


@known_bug(
    "003-46",
    "design document 001: after getting a request from the user to create a new CDC generation",
    breaks=CdcPublication.requests_create_a_generation,
)
class RequestsEndWithTheirBarrier(CdcPublication):
    """A barrier failed, and with it a user's request: the generation was neither committed nor tried again."""

    @CdcPublication.transition.step(COMMIT, NONE, by=COORDINATOR, spends=CdcPublication.failures)
    def fail_request(self) -> None:
        """A node does not answer the barrier: the request is over."""
        require(~self.joins, "no node joins")
        self.new_generation = None


@known_bug(
    "003-71",
    "design document 001: now we need to commit the generation",
    breaks=CdcPublication.joins_are_undone_when_something_has_failed,
    budgets={CdcPublication.failures: 0},
)
class FailoversRollJoinsBack(CdcPublication):
    """A coordinator that took over rolled back the join whose generation was to be committed, as it did not know whether the
    barrier had passed: the operator had a node refused of which nothing had failed.
    """

    @action(by=COORDINATOR, spends=CdcPublication.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and undoes what is not committed."""
        self.publishing = None
        undone = (self.transition == COMMIT) & self.joins
        self.transition = choose(undone, ROLLED_BACK, self.transition)


@known_bug(
    "003-134",
    "design document 001: now we need to commit the generation",
    breaks=CdcPublication.joins_are_undone_when_something_has_failed,
)
class FailoversRollJoinsBackAfterAFailure(CdcPublication):
    """A barrier that had failed was noted for the cluster, and not for the join: each coordinator that took over undid the join
    that it found, also long after that.
    """

    has_failed: FlagVar = flag()

    @CdcPublication.transition.step(
        COMMIT, ROLLED_BACK, by=COORDINATOR, spends=CdcPublication.failures
    )
    def fail_barrier(self) -> None:
        """A node does not answer the barrier: that is noted."""
        only_when(self.release.rollback)
        require(self.joins, "a node joins")
        self.failed = True
        self.has_failed = True

    @action(by=COORDINATOR, spends=CdcPublication.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and finds the note."""
        self.publishing = None
        undone = (self.transition == COMMIT) & self.joins & self.has_failed
        self.transition = choose(undone, ROLLED_BACK, self.transition)


@known_bug(
    "003-86",
    "design document 003: when a new node joins the cluster it modifies the token ring",
    breaks=CdcPublication.a_topology_change_goes_one_way,
)
class FailoversTakeJoinsForRequests(CdcPublication):
    """A coordinator that took over found a generation to be committed, and took it for one that a user had asked for: when it was
    committed all was done, and the node for which it was made did not join.
    """

    @action(by=COORDINATOR, spends=CdcPublication.failovers)
    def fail_over(self) -> None:
        """The new coordinator does not know that a node joins."""
        super().fail_over()
        self.joins = self.joins & (self.transition != COMMIT)


@known_bug(
    "003-93",
    "design document 003: when a new node joins the cluster it modifies the token ring",
    breaks=CdcPublication.tokens_come_with_a_join_and_go_with_its_failure,
)
class JoinedNodesLoseTheirTokens(CdcPublication):
    """With the request of a join its tokens were removed, as when it had failed: the node was a normal one, and owned
    nothing.
    """

    @CdcPublication.transition.step(WRITE_BOTH, NONE, by=COORDINATOR, fair=Fairness.WEAK)
    def finish_join(self) -> None:
        """The node is a normal one; what was noted for its request is removed."""
        for g in Generation:
            self.tokens.put(g, self.tokens.has(g) & (self.new_generation != g))
        self._end()


@known_bug(
    "003-94",
    "design document 003: when a new node joins the cluster it modifies the token ring",
    breaks=CdcPublication.tokens_come_with_a_join_and_go_with_its_failure,
)
class RollbacksEndAsJoins(CdcPublication):
    """The end of every request was one: where the generation was committed, the node of a join that was rolled back got
    its tokens again.
    """

    @CdcPublication.transition.step(ROLLED_BACK, NONE, by=COORDINATOR, fair=Fairness.WEAK)
    def finish_rollback(self) -> None:
        """The request is over."""
        only_when(self.release.rollback)
        for g in Generation:
            joined = (self.new_generation == g) & self.committed.has(g)
            self.tokens.put(g, self.tokens.has(g) | joined)
        self._end()


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "001-58",
    "design document 001: a new CDC generation was committed and now we need to publish it",
    breaks=CdcPublication.generations_are_described,
)
class AFailedJoinTakesItsGenerationAlong(CdcPublication):
    """A join that failed gave up its generation, if that was not published yet: nodes had used it for their log writes,
    and clients never heard of it.
    """

    @CdcPublication.transition.step(
        WRITE_BOTH, ROLLED_BACK, by=COORDINATOR, spends=CdcPublication.failures
    )
    def fail_streaming(self, g: Term[Generation]) -> None:
        """The join fails; its tokens leave the ring, and its generation the queue."""
        require(self.new_generation == g, "the generation was made for it")
        self.tokens.discard(g)
        self.committed.put(g, self.described.has(g))
        self.unpublished.put(g, self.unpublished.has(g) & self.described.has(g))
        self.failed = True


@known_bug(
    "C02",
    "scylladb #17288",
    breaks=(CdcPublication.generations_are_described, CdcPublication.the_queue_loses_nothing),
)
class UpgradeForgetsToPublish(CdcPublication):
    """The upgrade to topology on group0 commits a generation and does not queue it for the publisher."""

    @action(by=OPERATOR, fair=Fairness.WEAK)
    def upgrade(self) -> None:
        only_when(self.release.publisher)
        require(~self.in_group0, "topology is gossiped")
        self.in_group0 = True
        self.committed.add(Generation.first)


PUBLISHING_IS_A_STATE_OF_THE_TOPOLOGY = released_bug(
    "C07",
    "scylladb #15194, PR #15281",
    "Publishing is a state that a join goes through: while the tables for CDC clients cannot be written it "
    "can be neither finished nor aborted, and every other topology change waits.",
    machine=CdcPublication,
    profile="seed",
    breaks=CdcPublication.topology_changes_end,
    mended_in="scylla-2026.2",
)


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "001-67",
    "design document 001: after getting a request from the user to create a new CDC generation",
    breaks=CdcPublication.topology_changes_do_not_wait_for_clients,
)
class RequestsWaitForThePublisher(CdcPublication):
    """Nodes join at any time; a user who asks for a new generation is refused while the last one is not published."""

    @CdcPublication.transition.step(NONE, COMMIT, by=COORDINATOR)
    def begin(self, g: Term[Generation], join: Bool) -> None:
        """A node joins, or a user asks when everything is published."""
        is_next = g.number_column(lambda generation: generation.number) == self.committed.size()
        require(self.in_group0, "topology is in group0")
        require(is_next, "it is the next generation")
        require(join | self.unpublished.is_empty(), "nothing is to be published")
        self.new_generation = g
        self.joins = join


@known_bug(
    "003-11",
    "design document 001: publish_cdc_generation",
    breaks=CdcPublication.topology_changes_do_not_wait_for_clients,
)
class TheNextChangeWaitsForThePublisher(CdcPublication):
    """No node joins while a generation is in the publisher's queue, which CDC clients' tables may hold up."""

    @action(by=COORDINATOR)
    def begin(self, g: Term[Generation], join: Bool) -> None:
        """A topology change begins once everything is published."""
        super().begin(g, join)
        require(self.unpublished.is_empty(), "nothing is to be published")


@known_bug(
    "003-48",
    "design document 003: nodes race to update the description table",
    breaks=CdcPublication.clusters_are_upgraded_at_any_time,
)
class UpgradesWaitForTheDescription(CdcPublication):
    """Topology was not moved to group0 before a node had described the generation that was gossiped, for which its tables
    had to be there.
    """

    @action(by=OPERATOR, fair=WEAK)
    def upgrade(self) -> None:
        """A cluster whose generation clients can see moves its topology to group0."""
        require(self.described.has(Generation.first), "it is described")
        super().upgrade()


@known_bug(
    "003-49",
    "design document 003: nodes describe a generation when they learn about it",
    breaks=CdcPublication.generations_are_published_whatever_the_topology_does,
)
class PublishedBetweenCommits(CdcPublication):
    """The publisher waited while a generation was about to be committed, so that it would describe both: a commit that
    waits for a dead node held up the one before.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def describe(self, g: Term[Generation]) -> None:
        """The publisher writes the oldest generation of the queue to the tables while none is being committed."""
        require(self.transition != COMMIT, "none is being committed")
        super().describe(g)


@known_bug("003-54", DESCRIBED, breaks=CdcPublication.joins_are_committed_whatever_is_published)
class JoinsWaitForTheQueue(CdcPublication):
    """The generation of a join was committed when the one before had left the publisher's queue, if that could be."""

    @CdcPublication.transition.step(COMMIT, WRITE_BOTH, by=COORDINATOR, fair=WEAK)
    def commit_for_join(self, g: Term[Generation]) -> None:
        """The generation gets its timestamp and is queued, alone."""
        require(self.joins, "a node joins")
        require(self.unpublished.is_empty() | ~self.writable, "the queue is empty")
        self._commit(g)
        self._queue(g)
        self.tokens.add(g)


@known_bug("003-55", DESCRIBED, breaks=CdcPublication.requests_are_committed_whatever_is_published)
class RequestsWaitForTheQueue(CdcPublication):
    """The same of a generation that a user asked for."""

    @CdcPublication.transition.step(COMMIT, NONE, by=COORDINATOR, fair=WEAK)
    def commit_for_request(self, g: Term[Generation]) -> None:
        """The generation gets its timestamp and is queued, alone."""
        require(~self.joins, "no node joins")
        require(self.unpublished.is_empty() | ~self.writable, "the queue is empty")
        self._commit(g)
        self._queue(g)
        self.new_generation = None


@known_bug("003-56", DESCRIBED, breaks=CdcPublication.joins_end_whatever_is_published)
class NodesHaveJoinedWhenClientsKnow(CdcPublication):
    """A node counted as joining until clients could read of its generation, if the tables could be written."""

    @CdcPublication.transition.step(WRITE_BOTH, NONE, by=COORDINATOR, fair=WEAK)
    def finish_join(self) -> None:
        """Data is streamed, and the generation is described."""
        require(self.unpublished.is_empty() | ~self.writable, "the queue is empty")
        self._end()


@known_bug("003-57", DESCRIBED, breaks=CdcPublication.rollbacks_end_whatever_is_published)
class RollbacksWaitForTheQueue(CdcPublication):
    """A join was rolled back when the generation that it had brought was published."""

    @CdcPublication.transition.step(ROLLED_BACK, NONE, by=COORDINATOR, fair=WEAK)
    def finish_rollback(self) -> None:
        """The node has left, and clients see its generation."""
        require(self.unpublished.is_empty(), "the queue is empty")
        self._end()


@known_bug(
    "003-84",
    "design document 003, Streams description table; scylladb #15194",
    breaks=CdcPublication.rollbacks_end_whatever_is_published,
    budgets={CdcPublication.failures: 2},
)
class RollbacksWaitForTheTables(CdcPublication):
    """The rollback of a join ended when the tables for CDC clients could be written, whose dead replica is to be replaced by
    another topology change.
    """

    @CdcPublication.transition.step(ROLLED_BACK, NONE, by=COORDINATOR, fair=Fairness.WEAK)
    def finish_rollback(self) -> None:
        """The node has left, and the tables can be written."""
        only_when(self.release.rollback)
        require(self.writable, "the tables can be written")
        self._end()


@known_bug(
    "003-92",
    "design document 003, Generation switching: the description is published for clients",
    breaks=CdcPublication.the_queue_goes_on_whatever_the_topology_does,
)
class TheQueueIsClearedAtRest(CdcPublication):
    """A generation that was described left the queue when no topology change went on: the next one waited for it."""

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def take_from_queue(self, g: Term[Generation]) -> None:
        """What was written leaves the queue at rest."""
        super().take_from_queue(g)
        require(self.transition == NONE, "no topology change goes on")


@known_bug(
    "003-95",
    "design document 003, Streams description table; scylladb #15194",
    breaks=CdcPublication.dead_replicas_are_replaced_whatever_is_published,
    budgets={CdcPublication.failures: 2},
)
class ReplacementsWaitForTheQueue(CdcPublication):
    """A dead node was replaced when what its coordinator had described last had left the queue."""

    @action(by=OPERATOR, fair=Fairness.WEAK)
    def replace_replica(self) -> None:
        """The operator has a dead node replaced, while nothing is published."""
        super().replace_replica()
        require(self.publishing.is_none(), "nothing is published")


@known_bug(
    "003-96",
    "design document 001: we need to commit the generation",
    breaks=CdcPublication.generations_are_committed_whatever_clients_can_see,
    profile="seed",
)
class CommitsWaitForTheTables(CdcPublication):
    """A generation was not committed while the tables for CDC clients could not be written."""

    @CdcPublication.transition.step(
        COMMIT, Transition.publish_cdc_generation, by=COORDINATOR, fair=Fairness.WEAK
    )
    def commit_before_publishing(self, g: Term[Generation]) -> None:
        """Every node has the data, and the tables can be written."""
        only_when(not self.release.publisher)
        require(self.writable, "the tables can be written")
        self._commit(g)


@known_bug(
    "003-124",
    "design document 003: a joining node modifies the token ring by refining existing vnodes",
    breaks=CdcPublication.tokens_are_of_the_node_that_joins,
)
class AFailedJoinTakesOtherTokensAlong(CdcPublication):
    """The rollback of a join set the ring to that of the first generation: the node that had joined before owned nothing."""

    @CdcPublication.transition.step(
        WRITE_BOTH, ROLLED_BACK, by=COORDINATOR, spends=CdcPublication.failures
    )
    def fail_streaming(self, g: Term[Generation]) -> None:
        """The join fails; the ring is what it was at first."""
        require(self.new_generation == g, "the generation was made for it")
        self.tokens = frozenset({Generation.first})
        self.failed = True


@known_bug(
    "003-125",
    "design document 003: before that, it will introduce a new CDC generation",
    breaks=CdcPublication.tokens_join_after_their_generation,
    budgets={CdcPublication.failures: 0},
)
class JoinsWithoutTablesWithLogs(CdcPublication):
    """A node joined without a commit of its generation while no table had a log, as nobody was to use it: those that got one
    later had a generation of another ring.
    """

    @CdcPublication.transition.step(COMMIT, WRITE_BOTH, by=COORDINATOR)
    def join_without_commit(self, g: Term[Generation]) -> None:
        """The tokens join the ring, and nothing is committed."""
        require(self.joins & (self.new_generation == g), "a node joins")
        self.tokens.add(g)


BUGS = known_bugs_in(globals())
