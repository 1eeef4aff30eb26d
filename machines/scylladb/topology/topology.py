"""A topology that changes under clients: the topology coordinator's steps, joined with nodes, requests and data.

The control machine of `topology_control.py` inside of what can go wrong around it. One range of the token ring
is followed, with its owners before and after the change that goes on. A node learns the committed topology
late; requests that began under an older version are still on their way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from stagewright.machines.scylladb.cluster import CLIENT, NETWORK, Node
from stagewright.machines.scylladb.topology.control.topology_reasons import TABLES_OF_RANGES
from stagewright.machines.scylladb.topology.control.topology_record import (
    COORDINATOR,
    LAST_VERSION,
    NODE,
    OPERATOR,
)
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_of_ranges import (
    NO_PART_OF_IT,
    TopologyOfRanges,
)
from stagewright.machines.scylladb.topology.topology_states import (
    SCYLLA_6_0,
    SCYLLA_2025_4,
    SCYLLA_2026_2,
    SEED,
    Barrier,
    GlobalRequest,
    NodeState,
    Request,
    Ring,
    TransitionState,
)
from stagewright.spec import (
    ANY,
    Bool,
    Fairness,
    FlagVar,
    Machine,
    NumberVar,
    Record,
    SetOf,
    SetVar,
    Term,
    accepts,
    action,
    assume,
    bounded,
    budget,
    choose,
    equivalent_disabled,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalent_without,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    independent,
    initially,
    invariant,
    known_violations,
    lemma,
    never_happens,
    number,
    only_when,
    optional,
    part,
    per,
    profiles,
    record,
    require,
    restricted,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    unexercised,
    vacuous,
    violated,
)

WEAK = Fairness.WEAK
FIRST_VALUE = 1  # what the range holds at first
LAST_VALUE = 3
T = TransitionState
FEWER_AT_A_TIME = (
    "fewer requests are made at a time than in topology-control, where this breaks a property"
)


class View(Record):
    """What a node has learned of the topology: its token metadata, maybe behind group0."""

    version = number(0, LAST_VERSION)
    fence = number(0, LAST_VERSION)  # requests of older versions are refused
    writes = set_of(Node)  # the range's replicas, for writes
    reads = set_of(Node)


class ClientRequest(Record):
    """The request that is on its way, if any."""

    coordinator = optional(Node)
    write = flag()
    version = number(0, LAST_VERSION)
    targets = set_of(Node)
    reached = set_of(Node)
    value = number(0, LAST_VALUE)  # of a read: the newest value acknowledged before it began
    abandoned = flag()  # timed out, or its coordinator died; its messages may still arrive


class TopologyCluster(Machine):
    """Nodes that join, leave, are replaced or removed, while clients write to and read from a range.

    Nobody is told later than at the commit that a bootstrap is done: `topology_announced.py` has that.
    """

    release = profiles(SEED, SCYLLA_6_0, SCYLLA_2025_4, SCYLLA_2026_2)
    writes = budget(1, doc="writes that clients send")
    reads = budget(1, doc="reads that clients send")
    operations = budget(1, doc="nodes that ask to join, replace, leave or be removed")
    crashes = fault_budget(0, doc="nodes that crash")
    failures = fault_budget(0, doc="steps that fail although all nodes are up")
    coordinator_changes = fault_budget(0, doc="changes of the topology coordinator")

    exercised_at = scopes(
        {writes: 0},
        {writes: 0, reads: 0, crashes: 1},
        {reads: 0},
        {writes: 0, reads: 0, crashes: 1, failures: 1, coordinator_changes: 1},
        {writes: 0, reads: 0, crashes: 1, operations: 2},
        {writes: 0, crashes: 1, TopologyControl.faults: 0},
        {},
        {reads: 0, crashes: 1, TopologyControl.faults: 0},
        {Node: 3, writes: 0, reads: 0, crashes: 1, TopologyControl.faults: 0},
    )

    topology = part(
        TopologyOfRanges,
        without=NO_PART_OF_IT,
        restricts=(
            restricted(
                TopologyControl.dead_nodes_can_be_replaced_at_any_time,
                TopologyControl.dead_nodes_can_be_removed_at_any_time,
                because="the rows of a range are lost with its last owner: an operator gives up none that is the last",
                at={writes: 0, reads: 0, crashes: 1},
            ),
            restricted(
                TopologyControl.barriers_wait_for_no_node_that_is_given_up,
                because="nodes learn in their own time, and drain what is older: a barrier waits for them",
            ),
        ),
    )
    owners: SetVar[Node] = set_of(Node, init=ANY)  # of the range, in the old ring
    next: SetVar[Node] = set_of(Node)  # in the new ring, while the two differ
    # the nodes
    view = per(Node, record(View))
    data = per(Node, number(0, LAST_VALUE, init=ANY))  # the newest value that a node stores
    copied: FlagVar = flag()  # the new owner has streamed the range
    # clients
    request = record(ClientRequest)
    written: NumberVar = number(0, LAST_VALUE, init=FIRST_VALUE)
    acknowledged: NumberVar = number(0, LAST_VALUE, init=FIRST_VALUE)
    stale_read: FlagVar = flag()

    tables = TABLES_OF_RANGES

    # == nodes, requests and data ========================================================================

    @initially
    def normal_nodes_own_the_range(self) -> Bool:
        """Some normal nodes own the range and store its rows; there are no tablets."""
        normal = every(self.topology.node_state[n] == NodeState.normal for n in self.owners)
        rows = every(self.data[n] == choose(self.owners.has(n), FIRST_VALUE, 0) for n in Node)
        return normal & rows & ~self.owners.is_empty() & self.topology.tablet_hosts.is_empty()

    # -- nodes learn -----------------------------------------------------------------------------------

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """Node `n` applies what is committed to group0."""
        up = self.topology.members.has(n) & ~self.topology.down.has(n)
        require(up, "node is an up member")
        require(~self._is_current(n), "node is behind")
        self._learn(n)

    def _learn(self, n: Term[Node]) -> None:
        view = self.view[n]
        view.version = self.topology.version
        view.fence = self.topology.fence_version
        view.writes = self._ring(lambda state: state.writes)
        view.reads = self._ring(lambda state: state.reads)

    def _ring(self, column: Callable[[TransitionState], Ring]) -> SetOf[Node]:
        """The owners that a column of the transition state names."""
        ring = self.topology.transition_state.column(column)
        newer = choose(ring == Ring.both, self.owners | self.next, self.next)
        return choose(ring == Ring.old, self.owners, newer)

    def _is_current(self, n: Term[Node]) -> Bool:
        view, topology = self.view[n], self.topology
        same = (view.version == topology.version) & (view.fence == topology.fence_version)
        return same & ~view.reads.is_empty()

    @step_property
    def what_is_learned_is_what_is_committed(self, after: Self, n: Term[Node]) -> Bool:
        """A member of group0 applies a commit as a whole: the version, the fence, and both rings."""
        view, topology = after.view[n], self.topology
        learns = (self.view[n].version != view.version) | (self.view[n].fence != view.fence)
        learns = learns | (self.view[n].writes != view.writes) | (self.view[n].reads != view.reads)
        whole = (view.version == topology.version) & (view.fence == topology.fence_version)
        writes = view.writes == self._ring(lambda state: state.writes)
        rings = writes & (view.reads == self._ring(lambda state: state.reads))
        return learns.implies(topology.members.has(n) & whole & rings)

    # -- clients ---------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=writes)
    def begin_write(self, n: Term[Node]) -> None:
        """A client writes through node `n`, which sends the write to the owners that it knows of."""
        bounded(self.written < LAST_VALUE, "a value is left")
        self.request.value = self.written + 1
        self.written = self.written + 1
        self._begin(n, self.view[n].writes)
        self.request.write = True

    @action(fair=WEAK)
    def store_write(self, r: Term[Node]) -> None:
        """Replica `r` stores the write, unless its version is fenced as far as the replica knows."""
        request = self.request
        require(request.write & request.targets.has(r), "it is sent to the replica")
        require(~self.topology.down.has(r), "replica is up")
        self._not_fenced(r)
        self.data[r] = request.value
        request.reached.add(r)

    @action(fair=WEAK)
    def acknowledge_write(self) -> None:
        """All replicas have answered: while one is dead, writes to it time out."""
        request = self.request
        require(request.write, "a write is on its way")
        require(~request.abandoned, "the client still waits")
        require(request.targets <= request.reached, "every replica has stored it")
        self.acknowledged = request.value
        self._forget()

    @action(by=CLIENT, spends=reads)
    def begin_read(self, n: Term[Node]) -> None:
        """A client reads through node `n`, which asks one of the owners that it knows of."""
        self._begin(n, self.view[n].reads)
        self.request.value = self.acknowledged

    @action(fair=WEAK)
    def answer_read(self, r: Term[Node]) -> None:
        """Replica `r` answers the read, unless its version is fenced as far as the replica knows."""
        request = self.request
        require(~request.write & request.targets.has(r), "the replica is asked")
        require(~self.topology.down.has(r), "replica is up")
        require(~request.abandoned, "the client still waits")
        self._not_fenced(r)
        self.stale_read = self.stale_read | (self.data[r] < request.value)
        self._forget()

    @action(by=NETWORK, fair=WEAK)
    def time_out(self) -> None:
        """A replica does not answer in time: the client is told so, but messages may still arrive."""
        request = self.request
        require(request.coordinator.is_some() & ~request.abandoned, "a request is on its way")
        request.abandoned = True

    @action(by=NETWORK, fair=WEAK)
    def lose_messages(self) -> None:
        """What is left of an abandoned request is lost, or refused."""
        require(self.request.abandoned, "request is abandoned")
        self._forget()

    def _begin(self, n: Term[Node], targets: SetOf[Node]) -> None:
        topology = self.topology
        serves = topology.node_state[n].column(lambda state: state.owns)
        require(self.request.coordinator.is_none(), "no request is on its way")
        require(serves & ~topology.down.has(n), "node serves and is up")
        require(~targets.is_empty(), "node has learned of the owners")
        self.request.version = self.view[n].version
        self.request.coordinator = n
        self.request.targets = targets

    def _not_fenced(self, r: Term[Node]) -> None:
        require(self.view[r].fence <= self.request.version, "its version is not fenced")

    def _forget(self) -> None:
        request = self.request
        request.coordinator = None
        request.write = False
        request.version = 0
        request.targets = frozenset()
        request.reached = frozenset()
        request.value = 0
        request.abandoned = False

    # -- faults ----------------------------------------------------------------------------------------

    @action(spends=crashes)
    def crash(self, n: Term[Node]) -> None:
        """Node `n` stops: what it coordinated is abandoned, what it stored stays."""
        self.topology.crash(n)
        self._abandon(n)

    @action(by=OPERATOR)
    def restart(self, n: Term[Node]) -> None:
        """Node `n` comes back, and serves once it has caught up with group0."""
        self.topology.restart(n)
        member = self.topology.members.has(n)
        require(member, "the node is in group0")
        self._learn(n)

    def _abandon(self, n: Term[Node]) -> None:
        stops = self.request.coordinator == n
        self.request.abandoned = self.request.abandoned | stops

    # == what is promised of a range =====================================================================

    @invariant
    def reads_see_acknowledged_writes(self) -> Bool:
        """001: the replicas that are read "will reflect all successful writes": a read returns what was
        acknowledged before it began, or something newer.
        """
        return ~self.stale_read

    @invariant
    def the_range_has_owners(self) -> Bool:
        """001: writes go "to both new and old replicas": in either ring somebody owns the range."""
        both = self.topology.transition_state.any_of(T.write_both_read_old, T.write_both_read_new)
        return ~self.owners.is_empty() & both.implies(~self.next.is_empty())

    @invariant
    def new_owners_are_in_the_new_ring(self) -> Bool:
        """001: "new replicas means calculated according to modified token ring"; at rest there are none."""
        both = self.topology.transition_state.any_of(T.write_both_read_old, T.write_both_read_new)
        in_ring = every(self.topology.in_new_ring(n) for n in self.next)
        rests = self.topology.is_at_rest()
        return both.implies(in_ring) & rests.implies(self.next.is_empty())

    @invariant
    def who_replaces_owns_what_the_replaced_did(self, n: Term[Node], dead: Term[Node]) -> Bool:
        """001: "replacing - the node replaces another dead node in the cluster and it data is being streamed to it": to no
        other, and nothing else.
        """
        both = self.topology.transition_state.any_of(T.write_both_read_old, T.write_both_read_new)
        replaces = self.topology.node_state[n] == NodeState.replacing
        replaces = replaces & (self.topology.replaced_id[n] == dead)
        return (both & replaces).implies(self.next.has(n) == self.owners.has(dead))

    @invariant
    def streaming_begins_when_writes_go_to_both(self) -> Bool:
        """001: "Writes are going to both new and old replicas … After the entire cluster learns about it,
        streaming starts."
        """
        writes = self.request.coordinator.is_some() & self.request.write & ~self.request.abandoned
        both = (self.owners | self.next) <= self.request.targets
        begun = (self.topology.transition_state == T.write_both_read_old) & (
            self.topology.barrier == Barrier.passed
        )
        return (begun & writes).implies(both)

    @invariant
    def what_has_streamed_counts_for_its_operation(self) -> Bool:
        """001: every operation streams what its own new owners lack."""
        return self.copied.implies(self.topology.transition_state == T.write_both_read_old)

    @invariant
    def new_owners_are_complete(self, n: Term[Node]) -> Bool:
        """001: new replicas "contain all the writes which reached the matching leaving" ones: what is read from
        new owners holds all that was acknowledged.
        """
        reads_new = self.topology.transition_state == T.write_both_read_new
        gains = self.next.has(n) & ~self.owners.has(n)
        return (reads_new & gains).implies(self.data[n] >= self.acknowledged)

    @invariant
    def owners_store_what_was_acknowledged(self, n: Term[Node]) -> Bool:
        """001: writes "on behalf of a successful request, will reach CL in both old and new replica sets": also
        a dead replica, for its removal may be rolled back, and it may come back.
        """
        return self.owners.has(n).implies(self.data[n] >= self.acknowledged)

    @step_property
    def no_read_outlives_the_old_ring(self, after: Self) -> Bool:
        """001: "make sure that no reads that started before this point exist in the system"."""
        before, now = self.topology.transition_state, after.topology.transition_state
        ends = (before == T.write_both_read_new) & (before != now)
        reads = self.request.coordinator.is_some() & ~self.request.write & ~self.request.abandoned
        return (ends & reads).implies(self.request.targets <= self.next)

    @invariant
    def rows_of_lost_ranges_are_known(self, n: Term[Node]) -> Bool:
        """A node that stores rows of a range which it does not own is known to need cleanup (scylladb #26150)."""
        only_when(self.topology.release.cleanup)
        topology = self.topology
        holds = (self.data[n] > 0) & ~self.owners.has(n) & ~self.next.has(n)
        stays = topology.node_state[n] == NodeState.normal
        return (holds & stays & topology.is_at_rest()).implies(topology.cleanup_needed.has(n))

    @invariant
    def nobody_writes_to_nodes_that_left(self, n: Term[Node]) -> Bool:
        """left_token_ring waits until all nodes have stopped to write to the node."""
        only_when(self.topology.release.rollback)
        topology, request = self.topology, self.request
        told = topology.asked[n].any_of(Request.leave, Request.join)
        left = (topology.node_state[n] == NodeState.left) & told
        return (left & request.write & ~request.abandoned).implies(~request.targets.has(n))

    # -- nodes and barriers ----------------------------------------------------------------------------

    @step_property
    def nodes_that_learn_cut_nobody_off(self, after: Self, n: Term[Node]) -> Bool:
        """001: the cluster is to "make sure that no reads that started before this point exist in the system": it waits for
        them. A node that learns of the next state goes on with what its clients wait for, reads and writes; so does one
        whose answer the coordinator has, or gives up.
        """
        learns = self.view[n].version != after.view[n].version
        answers = self.topology.barrier != after.topology.barrier
        waits = (self.request.coordinator == n) & ~self.request.abandoned
        goes_on = (after.request.coordinator == n) & ~after.request.abandoned
        runs = ~after.topology.down.has(n)
        return ((learns | answers) & waits & runs).implies(goes_on)

    @step_property
    def a_node_that_is_down_does_nothing(self, after: Self, n: Term[Node]) -> Bool:
        """001: a removed node's data is streamed "from still alive owners", and to a replacing node for a dead
        one: while a node is down it stores nothing, and learns of nothing.
        """
        down = self.topology.down.has(n) & after.topology.down.has(n)
        view, now = self.view[n], after.view[n]
        same = (view.version == now.version) & (view.fence == now.fence)
        return down.implies(same & (self.data[n] == after.data[n]))

    @step_property
    def nodes_keep_what_is_newest(self, after: Self, n: Term[Node]) -> Bool:
        """001: "the new replica set will reflect all successful writes either by the means of coordinator
        replication or by the means of streaming": neither undoes the other, until the row is cleaned up.
        """
        removed = (after.data[n] == 0) & ~self.owners.has(n)
        return removed | (self.data[n] <= after.data[n])

    @step_property
    def what_is_acknowledged_stays_so(self, after: Self) -> Bool:
        """001: what replicas hold "will reflect all successful writes": none counts for less later."""
        return self.acknowledged <= after.acknowledged

    @step_property
    def a_barrier_waits_until_all_have_learned(self, after: Self) -> Bool:
        """001: "After the entire cluster learns about it"; ring_delay is as long as that takes."""
        return self._barrier_is_over(after).implies(self._all_know_the_version())

    def _all_know_the_version(self) -> Bool:
        topology = self.topology
        return every(
            (topology.members.has(n) & ~topology.down.has(n)).implies(
                self.view[n].version == topology.version
            )
            for n in Node
        )

    @invariant
    def a_passed_barrier_means_a_learned_fence(self, n: Term[Node]) -> Bool:
        """What `topology-control` takes for granted. 001: "After the entire cluster learns about it": while a barrier
        is over, whoever is up knows its version, and whoever does refuses what was fenced before that version.
        """
        topology, view = self.topology, self.view[n]
        over = topology.barrier.any_of(Barrier.passed, Barrier.waived)
        up = topology.members.has(n) & ~topology.down.has(n)
        learned = view.version == topology.version
        before = topology.fence_version < topology.version
        refuses = (learned & before).implies(view.fence == topology.fence_version)
        return (over & up).implies(learned) & refuses

    @lemma
    @step_property
    def a_barrier_waits_for_older_requests(self, after: Self) -> Bool:
        """001: "make sure that no reads that started before this point exist in the system"; nor writes. A lemma: the fence
        would refuse a request that it does not wait for, and requests succeed while the ring changes.
        """
        return self._barrier_is_over(after).implies(~self._somebody_waits_for_an_older_request())

    def _somebody_waits_for_an_older_request(self) -> Bool:
        request = self.request
        waits = request.coordinator.is_some() & ~request.abandoned
        return waits & (request.version < self.topology.version)

    def _barrier_is_over(self, after: Self) -> Bool:
        """It has passed, also at rest; or what can have been sent before it is over by its time."""
        before, now = self.topology, after.topology
        changed = (before.barrier != now.barrier) & now.barrier.any_of(
            Barrier.passed, Barrier.waived
        )
        fenced = (before.fence_version != now.fence_version) & before.is_at_rest()
        return changed | fenced

    @accepts(begin_write)
    def clients_write_while_the_ring_changes(self, n: Term[Node]) -> Bool:
        """001: "Writes are going to both new and old replicas": through each node that serves, in every state."""
        serves = self.topology.in_old_ring(n) & ~self.topology.down.has(n)
        return serves & self.request.coordinator.is_none() & ~self.view[n].writes.is_empty()

    @accepts(begin_read)
    def clients_read_while_the_ring_changes(self, n: Term[Node]) -> Bool:
        """001: "reads are using old replicas", then "new replicas": through each node that serves, in every state."""
        serves = self.topology.in_old_ring(n) & ~self.topology.down.has(n)
        return serves & self.request.coordinator.is_none() & ~self.view[n].reads.is_empty()

    @accepts(store_write)
    def writes_are_stored_while_the_ring_changes(self, r: Term[Node]) -> Bool:
        """001: "Writes are going to both new and old replicas": each takes what clients wait for, in every state."""
        request = self.request
        sent = request.write & ~request.abandoned & request.targets.has(r)
        return sent & ~self.topology.down.has(r)

    @accepts(acknowledge_write)
    def writes_succeed_while_the_ring_changes(self) -> Bool:
        """001, stage 3, of "a successful request": a write that all replicas have stored is one, in every state."""
        request = self.request
        return request.write & ~request.abandoned & (request.targets <= request.reached)

    @sometimes(at={reads: 0})
    def a_write_to_both_rings_succeeds(self, after: Self) -> Bool:
        """001: "Writes are going to both new and old replicas", and clients are told that they have succeeded."""
        moves = self.topology.transition_state == T.write_both_read_old
        new = some(
            self.next.has(n) & ~self.owners.has(n) & self.request.targets.has(n) for n in Node
        )
        return moves & new & (self.acknowledged < after.acknowledged)

    @accepts(learn)
    def nodes_learn_while_clients_wait(self, n: Term[Node]) -> Bool:
        """001: that "the entire cluster learns about it" is one thing, and that what "started before this point" is
        over another: a node applies what is committed while it coordinates older requests, which go on as they began.
        """
        topology, view = self.topology, self.view[n]
        up = topology.members.has(n) & ~topology.down.has(n)
        behind = (view.version < topology.version) | (view.fence < topology.fence_version)
        return up & behind

    @invariant
    def only_what_goes_on_is_given_up(self) -> Bool:
        """001: a barrier waits for what "started before this point": each request has its own client, who has not given it
        up when it begins.
        """
        return self.request.abandoned.implies(self.request.coordinator.is_some())

    @accepts(answer_read)
    def reads_succeed_while_the_ring_changes(self, r: Term[Node]) -> Bool:
        """001, "reads are using old replicas", then "new replicas": whoever is asked, and up, answers."""
        request = self.request
        asked = ~request.write & ~request.abandoned & request.targets.has(r)
        return asked & ~self.topology.down.has(r)

    @invariant
    def owners_are_in_the_ring(self, n: Term[Node]) -> Bool:
        """001: a normal node "serves the slice of the ring that belongs to it"."""
        return self.owners.has(n).implies(self.topology.in_old_ring(n))

    # == the topology coordinator ========================================================================

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
        require(self._is_stored_without(n), "the range has another owner")

    def _is_stored_without(self, n: Term[Node]) -> Bool:
        others = some(self.owners.has(m) & (m != n) for m in Node)
        return ~self.owners.has(n) | others

    @action(by=OPERATOR, spends=operations)
    def ask_to_clean_up(self) -> None:
        """The operator wants all rows removed that nodes do not own."""
        only_when(self.topology.release.cleanup)
        self.topology.ask_globally(Term.of(GlobalRequest.cleanup))

    @accepts(ask_to_remove)
    def dead_nodes_are_removed_while_clients_wait(self, n: Term[Node]) -> Bool:
        """001: "When a request is issued to a node the entry is added to the map", whatever clients do: of a dead node whose
        rows are stored elsewhere, too.
        """
        accepted = self.topology.dead_nodes_can_be_removed_at_any_time(n)
        return accepted & some(m != n for m in self.owners)

    @accepts(ask_to_replace)
    def dead_nodes_are_replaced_while_clients_wait(self, n: Term[Node], dead: Term[Node]) -> Bool:
        """The same for a new node that takes the place of such a node."""
        accepted = self.topology.dead_nodes_can_be_replaced_at_any_time(n, dead)
        return accepted & some(m != dead for m in self.owners)

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
        assume(
            every(self._has_drained(n) for n in Node),
            "all that take part and are up have learned and drained within ring_delay",
            because="the coordinator sleeps for ring_delay so that they do; who is slower than that is fenced",
        )
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

    @accepts(pass_barrier)
    def barriers_wait_for_nothing_else(self) -> Bool:
        """001: a barrier is for "the entire cluster" to learn, and for what "started before this point": once that is so,
        whoever is removed or replaced holds it up no longer.
        """
        answered = self.topology.barriers_wait_for_no_node_that_is_given_up()
        older = self._somebody_waits_for_an_older_request()
        return answered & self._all_know_the_version() & ~older

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

    @accepts(stream)
    def ranges_are_streamed_while_clients_write(
        self, source: Term[Node], target: Term[Node]
    ) -> Bool:
        """001: "Writes are going to both new and old replicas" so that "streaming starts" under them: it waits for no
        client, and any old owner that is alive will do.
        """
        topology = self.topology
        begun = (topology.transition_state == T.write_both_read_old) & ~topology.streamed
        gains = self.next.has(target) & ~self.owners.has(target)
        up = ~topology.down.has(source) & ~topology.down.has(target)
        passed = topology.barrier == Barrier.passed
        return begun & passed & self.owners.has(source) & gains & up

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

    @accepts(finish_bootstrap)
    def joins_end_while_clients_wait(self, n: Term[Node]) -> Bool:
        """001: "Finally we remove the transitioning state", once "no reads that started before this point exist":
        those that have started since, on the new ring, hold up nobody.
        """
        topology = self.topology
        over = topology.barrier.any_of(Barrier.passed, Barrier.waived)
        reads_new = topology.transition_state == T.write_both_read_new
        return (topology.node_state[n] == NodeState.bootstrapping) & reads_new & over

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
        """What was streamed by then does not count."""
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

    # -- who waits for nobody --------------------------------------------------------------------------

    @independent(
        insert_tokens,
        take_tokens,
        start_decommission,
        start_remove,
        commit_cdc_generation,
        stream_ranges,
        finish_replace,
        leave_token_ring,
        roll_back_join,
        roll_back_leave,
        of=(request, written, acknowledged, data),
    )
    def operations_wait_for_no_client(self) -> None:
        """001: "Writes are going to both new and old replicas", so that operations on nodes go on under clients: a
        barrier waits for what "started before this point", and nothing else does.
        """

    @independent(
        begin_write,
        begin_read,
        store_write,
        acknowledge_write,
        answer_read,
        time_out,
        lose_messages,
        of=(owners, next, copied, data),
    )
    def clients_wait_for_no_operation(self) -> None:
        """001: "reads are using old replicas", or "new replicas", as each node has learned: no client waits until the
        ring has changed, or until rows are streamed.
        """

    # -- ends ------------------------------------------------------------------------------------------

    @final
    def at_rest(self) -> Bool:
        """A topology at rest may stay so."""
        return self.topology.is_at_rest()

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            rows_of_lost_ranges_are_known,
            under=(SCYLLA_6_0, SCYLLA_2025_4),
            because="a node removes the rows of a range that it has lost while a coordinator that has not learned of it "
            "still writes to both rings: the write is stored after the cleanup (scylladb #26150)",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_weakening(
            time_out, "a request is on its way", because="one that is abandoned may be so again"
        ),
        equivalent_drop(learn, "node is behind", because="to learn again changes nothing"),
        equivalent_loss(begin_write, written, because="a client may write the same again"),
        equivalent_replacement(
            begin_write,
            "0 for 1",
            "2 for 1",
            because="a client may write the same again, or leave values out",
        ),
        equivalent_loss(
            begin_read,
            ClientRequest.targets,
            ClientRequest.value,
            because="a client need not read",
        ),
        equivalent_drop(
            answer_read,
            "replica is up",
            because="a dead owner stores what was acknowledged, too: it would answer the same",
        ),
        equivalent_drop(
            answer_read,
            "the client still waits",
            "its version is not fenced",
            because="a barrier waits for reads, so that none is left to be refused",
        ),
        equivalent_loss(
            answer_read, stale_read, because="it records that a promise was broken, and none is"
        ),
        equivalent_disabled(
            lose_messages,
            because="what is left of a request that its client gave up may be stored, or answered, instead",
        ),
        equivalent_drop(
            lose_messages,
            "request is abandoned",
            because="what is lost is never answered: as if it had timed out first",
        ),
        equivalent_drop(
            _begin,
            "no request is on its way",
            "node has learned of the owners",
            because="one request at a time is followed, through a node that knows the owners",
        ),
        equivalent_weakening(
            _begin,
            "node serves and is up",
            because="who knows the owners may take requests, whether it owns ranges or not",
        ),
        equivalent_loss(
            _forget,
            ClientRequest.coordinator,
            ClientRequest.write,
            ClientRequest.version,
            ClientRequest.reached,
            ClientRequest.value,
            because="what is left of a request that is over tells nobody anything",
        ),
        equivalent_loss(
            acknowledge_write,
            ClientRequest.abandoned,
            because="only a client who still waits is answered",
        ),
        equivalent_loss(
            answer_read,
            ClientRequest.abandoned,
            because="only a client who still waits is answered",
        ),
        equivalent_replacement(
            _forget,
            "request.version becomes",
            "request.value becomes",
            because="what is left of a request that is over tells nobody anything",
        ),
        equivalent_loss(
            _abandon,
            ClientRequest.abandoned,
            because="the client gives up by its own timeout at the latest",
        ),
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
        equivalent_replacement(
            stream,
            "the source is alive",
            because="what a dead owner stores, and was acknowledged, every owner stores",
        ),
        equivalent_loss(
            fail_over,
            copied,
            because="what was streamed stays where it is, and may be streamed again",
        ),
        equivalent_drop(
            clean_up,
            "node has learned what is committed",
            because="the fence is that of the version: who has learned the one knows the other",
        ),
        *(
            equivalent_drop(begin, "the topology is at rest", because=FEWER_AT_A_TIME)
            for begin in (
                TopologyControl.accept_join,
                TopologyControl.accept_replace,
                TopologyControl.start_decommission,
            )
        ),
        equivalent_weakening(
            TopologyControl.start_remove, "the topology is at rest", because=FEWER_AT_A_TIME
        ),
        equivalent_drop(TopologyControl.cancel, "no request can proceed", because=FEWER_AT_A_TIME),
        equivalent_drop(
            TopologyControl.reject,
            "the topology is at rest, or drains nodes",
            because=FEWER_AT_A_TIME,
        ),
        equivalent_replacement(
            TopologyControl.reject,
            "its request can proceed, or is paused",
            because=FEWER_AT_A_TIME,
        ),
        equivalent_drop(
            TopologyControl.ask_globally, "no global request is pending", because=FEWER_AT_A_TIME
        ),
        equivalent_drop(
            TopologyControl.fail_barrier,
            "a node that takes part is down",
            because="an answer may be lost, too",
        ),
        equivalent_drop(
            TopologyControl.restart, "node is down", because="what runs needs no restart"
        ),
        equivalent_weakening(
            TopologyControl.remove_replaced, "it is replaced", because=FEWER_AT_A_TIME
        ),
        equivalent_loss(
            TopologyControl.finish_replace, TopologyControl.cleanup_needed, because=FEWER_AT_A_TIME
        ),
        equivalent_drop(
            TopologyControl.stream_ranges, "writes go to both rings", because=FEWER_AT_A_TIME
        ),
        equivalent_drop(
            TopologyControl.read_new,
            "the node is in transition",
            "a node that leaves has no tablets",
            because="there are no tablets here: topology-control has them",
        ),
    )

    beyond_the_default_scope = unexercised(
        never_happens(
            TopologyControl.cancel,
            TopologyControl.fail_barrier,
            TopologyControl.fail_to_accept,
            TopologyControl.give_up,
            TopologyControl.complete_rollback,
            restart,
            ask_to_remove,
            start_remove,
            wait_ring_delay,
            leave_tablet_track,
            stream_with_dead_node,
            roll_back_leave,
            because="a node is dead, and an operation on nodes fails for it, where there are `crashes`",
        ),
        vacuous(
            dead_nodes_are_removed_while_clients_wait,
            TopologyControl.dead_nodes_come_back,
            TopologyControl.removals_begin,
            TopologyControl.a_node_that_is_removed_is_dead,
            TopologyControl.no_range_comes_back_to_a_node_with_old_rows,
            TopologyControl.operations_are_given_up_by_who_saw_them_fail,
            because="a node is dead, and an operation on nodes fails for it, where there are `crashes`",
        ),
        never_happens(
            TopologyControl.accept_replace,
            TopologyControl.remove_replaced,
            ask_to_replace,
            take_tokens,
            finish_replace,
            because="a node is replaced where there are `crashes` and three nodes",
        ),
        vacuous(
            dead_nodes_are_replaced_while_clients_wait,
            who_replaces_owns_what_the_replaced_did,
            TopologyControl.replacements_begin,
            TopologyControl.a_dead_node_is_replaced,
            TopologyControl.replaced_nodes_are_left,
            TopologyControl.left_nodes_hold_no_tablets,
            TopologyControl.tablets_of_replaced_nodes_are_rebuilt,
            because="a node is replaced where there are `crashes` and three nodes",
        ),
        vacuous(
            TopologyControl.tablets_move_in_their_tracks,
            TopologyControl.tablets_are_drained_where_a_node_leaves,
            TopologyControl.the_load_balancer_waits,
            TopologyControl.tablets_leave_a_node_by_moving,
            TopologyControl.stages_change_while_tablets_move,
            TopologyControl.stages_are_fenced_while_tablets_move,
            TopologyControl.paused_requests_do_not_begin,
            because="there are no tablets here: topology-control has them",
        ),
        vacuous(
            TopologyControl.requests_on_tables_have_states_of_their_own,
            TopologyControl.requests_on_tables_open_a_session,
            TopologyControl.global_requests_come_after_those_of_nodes,
            because="nobody asks for work on tables or on the whole cluster: topology-control has that",
        ),
        vacuous(
            TopologyControl.a_rebuild_is_done_when_it_has_streamed,
            TopologyControl.rebuilds_fail_where_nodes_are_missing,
            because="nobody asks to rebuild a node: topology-control has that",
        ),
    )
