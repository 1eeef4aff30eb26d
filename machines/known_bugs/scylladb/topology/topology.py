"""Mistakes put back into `TopologyCluster`: a property breaks with each."""

from __future__ import annotations

from collections.abc import Callable

from stagewright.machines.scylladb.cluster import CLIENT, NETWORK, Node
from stagewright.machines.scylladb.topology.control.topology_record import (
    COORDINATOR,
    NODE,
    OPERATOR,
)
from stagewright.machines.scylladb.topology.topology import WEAK, TopologyCluster
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_states import (
    Barrier,
    NodeState,
    Ring,
    TransitionState,
)
from stagewright.spec import Bool, SetOf, Term, action, choose, every, require, some
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

LEARNS = 'design document 001: "After the entire cluster learns about it"'
T = TransitionState
WRITES: dict[BudgetName, int | None] = {TopologyCluster.reads: 0}
READS: dict[BudgetName, int | None] = {TopologyCluster.writes: 0}
NO_CLIENTS: dict[BudgetName, int | None] = {TopologyCluster.writes: 0, TopologyCluster.reads: 0}
ISSUED = 'design document 001: "when a request is issued to a node the entry is added to the map"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "001-14",
    'design document 001: barriers wait until "the entire cluster learns about it"',
    breaks=TopologyCluster.a_passed_barrier_means_a_learned_fence,
    budgets={TopologyCluster.crashes: 1, TopologyCluster.writes: 0, TopologyCluster.reads: 0},
)
class RestartedNodesServeAtOnce(TopologyCluster):
    """A dead node was being removed, so that no barrier waited for it, and came back: it served by the topology of
    before its crash, as if what the barrier had waited for were still to come.
    """

    @action(by=OPERATOR)
    def restart(self, n: Term[Node]) -> None:
        """The node comes back, as it went."""
        self.topology.restart(n)
        require(self.topology.members.has(n), "the node is in group0")


@known_bug(
    "001-35",
    'design document 001: writes go to both, and "after the entire cluster learns about it, streaming starts"',
    breaks=TopologyCluster.streaming_begins_when_writes_go_to_both,
    budgets=WRITES,
)
class NewOwnersAreStreamedFirst(TopologyCluster):
    """A new owner got no writes until it had streamed the range; those on their way by then were told to have timed out."""

    def _begin(self, n: Term[Node], targets: SetOf[Node]) -> None:
        topology, request = self.topology, self.request
        serves = topology.node_state[n].column(lambda state: state.owns)
        require(request.coordinator.is_none(), "no request is on its way")
        require(serves & ~topology.down.has(n), "node serves and is up")
        require(~targets.is_empty(), "node has learned of the owners")
        request.version = self.view[n].version
        request.coordinator = n
        request.targets = targets - self._without_rows()

    def _without_rows(self) -> SetOf[Node]:
        waits = self.topology.transition_state == T.write_both_read_old
        waits = waits & ~self.copied & ~self.topology.streamed
        return choose(waits, self.next - self.owners, frozenset())

    @action(by=COORDINATOR, fair=WEAK)
    def stream(self, source: Term[Node], target: Term[Node]) -> None:
        """The new owner receives the range, and the next write."""
        super().stream(source, target)
        self.request.abandoned = self.request.coordinator.is_some()


@known_bug(
    "001-36",
    'design document 001: "no reads that started before this point exist"',
    breaks=TopologyCluster.no_read_outlives_the_old_ring,
    budgets=READS,
)
class ReadsStillAskOldOwners(TopologyCluster):
    """Old owners had every write as long as writes went to both rings, and were read as long, too."""

    @action(by=CLIENT, spends=TopologyCluster.reads)
    def begin_read(self, n: Term[Node]) -> None:
        """A client reads one of the owners, new or old."""
        view = self.view[n]
        self._begin(n, view.reads | (view.writes & self.owners))
        self.request.value = self.acknowledged


@known_bug(
    "001-37",
    'design document 001: a normal node "serves the slice of the ring that belongs to it"',
    breaks=TopologyCluster.owners_are_in_the_ring,
    budgets=NO_CLIENTS,
)
class WhoLeftIsAnOwner(TopologyCluster):
    """The heir became an owner of the range beside the node that left, and not in its place."""

    @action(by=COORDINATOR, fair=WEAK)
    def leave_token_ring(self, n: Term[Node]) -> None:
        """The heir owns the range, too."""
        self.topology.leave_token_ring(n)
        self.owners = self.owners | self.next
        self.next = frozenset()


@known_bug(
    "001-38",
    'design document 001: new replicas "contain all the writes which reached the matching leaving" ones',
    breaks=TopologyCluster.new_owners_are_complete,
    budgets=NO_CLIENTS,
)
class StreamsEndInTheBackground(TopologyCluster):
    """Streams went on while reads used the new ring already, and came to their end with the operation."""

    @action(by=COORDINATOR, fair=WEAK)
    def stream(self, source: Term[Node], target: Term[Node]) -> None:
        """The new owner receives the range as long as writes go to both rings."""
        topology = self.topology
        both = topology.transition_state.any_of(T.write_both_read_old, T.write_both_read_new)
        require(both & (topology.barrier == Barrier.passed), "writes go to both rings")
        require(self.owners.has(source), "the source is an owner")
        require(~topology.down.has(source), "the source is alive")
        require(self.next.has(target) & ~self.owners.has(target), "the target is a new owner")
        require(~topology.down.has(target), "the target is up")
        newer = self.data[target] < self.data[source]
        self.data[target] = choose(newer, self.data[source], self.data[target])

    @action(by=COORDINATOR, fair=WEAK)
    def stream_ranges(self) -> None:
        """Every node that streams answers that it has begun."""
        self.topology.stream_ranges()

    def _adopt(self) -> None:
        for n in Node:
            late = self.next.has(n) & (self.data[n] < self.acknowledged)
            self.data[n] = choose(late, self.acknowledged, self.data[n])
        super()._adopt()


@known_bug(
    "001-39",
    'design document 001: writes "will reach CL in both old and new replica sets"',
    breaks=TopologyCluster.owners_store_what_was_acknowledged,
    budgets=WRITES,
)
class WritesMoveWithReads(TopologyCluster):
    """When reads moved to the new ring, so did writes: the old owners, which may still be read, missed them."""

    def _ring(self, column: Callable[[TransitionState], Ring]) -> SetOf[Node]:
        moved = self.topology.transition_state == T.write_both_read_new
        return choose(moved, self.next, super()._ring(column))


@known_bug(
    "001-408",
    'design document 001: "make sure that no reads that started before this point exist in the system"',
    breaks=TopologyCluster.nodes_that_learn_cut_nobody_off,
    budgets=WRITES,
)
class WhoLearnsOfARingDropsItsRequests(TopologyCluster):
    """A node that learned of the next state of the topology ended what it coordinated by the one before: clients saw
    timeouts at each step of a join.
    """

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """A node applies what is committed, and gives up what began before."""
        super().learn(n)
        self._abandon(n)


@known_bug(
    "001-40",
    'design document 001: the new replica set "will reflect all successful writes"',
    breaks=TopologyCluster.nodes_keep_what_is_newest,
    budgets=WRITES,
)
class TimedOutWritesAreTakenBack(TopologyCluster):
    """A coordinator had the replicas forget a write that timed out; clients may have read it by then."""

    @action(by=NETWORK, fair=WEAK)
    def time_out(self) -> None:
        """The replicas that have stored the write go back to what was acknowledged."""
        super().time_out()
        for r in Node:
            stored = self.request.write & self.request.reached.has(r)
            self.data[r] = choose(stored, self.acknowledged, self.data[r])


@known_bug(
    "001-105",
    'design document 001: "make sure that no reads that started before this point exist in the system"',
    breaks=(
        TopologyCluster.a_barrier_waits_for_older_requests,
        TopologyCluster.reads_succeed_while_the_ring_changes,
    ),
    budgets={TopologyCluster.crashes: 0, TopologyCluster.writes: 0, TopologyCluster.reads: 1},
)
class CleanupWaitsForVersionsAlone(TopologyCluster):
    """Rows were removed once all nodes had the version of the topology, whatever they had asked for with an older one."""

    @action(by=COORDINATOR, fair=WEAK)
    def fence_before_cleanup(self) -> None:
        """The versions are compared, and nothing else."""
        learned = every(
            (self.topology.members.has(n) & ~self.topology.down.has(n)).implies(
                self.view[n].version == self.topology.version
            )
            for n in Node
        )
        require(learned, "all that are up have learned")
        self.topology.fence_before_cleanup()


@known_bug(
    "001-311",
    'design document 001: "Writes are going to both new and old replicas"',
    breaks=TopologyCluster.a_write_to_both_rings_succeeds,
    budgets=WRITES,
)
class AnswersOfNewReplicasAreNotCounted(TopologyCluster):
    """A coordinator waited for all to whom it had sent a write, and took answers of old replicas only: while a node joined
    every write timed out.
    """

    @action(fair=WEAK)
    def store_write(self, r: Term[Node]) -> None:
        """Replica `r` stores the write; its answer counts if it is an old one."""
        request = self.request
        require(request.write & request.targets.has(r), "it is sent to the replica")
        require(~self.topology.down.has(r), "replica is up")
        self._not_fenced(r)
        self.data[r] = request.value
        request.reached.put(r, self.owners.has(r))


@known_bug(
    "001-312",
    'design document 001: "make sure that no reads that started before this point exist in the system"',
    breaks=TopologyCluster.only_what_goes_on_is_given_up,
)
class WhoGaveUpOnceIsNotWaitedFor(TopologyCluster):
    """The mark of a request that its client had given up stayed with the coordinator: no barrier waited for the next one."""

    def _forget(self) -> None:
        request = self.request
        request.coordinator = None
        request.write = False
        request.version = 0
        request.targets = frozenset()
        request.reached = frozenset()
        request.value = 0


@known_bug(
    "001-313",
    "design document 001: replacing, another dead node's data is streamed to the node",
    breaks=TopologyCluster.who_replaces_owns_what_the_replaced_did,
    sizes={Node: 3},
    budgets={**NO_CLIENTS, TopologyCluster.crashes: 1, TopologyControl.faults: 0},
)
class OtherOwnersAreEnough(TopologyCluster):
    """The node that replaced another got none of its ranges as long as they had other owners."""

    def _replaces(self, n: Term[Node]) -> None:
        dead = self.topology.replaced_id[n]
        others = some(self.owners.has(m) & (dead != m) for m in Node)
        for m in Node:
            self.next.put(m, (self.owners.has(m) & (dead != m)) | ((m == n) & ~others))


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "001-17",
    "design document 001: writes are going to both new and old replicas",
    breaks=TopologyCluster.clients_write_while_the_ring_changes,
)
class WritesWaitForTheRing(TopologyCluster):
    """No client may write while a node joins or leaves, once new replicas are read."""

    @action(by=CLIENT, spends=TopologyCluster.writes)
    def begin_write(self, n: Term[Node]) -> None:
        """A client writes to a ring in which old replicas are read."""
        super().begin_write(n)
        moved = self.topology.transition_state == TransitionState.write_both_read_new
        require(~moved, "reads have not moved")


@known_bug(
    "001-18",
    "design document 001: reads are using old replicas, then new replicas",
    breaks=TopologyCluster.clients_read_while_the_ring_changes,
)
class ReadsWaitForTheRing(TopologyCluster):
    """No client may read while a node joins or leaves."""

    @action(by=CLIENT, spends=TopologyCluster.reads)
    def begin_read(self, n: Term[Node]) -> None:
        """A client reads from a ring that stays as it is."""
        super().begin_read(n)
        require(self.topology.is_at_rest(), "the topology is at rest")


@known_bug(
    "001-82",
    'design document 001: "Writes are going to both new and old replicas"',
    breaks=TopologyCluster.writes_are_stored_while_the_ring_changes,
    budgets=WRITES,
)
class WhoJoinsTakesNoWrites(TopologyCluster):
    """A node that bootstraps took no writes before it had streamed: each that came meanwhile timed out."""

    @action(fair=WEAK)
    def store_write(self, r: Term[Node]) -> None:
        """Replica `r` stores the write, unless it bootstraps."""
        super().store_write(r)
        joins = self.topology.node_state[r] == NodeState.bootstrapping
        require(~joins, "the replica does not bootstrap")


@known_bug(
    "001-83",
    "design document 001, stage 3: writes are executed on behalf of successful requests",
    breaks=TopologyCluster.writes_succeed_while_the_ring_changes,
    budgets=WRITES,
)
class WritesAreAcknowledgedWhenTheRingRests(TopologyCluster):
    """A write of the time at which reads move was acknowledged when the ring had changed: most had timed out."""

    @action(fair=WEAK)
    def acknowledge_write(self) -> None:
        """All replicas have answered, and reads are not about to leave the old ones."""
        super().acknowledge_write()
        moved = self.topology.transition_state == T.write_both_read_new
        require(~moved, "reads have not moved")


@known_bug(
    "001-84",
    'design document 001: "reads are using old replicas", then "new replicas"',
    breaks=TopologyCluster.reads_succeed_while_the_ring_changes,
    budgets=READS,
)
class OldOwnersAnswerNoReads(TopologyCluster):
    """Owners that hand a range over answered no reads while they streamed it."""

    @action(fair=WEAK)
    def answer_read(self, r: Term[Node]) -> None:
        """Replica `r` answers the read, unless ranges are streamed."""
        super().answer_read(r)
        streams = self.topology.transition_state == T.write_both_read_old
        require(~streams, "nothing is streamed")


@known_bug(
    "001-106",
    ISSUED,
    breaks="topology.requests_are_issued_at_any_time",
    budgets=READS,
)
class LeavingWaitsForRequests(TopologyCluster):
    """A decommission is refused while a client's request is on its way."""

    @action(by=OPERATOR, spends=TopologyCluster.operations)
    def ask_to_leave(self, n: Term[Node]) -> None:
        """A node is decommissioned, and serves nobody."""
        super().ask_to_leave(n)
        require(self.request.coordinator.is_none(), "no request is on its way")


@known_bug(
    "001-107",
    ISSUED,
    breaks=TopologyCluster.dead_nodes_are_removed_while_clients_wait,
    budgets={**READS, TopologyCluster.crashes: 1, TopologyControl.faults: 0},
)
class RemovingWaitsForRequests(TopologyCluster):
    """A dead node is not removed while a client's request is on its way, which the node may never answer."""

    @action(by=OPERATOR, spends=TopologyCluster.operations)
    def ask_to_remove(self, n: Term[Node]) -> None:
        """A dead node is removed, if nobody waits for it."""
        super().ask_to_remove(n)
        require(self.request.coordinator.is_none(), "no request is on its way")


@known_bug(
    "001-108",
    ISSUED,
    breaks=TopologyCluster.dead_nodes_are_replaced_while_clients_wait,
    sizes={Node: 3},
    budgets={**READS, TopologyCluster.crashes: 1, TopologyControl.faults: 0},
)
class ReplacingWaitsForRequests(TopologyCluster):
    """A dead node is not replaced while a client's request is on its way, which the node may never answer."""

    @action(by=NODE, spends=TopologyCluster.operations)
    def ask_to_replace(self, n: Term[Node], dead: Term[Node]) -> None:
        """A node asks to join in the place of a dead one, if nobody waits for that."""
        super().ask_to_replace(n, dead)
        require(self.request.coordinator.is_none(), "no request is on its way")


@known_bug(
    "001-173",
    LEARNS,
    breaks=TopologyCluster.barriers_wait_for_nothing_else,
    budgets={TopologyCluster.writes: 0},
)
class BarriersWaitForWhatIsGivenUp(TopologyCluster):
    """A barrier waited also for requests whose clients had been told that they timed out."""

    def _has_drained(self, n: Term[Node]) -> Bool:
        older = self.request.version < self.topology.version
        return super()._has_drained(n) & ~((self.request.coordinator == n) & older)


@known_bug(
    "001-175",
    'design document 001: "When a request is issued to a node the entry is added to the map"',
    breaks=(
        TopologyCluster.dead_nodes_are_removed_while_clients_wait,
        TopologyCluster.dead_nodes_are_replaced_while_clients_wait,
    ),
    budgets={TopologyCluster.writes: 0, TopologyCluster.reads: 0, TopologyCluster.crashes: 1},
)
class NoOwnerIsGivenUp(TopologyCluster):
    """A dead node that owned the range could not be removed, or replaced, although another one had its rows as well."""

    def _is_stored_without(self, n: Term[Node]) -> Bool:
        return ~self.owners.has(n)


@known_bug(
    "001-523",
    LEARNS,
    breaks=TopologyCluster.nodes_learn_while_clients_wait,
    budgets=READS,
)
class WhoCoordinatesDoesNotLearn(TopologyCluster):
    """A node applied what was committed when the request that it coordinated was over: one that always had one never
    did.
    """

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """The node coordinates nothing, and applies what is committed."""
        super().learn(n)
        require(self.request.coordinator != n, "it coordinates nothing")


@known_bug(
    "001-524",
    'design document 001: "Writes are going to both new and old replicas … streaming starts"',
    breaks=TopologyCluster.ranges_are_streamed_while_clients_write,
    budgets=WRITES,
)
class StreamingWaitsForClients(TopologyCluster):
    """A range was streamed while nobody wrote to it."""

    @action(by=COORDINATOR, fair=WEAK)
    def stream(self, source: Term[Node], target: Term[Node]) -> None:
        """The new owner receives the range, if no client writes."""
        super().stream(source, target)
        require(~self.request.write, "no write is on its way")


@known_bug(
    "001-525",
    'design document 001: "no reads that started before this point … Finally we remove the transitioning state"',
    breaks=TopologyCluster.joins_end_while_clients_wait,
    budgets=READS,
)
class JoinsEndWhenNobodyReads(TopologyCluster):
    """After the barrier of the last state the join still waited for requests that had begun since, which use the new
    ring.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def finish_bootstrap(self, n: Term[Node]) -> None:
        """The new owner is the owner, once no client waits."""
        super().finish_bootstrap(n)
        require(self.request.coordinator.is_none(), "no request is on its way")


@known_bug(
    "001-572",
    'design document 001: "no reads that started before this point … Finally we remove the transitioning state"',
    breaks=TopologyCluster.operations_wait_for_no_client,
    budgets=READS,
)
class NodesLeaveWhenNobodyReads(TopologyCluster):
    """A node that was decommissioned left the token ring in a moment without requests, for which it waited after its
    barrier, too.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def leave_token_ring(self, n: Term[Node]) -> None:
        """The heir owns what the node did, once no client waits."""
        super().leave_token_ring(n)
        require(self.request.coordinator.is_none(), "no request is on its way")


@known_bug(
    "001-573",
    'design document 001: "Writes are going to both new and old replicas"',
    breaks=TopologyCluster.clients_wait_for_no_operation,
    budgets=WRITES,
)
class NothingTimesOutWhileTheRingChanges(TopologyCluster):
    """While the range had new owners, a client whose replica was slow was not told that its time was up."""

    @action(by=NETWORK, fair=WEAK)
    def time_out(self) -> None:
        """A replica does not answer in time, and the ring does not change."""
        super().time_out()
        require(self.next.is_empty(), "the ring does not change")


@known_bug(
    "001-619",
    'design document 001: "make sure that no reads that started before this point exist in the system"',
    breaks=TopologyCluster.nodes_that_learn_cut_nobody_off,
    budgets={TopologyCluster.writes: 0, TopologyCluster.crashes: 1},
)
class RingDelayEndsWhatIsUnderWay(TopologyCluster):
    """After ring_delay whatever was under way counted as timed out: clients whose requests had begun since were told so,
    too.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def wait_ring_delay(self) -> None:
        """Within ring_delay, all requests are over."""
        super().wait_ring_delay()
        self.request.abandoned = self.request.coordinator.is_some()


BUGS = known_bugs_in(globals())
