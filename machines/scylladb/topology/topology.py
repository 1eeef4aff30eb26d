"""A topology that changes under clients: the topology coordinator's steps, joined with nodes and data.

The control machine of `topology_control.py` inside of what can go wrong around it (`topology_nodes.py`),
and the promises of the design document about reads and writes.
"""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.tablet_nodes import NETWORK, Node
from stagewright.machines.scylladb.topology.topology_control import (
    COORDINATOR,
    NODE,
    OPERATOR,
    TopologyControl,
)
from stagewright.machines.scylladb.topology.topology_nodes import TopologyNodes
from stagewright.machines.scylladb.topology.topology_ranges import TopologyRanges
from stagewright.machines.scylladb.topology.topology_reasons import TABLES_OF_RANGES
from stagewright.machines.scylladb.topology.topology_states import (
    Barrier,
    GlobalRequest,
    NodeState,
    TransitionState,
)
from stagewright.spec import (
    Bool,
    Fairness,
    Term,
    action,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_without,
    equivalents,
    every,
    final,
    require,
    scopes,
    some,
)

WEAK = Fairness.WEAK
T = TransitionState


class TopologyCluster(TopologyRanges):
    """Nodes that join, leave, are replaced or removed, while clients write to and read from a range.

    Under `scylla-2026.2` every promise holds.

    Under the releases before it a bug of that time is found: a node removes the rows of a range that it has
    lost while a coordinator that has not learned of it still writes to both rings, so the write is stored
    after the cleanup (`rows_of_lost_ranges_are_known`; scylladb #26150).

    Under `seed` the control machine's own promises are broken that it names, as far as there are no tablets.
    Nobody is told later than at the commit that a bootstrap is done: `topology_announced.py` has that.
    """

    operations = budget(1, doc="nodes that ask to join, replace, leave or be removed")
    failures = budget(0, doc="steps that fail although all nodes are up")
    coordinator_changes = budget(0, doc="changes of the topology coordinator")

    exercised_at = scopes(
        {TopologyNodes.writes: 0},
        {TopologyNodes.writes: 0, TopologyNodes.reads: 0, TopologyNodes.crashes: 1},
        {TopologyNodes.reads: 0},
        {
            TopologyNodes.writes: 0,
            TopologyNodes.reads: 0,
            TopologyNodes.crashes: 1,
            failures: 1,
            coordinator_changes: 1,
        },
        {
            TopologyNodes.writes: 0,
            TopologyNodes.reads: 0,
            TopologyNodes.crashes: 1,
            operations: 2,
        },
        {TopologyNodes.writes: 0, TopologyNodes.crashes: 1, TopologyControl.faults: 0},
        {},
        {TopologyNodes.reads: 0, TopologyNodes.crashes: 1, TopologyControl.faults: 0},
        {
            Node: 3,
            TopologyNodes.writes: 0,
            TopologyNodes.reads: 0,
            TopologyNodes.crashes: 1,
            TopologyControl.faults: 0,
        },
    )
    tables = TABLES_OF_RANGES

    # -- requests --------------------------------------------------------------------------------------

    @action(by=NODE, spends=operations)
    def ask_to_join(self, n: Term[Node]) -> None:
        """A node asks to join."""
        self.topology.ask_to_join(n)

    @action(by=NODE, spends=operations)
    def ask_to_replace(self, n: Term[Node], dead: Term[Node]) -> None:
        """A node asks to join in the place of a dead one."""
        self.topology.ask_to_replace(n, dead)
        self._has_other_owners(dead)

    @action(by=OPERATOR, spends=operations)
    def ask_to_leave(self, n: Term[Node]) -> None:
        """A node is decommissioned."""
        self.topology.ask_to_leave(n)

    @action(by=OPERATOR, spends=operations)
    def ask_to_remove(self, n: Term[Node]) -> None:
        """A dead node is removed."""
        self.topology.ask_to_remove(n)
        self._has_other_owners(n)

    def _has_other_owners(self, n: Term[Node]) -> None:
        """The rows of a node that is gone for good must be stored elsewhere too."""
        others = some(self.owners.has(m) & (m != n) for m in Node)
        require(~self.owners.has(n) | others, "the range has another owner")

    @action(by=OPERATOR, spends=operations)
    def ask_to_clean_up(self) -> None:
        """The operator wants all rows removed that nodes do not own."""
        self.topology.ask_globally(Term.of(GlobalRequest.cleanup))

    # -- the ring is about to change ---------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def insert_tokens(self, n: Term[Node]) -> None:
        """Bootstrap: one of the new node's tokens takes the range over."""
        self.topology.insert_tokens(n)
        self._goes_to(n)

    @action(by=COORDINATOR, fair=WEAK)
    def start_bootstrap(self, n: Term[Node]) -> None:
        """The same, before join_group0 was a state."""
        self.topology.start_bootstrap(n)
        self._goes_to(n)

    @action(by=COORDINATOR, fair=WEAK)
    def take_tokens(self, n: Term[Node]) -> None:
        """Replace: the new node owns what the replaced one owned."""
        self.topology.take_tokens(n)
        self._replaces(n)

    @action(by=COORDINATOR, fair=WEAK)
    def start_replace(self, n: Term[Node]) -> None:
        """The same, before join_group0 was a state."""
        self.topology.start_replace(n)
        self._replaces(n)

    @action(by=COORDINATOR, fair=WEAK)
    def start_decommission(self, n: Term[Node], heir: Term[Node]) -> None:
        """Another node takes over what the node owns."""
        self._leaves_to(n, heir)
        self.topology.start_decommission(n)

    @action(by=COORDINATOR, fair=WEAK)
    def start_remove(self, n: Term[Node], heir: Term[Node]) -> None:
        """Another node takes over what the dead node owned."""
        self._leaves_to(n, heir)
        self.topology.start_remove(n)

    def _goes_to(self, n: Term[Node]) -> None:
        for m in Node:
            self.next.put(m, m == n)

    def _replaces(self, n: Term[Node]) -> None:
        dead = self.topology.replaced_id[n]
        owned = some(self.owners.has(m) for m in dead)
        for m in Node:
            self.next.put(m, (self.owners.has(m) & (dead != m)) | ((m == n) & owned))

    def _leaves_to(self, n: Term[Node], heir: Term[Node]) -> None:
        normal = self.topology.node_state[heir] == NodeState.normal
        require(normal & (heir != n), "the heir is another normal node")
        owned = self.owners.has(n)
        for m in Node:
            self.next.put(m, (self.owners.has(m) & (m != n)) | ((m == heir) & owned))

    # -- barriers and streaming --------------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self) -> None:
        """All nodes that take part have learned the version and drained older requests."""
        self._all_have_drained()
        self.topology.pass_barrier()

    @action(by=COORDINATOR, fair=WEAK)
    def wait_ring_delay(self) -> None:
        """Within ring_delay, whoever is up learns the version, and older requests time out."""
        self._all_have_drained()
        self.topology.wait_ring_delay()

    @action(by=COORDINATOR, fair=WEAK)
    def retry_barrier(self) -> None:
        """Where there was no way back, a barrier that failed was tried again."""
        self.topology.retry_barrier()

    @action(by=COORDINATOR, fair=WEAK)
    def fence_before_cleanup(self) -> None:
        """The same barrier before rows are removed."""
        self._all_have_drained()
        self.topology.fence_before_cleanup()

    @action(by=COORDINATOR, fair=WEAK)
    def finish_cleanup(self) -> None:
        """The cleanup that was asked for is done."""
        self.topology.finish_cleanup()

    @action(by=COORDINATOR, fair=WEAK)
    def leave_tablet_track(self) -> None:
        """After a rollback the tablet migration track ends at once."""
        self.topology.leave_tablet_track()

    @action(by=COORDINATOR, fair=WEAK)
    def commit_cdc_generation(self, n: Term[Node]) -> None:
        """The new node's CDC generation is committed, and writes go to both rings."""
        self.topology.commit_cdc_generation(n)

    def _all_have_drained(self) -> None:
        drained = every(self._has_drained(n) for n in Node)
        require(drained, "all that take part and are up have learned and drained")

    def _has_drained(self, n: Term[Node]) -> Bool:
        topology, request = self.topology, self.request
        asked = topology.members.has(n) & ~topology.down.has(n)
        knows = self.view[n].version == topology.version
        older = (request.coordinator == n) & (request.version < topology.version)
        return asked.implies(knows & (~older | request.abandoned))

    @action(by=NETWORK, spends=failures)
    def lose_barrier(self) -> None:
        """An answer to the barrier is lost."""
        self.topology.lose_barrier()

    @action(by=COORDINATOR, fair=WEAK)
    def stream(self, source: Term[Node], target: Term[Node]) -> None:
        """The new owner receives the range from an old one, in the session of the operation."""
        topology = self.topology
        require(topology.transition_state == T.write_both_read_old, "writes go to both rings")
        begun = (topology.barrier == Barrier.passed) & ~topology.streamed
        require(begun, "streaming has begun")
        require(self.owners.has(source), "the source is an owner")
        require(~topology.down.has(source), "the source is alive")
        require(self.next.has(target) & ~self.owners.has(target), "the target is a new owner")
        require(~topology.down.has(target), "the target is up")
        newer = self.data[target] < self.data[source]
        self.data[target] = choose(newer, self.data[source], self.data[target])
        self.copied = True

    @action(by=COORDINATOR, fair=WEAK)
    def stream_ranges(self) -> None:
        """Every node that streams answers that it is done."""
        gained = some(self.next.has(n) & ~self.owners.has(n) for n in Node)
        require(self.copied | ~gained, "the new owner has streamed the range")
        self.topology.stream_ranges()
        self.copied = False

    @action(by=NETWORK, spends=failures)
    def fail_to_stream(self) -> None:
        """Streaming fails."""
        self.topology.fail_to_stream()

    @action(by=COORDINATOR, fair=WEAK)
    def stream_with_dead_node(self) -> None:
        """Streaming fails, for a node that takes part is down."""
        self.topology.stream_with_dead_node()

    @action(by=COORDINATOR, spends=coordinator_changes)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator."""
        self.topology.fail_over()
        self.copied = False

    # -- the ring has changed, or not ----------------------------------------------------------------------

    @action(by=COORDINATOR, fair=WEAK)
    def finish_bootstrap(self, n: Term[Node]) -> None:
        """The new owner is the owner."""
        self.topology.finish_bootstrap(n)
        self._adopt()

    def _adopt(self) -> None:
        self.owners = self.next
        self.next = frozenset()

    @action(by=COORDINATOR, fair=WEAK)
    def finish_replace(self, n: Term[Node]) -> None:
        """The replacing node owns what the replaced one did."""
        self.topology.finish_replace(n)
        self._adopt()

    @action(by=COORDINATOR, fair=WEAK)
    def leave_token_ring(self, n: Term[Node]) -> None:
        """The heir owns what the node that leaves did."""
        self.topology.leave_token_ring(n)
        self._adopt()

    @action(by=COORDINATOR, fair=WEAK)
    def finish_leaving(self, n: Term[Node]) -> None:
        """The same, where no left_token_ring follows."""
        self.topology.finish_leaving(n)
        self._adopt()

    @action(by=COORDINATOR, fair=WEAK)
    def roll_back_join(self, n: Term[Node]) -> None:
        """The old owner stays the owner."""
        self.topology.roll_back_join(n)
        self._keep()

    @action(by=COORDINATOR, fair=WEAK)
    def roll_back_leave(self, n: Term[Node]) -> None:
        """The old owner stays the owner; the heir may hold rows."""
        self.topology.roll_back_leave(n)
        self._keep()

    def _keep(self) -> None:
        """What was streamed by then counts for nothing."""
        self.next = frozenset()
        self.copied = False

    @action(by=COORDINATOR, fair=WEAK)
    def shut_down(self, n: Term[Node]) -> None:
        """The node stops, with what it coordinated."""
        self.topology.shut_down(n)
        self._abandon(n)

    @action(fair=WEAK)
    def clean_up(self, n: Term[Node]) -> None:
        """The node, having learned the topology, removes the rows of ranges that it does not own."""
        self.topology.clean_up(n)
        fenced = self.view[n].fence == self.topology.fence_version
        require(fenced, "node refuses older requests")
        learned = self.view[n].version == self.topology.version
        require(learned, "node has learned what is committed")
        self.data[n] = choose(self.owners.has(n), self.data[n], 0)

    # -- ends ------------------------------------------------------------------------------------------

    @final
    def at_rest(self) -> Bool:
        """A topology at rest may stay so."""
        return self.topology.is_at_rest()

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_without(
            TopologyControl.crash, because="a node that runs on, while its client gives up too soon"
        ),
        equivalent_without(
            TopologyControl.fail_over,
            because="what was learned stays true, whether or not it is remembered",
        ),
        equivalent_drop(
            stream,
            "the source is alive",
            because="what a dead owner stores, and was acknowledged, every owner stores",
        ),
        equivalent_loss(
            fail_over,
            TopologyRanges.copied,
            because="what was streamed stays where it is, and may be streamed again",
        ),
        equivalent_drop(
            clean_up,
            "node has learned what is committed",
            because="the fence is that of the version: who has learned the one knows the other",
        ),
    )
