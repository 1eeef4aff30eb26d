"""A node joins across a CDC switch while tablets migrate: design document 001 end to end.

One state machine in group0 bootstraps a node, commits the CDC generation made for its tokens, and
moves tablets, one track at a time. Clients write to a table of vnodes with a CDC log, and to a
table of tablets, through nodes that may not have applied the last commit yet. The promises are
about what such a client sees: every acknowledged row is read, and so is its change in the log.
`shared_fence.py` has how nodes that do not answer a barrier are fenced off, and
`cdc_generations.py` which timestamps nodes accept.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.cdc.cdc_publication import CdcPublication, Generation
from stagewright.machines.scylladb.cluster import CLIENT, NETWORK, Node
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import NEXT, PREVIOUS, Kind, Stage
from stagewright.machines.scylladb.topology.topology_states import (
    NODE_DIAGRAM,
    NodeState,
    Ring,
    TransitionState,
)
from stagewright.machines.systems.sound_migration import LEFT_OUT, RESTRICTED
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Maybe,
    OneVar,
    OptionalVar,
    Profile,
    Record,
    SetVar,
    Term,
    accepts,
    action,
    assume,
    bounded,
    budget,
    checked_alone,
    choose,
    constant,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_step,
    equivalent_value,
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
    leads_to,
    liveness,
    never_happens,
    one_of,
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
    volatile,
)

COORDINATOR = Actor("topology coordinator")
BALANCER = Actor("load balancer")
OPERATOR = Actor("operator")
TIME = Actor("time")
WEAK = Fairness.WEAK
T = TransitionState
NULL, COMMIT = T.null, T.commit_cdc_generation
WRITE_BOTH, READ_NEW = T.write_both_read_old, T.write_both_read_new


Logged = Term[Generation] | Maybe[Generation]


class Row(Enum):
    """What clients write."""

    # in a vnode of a table with CDC; its token is among those that the joining node takes
    base = auto()
    change = auto()  # of the base row, in the CDC log
    other = auto()  # in the tablet of another table


OF_THE_VNODE = (Row.base, Row.change)


class Routing(Record):
    """How a node routes requests, by what it has applied of group0."""

    state = one_of(T, init=NULL)
    joined = flag()  # the newcomer is normal
    stage = one_of(Stage, init=Stage.none)
    host = optional(Node)
    pending = optional(Node)
    generation = flag()  # it knows the newcomer's CDC generation


UNUSED_STAGES = (
    Stage.rebuild_repair,
    Stage.write_both_read_old_fallback_cleanup,
    Stage.cleanup_target,
    Stage.revert_migration,
    Stage.repair,
    Stage.end_repair,
)
OF_OTHERS = tuple(
    state
    for state in T
    if state
    not in {
        NULL,
        T.join_group0,
        COMMIT,
        WRITE_BOTH,
        READ_NEW,
        T.left_token_ring,
        T.tablet_migration,
    }
)
NOT_ENTERED = "in the newest release neither a join nor a migration enters this state"
JOINS_ONCE = "the newcomer has joined or left: no later operation uses what this one knew"


@dataclass(frozen=True)
class Release(Profile):
    """The document or release whose topology state machine this is."""

    text: bool  # generations are published in a state of their own, and there is no way back


SEED = Release("seed", True)


def _self_or_next(state: NodeState) -> tuple[NodeState, ...]:
    """In the order in which they are declared, so that the definition is always the same."""
    return tuple(other for other in NodeState if other in {state, *NODE_DIAGRAM[state]})


def _always() -> Bool:
    """A condition that is true: it has nothing to check."""
    return every(())


class TopologyChange(Machine):
    """A node that joins a cluster, a range of vnodes of which it takes over a part, and a tablet that migrates."""

    release = profiles(SEED, Release("scylla-2026.2", False))
    joins = budget(1, doc="requests to join")
    migrations = budget(1, doc="migrations for balance")
    writes = budget(1, doc="rows that clients write")
    failures = fault_budget(0, doc="barriers and streams of the join that fail")
    losses = fault_budget(0, doc="writes that time out")
    failovers = fault_budget(0, doc="changes of the topology coordinator")

    exercised_at = scopes(
        {},
        {failures: 1},
        {failovers: 1, writes: 0},
        {failures: 1, failovers: 1, migrations: 0},
        {losses: 1, failures: 1, migrations: 0},
        {Node: 3, writes: 0},
        {Node: 3, joins: 0, losses: 1},
        {migrations: 2},
        {writes: 2, migrations: 0},
        {joins: 2, failures: 1, migrations: 0, writes: 0},
        {joins: 2, migrations: 0, writes: 0, failures: 2, failovers: 2},
        {migrations: 0, losses: 2},
        {writes: 0, failovers: 2},
    )

    cdc = part(
        CdcPublication,
        without=(
            CdcPublication.commit_for_request,
            CdcPublication.publish_for_request,
            CdcPublication.lose_tables,
            CdcPublication.replace_replica,
            CdcPublication.upgrade,
        ),
        restricts=(
            restricted(
                CdcPublication.topology_changes_do_not_wait_for_clients,
                because="the only change is the newcomer's join, which begins once it has asked to join and is in group0",
            ),
            restricted(
                CdcPublication.generations_are_committed_whatever_clients_can_see,
                CdcPublication.joins_are_committed_whatever_is_published,
                CdcPublication.joins_end_whatever_is_published,
                because="a state of the join ends after its barrier, and once streaming has finished",
            ),
            restricted(
                CdcPublication.rollbacks_end_whatever_is_published,
                because="a rollback ends after its barrier",
                at={failures: 1, migrations: 0},
            ),
        ),
    )
    tablet = part(
        TabletMigration,
        without=LEFT_OUT,
        restricts=RESTRICTED,
    )
    each_alone = checked_alone(cdc, tablet)

    newcomer: OneVar[Node] = constant(one_of(Node))
    owner: OneVar[Node] = constant(one_of(Node))  # of the vnode, before the newcomer takes its part
    home: OneVar[Node] = constant(one_of(Node))  # the tablet's replica before it moves
    stream_moves: FlagVar = constant(
        flag(init=ANY)
    )  # of the first generation, together with that part
    # in group0
    transition_state: OneVar[TransitionState] = one_of(T, init=NULL)
    requested: FlagVar = flag()  # `topology_request` of the newcomer is join
    state: OneVar[NodeState] = one_of(NodeState, init=NodeState.none)  # the newcomer's
    host: OptionalVar[Node] = optional(Node)  # the tablet's replica since it has moved
    pending: OptionalVar[Node] = optional(Node)
    # what only the present topology coordinator knows
    barrier: FlagVar = volatile(flag(), of=COORDINATOR)  # one has passed in this transition state
    streamed: FlagVar = volatile(flag(), of=COORDINATOR)
    # every node
    routing = per(Node, record(Routing))
    operates: FlagVar = flag()  # the second generation has started to operate
    # the write that is under way, and what became of it
    writing: SetVar[Row] = set_of(Row)
    coordinator: OptionalVar[Node] = optional(Node)  # of that write
    sent = record(Routing)  # what its coordinator had applied
    logged: OptionalVar[Generation] = optional(Generation)  # the one whose stream has the change
    under_way = per(Row, set_of(Node))  # messages
    stored = per(Row, set_of(Node))
    acknowledged: SetVar[Row] = set_of(Row)

    @initially
    def the_newcomer_has_nothing_yet(self) -> Bool:
        """Other nodes own the range and hold the tablet."""
        others = (self.owner != self.newcomer) & (self.home != self.newcomer)
        return others & self.cdc.in_group0

    # -- clients -----------------------------------------------------------------------------------------

    @action(by=CLIENT, spends=writes)
    def write(self, n: Term[Node]) -> None:
        """A row is written through a node; its change goes to a stream of the generation that is operating."""
        bounded(self.logged.is_none(), "one change is followed")
        generation = self._generation_of_now(n)
        self.logged = generation
        self._send(n, generation, Row.base, Row.change)

    @action(by=CLIENT, spends=writes)
    def write_other(self, n: Term[Node]) -> None:
        """A row of the table of tablets is written through a node."""
        self._send(n, self.logged, Row.other)

    def _send(self, n: Term[Node], g: Logged, *rows: Row) -> None:
        require(self._coordinates(n), "the node serves clients")
        bounded(self.writing.is_empty(), "one write is followed at a time")
        self.writing = frozenset(rows)
        self.coordinator = n
        self.sent = self.routing[n]
        for row in rows:
            for m in Node:
                self.under_way[row].put(m, self._is_written(n, row, g, m))

    def _generation_of_now(self, n: Term[Node]) -> Term[Generation]:
        """003: "from the generation operating at this timestamp", as far as the node knows them."""
        second = self.operates & self.routing[n].generation
        return choose(second, Generation.second, Term.of(Generation.first))

    @action(fair=WEAK)
    def receive(self, n: Term[Node]) -> None:
        """A replica stores what it receives: a row and its change arrive in one message."""
        require(some(self.under_way[row].has(n) for row in Row), "a message is on its way to it")
        for row in Row:
            self.stored[row].put(n, self.stored[row].has(n) | self.under_way[row].has(n))
            self.under_way[row].discard(n)

    @action(fair=WEAK)
    def acknowledge(self) -> None:
        """Every replica to which the write was sent has stored it."""
        require(~self.writing.is_empty(), "a write is under way")
        require(every(self.under_way[row].is_empty() for row in Row), "every replica has stored it")
        self.acknowledged = self.acknowledged | self.writing
        self._forget()

    @action(by=NETWORK, spends=losses)
    def time_out(self) -> None:
        """The write is lost; replicas that it has reached keep it."""
        require(~self.writing.is_empty(), "a write is under way")
        for row in Row:
            self.under_way[row] = frozenset()
        self._forget()

    def _forget(self) -> None:
        self.writing = frozenset()
        self.coordinator = None
        self.sent = Routing()

    # -- nodes, and time ---------------------------------------------------------------------------------

    @action(fair=WEAK)
    def apply(self, n: Term[Node]) -> None:
        """A node applies what is committed to group0."""
        require(self.routing[n] != self._committed(), "something new is committed")
        self.routing[n] = self._committed()

    @action(by=TIME, fair=WEAK)
    def begin_to_operate(self) -> None:
        """003: "a minute or two" after its commit the generation starts operating."""
        require(self.cdc.committed.has(Generation.second), "it is committed")
        require(~self.operates, "it does not operate yet")
        assume(
            self._is_known(),
            "who had its data knows it by then",
            because="003: a node that answered just now is not cut off for the minute or two ahead",
        )
        self.operates = True

    def _is_known(self) -> Bool:
        """All nodes that knew that the generation was about to be committed know that it is."""
        return every(self.routing[n].state != COMMIT for n in Node)

    def _committed(self) -> Routing:
        """The part of group0 by which requests are routed."""
        return Routing(
            state=self.transition_state,
            joined=self.state == NodeState.normal,
            stage=self.tablet.stage,
            host=self.host,
            pending=self.pending,
            generation=self.cdc.committed.has(Generation.second),
        )

    def _barrier(self) -> None:
        """Every node has applied what is committed, and no request is under way that began before."""
        applied = ((self.routing[n] == self._committed()) | ~self._is_in_topology(n) for n in Node)
        require(every(applied), "every node has applied it")
        require(self._is_drained(), "requests from before are over")

    def _is_in_topology(self, n: Term[Node]) -> Bool:
        """Barriers wait for the newcomer once its request is taken up, until it has left."""
        outside = self.state.any_of(NodeState.none, NodeState.left)
        return (self.newcomer != n) | ~outside

    def _is_drained(self) -> Bool:
        return self.writing.is_empty() | (self.sent == self._committed())

    # -- a node joins ------------------------------------------------------------------------------------

    @action(by=OPERATOR, spends=joins)
    def ask_to_join(self) -> None:
        """A new node asks to join."""
        require(self.state == NodeState.none, "it is new")
        self.requested = True

    @transition_state.step(NULL, T.join_group0, by=COORDINATOR, fair=WEAK)
    def accept(self) -> None:
        """The newcomer is accepted once nothing else is going on."""
        only_when(not self.release.text)
        self._take_up()

    @transition_state.step(T.join_group0, COMMIT, by=COORDINATOR, fair=WEAK)
    def insert_generation(self) -> None:
        """The newcomer gets tokens, and the data of a CDC generation for them is written."""
        only_when(not self.release.text)
        self._make_generation()

    @transition_state.step(NULL, COMMIT, by=COORDINATOR, fair=WEAK)
    def bootstrap(self) -> None:
        """001: "we create new tokens for it and a new CDC generation and enter the commit_cdc_generation state"."""
        only_when(self.release.text)
        self._take_up()
        self._make_generation()

    def _take_up(self) -> None:
        require(self.requested, "a node has asked to join")
        self.requested = False
        self.state = NodeState.bootstrapping

    def _make_generation(self) -> None:
        self.cdc.begin(Term.of(Generation.second), join=_always())
        self.barrier = False

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self) -> None:
        """001: "the entire cluster learns about it", and requests from before are over."""
        has_one = self.transition_state.column(lambda state: state.barrier)
        require(has_one & ~self.barrier, "the state has a barrier")
        self._barrier()
        self.barrier = True

    @transition_state.step(COMMIT, WRITE_BOTH, by=COORDINATOR, fair=WEAK)
    def commit_generation(self) -> None:
        """Every node has the generation's data: it gets its timestamp, and writes go to the newcomer, too."""
        only_when(not self.release.text)
        self.cdc.commit_for_join(Term.of(Generation.second))
        self._every_node_has_its_data()

    @transition_state.step(COMMIT, T.publish_cdc_generation, by=COORDINATOR, fair=WEAK)
    def commit_before_publishing(self) -> None:
        """Every node has the generation's data: it gets its timestamp, and is to be published."""
        only_when(self.release.text)
        self.cdc.commit_before_publishing(Term.of(Generation.second))
        self._every_node_has_its_data()

    def _every_node_has_its_data(self) -> None:
        self._after_barrier()

    @transition_state.step(T.publish_cdc_generation, WRITE_BOTH, by=COORDINATOR, fair=WEAK)
    def publish(self) -> None:
        """001: "Once the generation is published, we enter write_both_read_old state"."""
        only_when(self.release.text)
        self.cdc.publish_for_join(Term.of(Generation.second))

    @action(by=COORDINATOR, fair=WEAK)
    def stream(self) -> None:
        """The newcomer gets the rows of its part of the vnode, including those of the CDC log."""
        require(self.transition_state == WRITE_BOTH, "writes go to both")
        self._has_learned()
        require(~self.streamed, "it has not streamed yet")
        self.streamed = True
        for row in OF_THE_VNODE:
            sent = self._is_streamed(row) & some(
                self.stored[row].has(m) & (self.owner == m) for m in Node
            )
            for n in Node:
                self.stored[row].put(n, self.stored[row].has(n) | (sent & (self.newcomer == n)))

    def _has_learned(self) -> None:
        require(self.barrier, "every node has learned that")

    def _is_streamed(self, row: Row) -> Bool:
        return self._moves(row, self.logged)

    @transition_state.step(WRITE_BOTH, READ_NEW, by=COORDINATOR, fair=WEAK)
    def read_new(self) -> None:
        """001: "When streaming finishes, we move to write_both_read_new state"."""
        require(self.streamed, "streaming is finished")
        self.barrier = False

    @transition_state.step(READ_NEW, NULL, by=COORDINATOR, fair=WEAK)
    def finish(self) -> None:
        """No read from before is left: the newcomer becomes a normal node."""
        self.cdc.finish_join()
        self._after_barrier()
        self.state = NodeState.normal

    @transition_state.step(COMMIT, T.left_token_ring, by=COORDINATOR, spends=failures)
    def fail_barrier(self) -> None:
        """A node does not answer: the generation is not committed."""
        only_when(not self.release.text)
        self.cdc.fail_barrier()
        self.barrier = False

    @transition_state.step(WRITE_BOTH, T.left_token_ring, by=COORDINATOR, spends=failures)
    def fail_streaming(self) -> None:
        """The newcomer's tokens leave the ring; its generation stays."""
        only_when(not self.release.text)
        self.cdc.fail_streaming(Term.of(Generation.second))
        self.barrier = False
        self.streamed = False

    @transition_state.step(T.left_token_ring, NULL, by=COORDINATOR, fair=WEAK)
    def finish_rollback(self) -> None:
        """Nobody sends anything to the newcomer any more: it becomes left, and what it stored is gone with it."""
        only_when(not self.release.text)
        self.cdc.finish_rollback()
        self._nobody_sends_to_it()
        self.barrier = False
        self.state = NodeState.left
        for row in OF_THE_VNODE:
            for n in Node:
                self.stored[row].put(n, self.stored[row].has(n) & (self.newcomer != n))

    def _nobody_sends_to_it(self) -> None:
        require(self.barrier, "the barrier has passed")

    def _after_barrier(self) -> None:
        require(self.barrier, "the barrier has passed")
        self.barrier = False

    @action(by=COORDINATOR, spends=failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator: what only the old one knew is lost."""
        self.cdc.fail_over()
        self.tablet.fail_over()
        self.barrier = False
        self.streamed = False

    # -- a tablet moves ----------------------------------------------------------------------------------

    @transition_state.step(NULL, T.tablet_migration, by=BALANCER, spends=migrations)
    def migrate(self, n: Term[Node]) -> None:
        """The tablet enters a transition, and the topology the tablet migration track, in one commit."""
        require(
            ~self._has_tablet(self.host, n) & self._is_normal(n), "to another node, a normal one"
        )
        self._no_request_waits()
        self.tablet.start(Term.of(Kind.migration))
        self.pending = n

    def _no_request_waits(self) -> None:
        require(~self.requested, "no request is pending")

    @action(by=COORDINATOR, fair=WEAK)
    def pass_tablet_barrier(self) -> None:
        """The same barrier as that of the ring."""
        self.tablet.pass_barrier()
        self._barrier()

    @action(by=COORDINATOR, fair=WEAK)
    def finish_operation(self) -> None:
        """Streamed rows have arrived, or the leaving replica is cleaned up."""
        streams = self.tablet.stage == Stage.streaming
        self.tablet.finish_operation()
        row = self.stored[Row.other]
        had = some(row.has(m) & self._has_tablet(self.host, m) for m in Node)
        for n in Node:
            comes, goes = streams & (self.pending == n), ~streams & self._is_cleaned_up(n)
            row.put(n, (row.has(n) & ~goes) | (had & comes))

    def _is_cleaned_up(self, n: Term[Node]) -> Bool:
        """The replica that leaves removes its rows."""
        return self._has_tablet(self.host, n)

    @action(by=COORDINATOR, fair=WEAK)
    def finish_migration(self) -> None:
        """The pending replica becomes the tablet's replica."""
        only_when(not self.release.text)
        self.tablet.finish()
        self._replace()

    @action(by=COORDINATOR, fair=WEAK)
    def finish_without_cleanup(self) -> None:
        """The same in 001, which does not say who removes the rows of the leaving replica."""
        only_when(self.release.text)
        self.tablet.finish_without_cleanup()
        self._replace()

    def _replace(self) -> None:
        self.host = self.pending
        self.pending = None

    @transition_state.step(T.tablet_migration, NULL, by=COORDINATOR, fair=WEAK)
    def leave_track(self) -> None:
        """001: once migrations have drained the topology "will exit the tablet migration track"."""
        require(self._has_drained(), "no tablet is in transition")

    def _has_drained(self) -> Bool:
        return self.tablet.stage == Stage.none

    # -- helpers -----------------------------------------------------------------------------------------

    def _is_normal(self, n: Term[Node]) -> Bool:
        return (self.newcomer != n) | (self.state == NodeState.normal)

    def _has_tablet(self, host: Maybe[Node], n: Node | Term[Node]) -> Bool:
        return (host == n) | (host.is_none() & (self.home == n))

    def _coordinates(self, n: Term[Node]) -> Bool:
        """001: the node has "data to serve"; a newcomer does once it knows that it is a normal node."""
        return (self.newcomer != n) | self.routing[n].joined

    def _moves(self, row: Row, g: Logged) -> Bool:
        """The row's token is in the part of the vnode that the newcomer takes over."""
        if row is Row.change:
            return (g == Generation.second) | self.stream_moves
        return _always()

    def _is_written(self, n: Term[Node], row: Row, g: Logged, r: Node | Term[Node]) -> Bool:
        """A node sends a write of the row to a replica."""
        routing = self.routing[n]
        if row is Row.other:
            writes = routing.stage.column(lambda stage: stage.writes)
            to_old = self._has_tablet(routing.host, r) & (writes != NEXT)
            return to_old | ((routing.pending == r) & (writes != PREVIOUS))
        writes_both = routing.state.column(lambda state: state.writes is Ring.both)
        to_new = (writes_both | routing.joined) & (self.newcomer == r)
        to_old = self.owner == r
        return choose(self._moves(row, g), to_new | (to_old & ~routing.joined), to_old)

    def _is_read(self, n: Term[Node], row: Row, r: Term[Node]) -> Bool:
        """A node reads the row at a replica."""
        routing = self.routing[n]
        if row is Row.other:
            new = routing.stage.column(lambda stage: stage.reads) == NEXT
            return choose(new, routing.pending == r, self._has_tablet(routing.host, r))
        reads_new = routing.joined | routing.state.column(lambda state: state.reads is Ring.new)
        new = reads_new & self._moves(row, self.logged)
        return choose(new, self.newcomer == r, self.owner == r)

    # -- promises ----------------------------------------------------------------------------------------

    @invariant
    def acknowledged_rows_are_read(self, n: Term[Node], r: Term[Node]) -> Bool:
        """001: the replicas that are read "will reflect all successful writes", to both tables and
        through whichever node, while the ring changes and while the tablet moves.
        """
        rows = (Row.base, Row.other)
        asked = {row: self._serves_clients(n) & self._is_read(n, row, r) for row in rows}
        return every(
            (self.acknowledged.has(row) & asked[row]).implies(self.stored[row].has(r))
            for row in rows
        )

    @invariant
    def changes_are_read_with_their_rows(self, n: Term[Node], r: Term[Node]) -> Bool:
        """003: the log is "to truly reflect what happened in the base table", even if streams of
        the generation in use move to the newcomer.
        """
        asked = self._serves_clients(n) & self._is_read(n, Row.change, r)
        return (self.acknowledged.has(Row.change) & asked).implies(self.stored[Row.change].has(r))

    @step_property
    def changes_are_in_the_generation_that_operates(self, after: Self) -> Bool:
        """001: "tell every node to start using it for CDC log table writes": all do once the generation operates."""
        begins = self.writing.is_empty() & after.writing.has(Row.change)
        second = (after.logged == Generation.second) == self.operates
        return begins.implies(second & after.logged.is_some())

    @step_property
    def replicas_receive_both_writes_or_none(self, after: Self, n: Term[Node]) -> Bool:
        """003, for the newcomer's generation, whose streams are colocated with their rows: "each
        replica either receives both writes or none of them". With the previous one, colocation is
        "lost for a while": `cdc_log.py`. What is streamed, and in which order, is no write.
        """
        writes = after.writing.has(Row.base) & (self.logged == Generation.second)
        base, change = (
            self.under_way[row].has(n) & ~after.under_way[row].has(n) & after.stored[row].has(n)
            for row in (Row.base, Row.change)
        )
        return writes.implies(base == change)

    @invariant
    def what_is_streamed_is_colocated(self, n: Term[Node]) -> Bool:
        """003: "each replica either receives both writes or none of them": when the newcomer has streamed, it has a row
        and its change, whose stream is the newcomer's, or neither; also those of a write that timed out.
        """
        change = self.logged.is_some() & ((self.logged == Generation.second) | self.stream_moves)
        moved = self.streamed & change & (self.newcomer == n)
        return moved.implies(self.stored[Row.base].has(n) == self.stored[Row.change].has(n))

    @accepts(begin_to_operate)
    def the_time_of_a_generation_waits_for_no_join(self) -> Bool:
        """001: the commit is to "create a timestamp for it and tell every node to start using it":
        it starts operating once every node knows it, whether or not the node for which it was made
        has joined by then.
        """
        known = every(self.routing[n].generation for n in Node)
        return self.cdc.committed.has(Generation.second) & known & ~self.operates

    @accepts(apply)
    def nodes_apply_what_is_committed_while_clients_wait(self, n: Term[Node]) -> Bool:
        """001: that "the entire cluster learns about it" is one thing, and that what "started before this point" is
        over another: a node that coordinates an older write learns of the next state, and of the next stage,
        meanwhile.
        """
        of_the_ring = self.routing[n].state != self.transition_state
        return of_the_ring | (self.routing[n].stage != self.tablet.stage)

    @accepts(stream)
    def the_newcomer_streams_while_clients_write(self) -> Bool:
        """001: "Writes are going to both new and old replicas", and "streaming starts" under them once all have
        learned that.
        """
        return (self.transition_state == WRITE_BOTH) & self.barrier & ~self.streamed

    @accepts(leave_track)
    def the_track_is_left_while_clients_write(self) -> Bool:
        """001: "allow for current migrations to drain, after which the state machine will exit the tablet migration
        track": migrations drain, and not what clients write.
        """
        at_rest = self.tablet.stage == Stage.none
        return (self.transition_state == T.tablet_migration) & at_rest

    @invariant
    def tablets_move_in_their_track(self) -> Bool:
        """001: outside of the track "it is guaranteed that there are no tablet transitions in the system"."""
        in_track = self.transition_state.column(lambda state: state.tablets)
        return (self.tablet.stage != Stage.none).implies(in_track)

    @invariant
    def a_tablet_that_moves_has_a_new_replica(self, n: Term[Node]) -> Bool:
        """001, stage 1: "transition info in group0 is filled with information about migration",
        which includes "new_replicas", as long as the tablet moves, whatever is requested meanwhile.
        """
        moves = self.tablet.stage != Stage.none
        other = (self.pending == n).implies(~self._has_tablet(self.host, n))
        return moves.implies(self.pending.is_some() & other)

    @step_property
    def migrations_wait_for_requests(self, after: Self) -> Bool:
        """001: "If there is a pending topology change request, the load balancer will not be invoked"."""
        begins = (self.tablet.stage == Stage.none) & (after.tablet.stage != Stage.none)
        return begins.implies(~self.requested)

    @invariant
    def the_tablet_is_on_a_normal_node(self) -> Bool:
        """001: a new node "has no tokens and data to serve": the newcomer has no tablet before it
        is normal, nor once it has left.
        """
        on = (self.host == self.newcomer) | (self.pending == self.newcomer)
        return on.implies(self.state == NodeState.normal)

    @step_property
    def the_newcomer_follows_the_diagram(self, after: Self) -> Bool:
        """001, "State transition diagram for nodes": a new node becomes bootstrapping, since it
        replaces no other; one that is normal or left does not join again.
        """
        follows = every(
            (self.state == state).implies(after.state.any_of(*_self_or_next(state)))
            for state in NodeState
        )
        return follows & (after.state != NodeState.replacing)

    @invariant
    def clients_are_served_by_normal_nodes(self) -> Bool:
        """001: a normal node "serves the slice of the ring that belongs to it"; until the newcomer
        is one, no client writes through it.
        """
        return (self.coordinator == self.newcomer).implies(self.state == NodeState.normal)

    @invariant
    def nodes_outside_of_the_ring_store_nothing(self, n: Term[Node]) -> Bool:
        """001: in state none the node "has no tokens and data to serve"; in state left "the node
        left the cluster", and no write that was under way reaches it later.
        """
        outside = (self.newcomer == n) & self.state.any_of(NodeState.none, NodeState.left)
        return outside.implies(every(~self.stored[row].has(n) for row in Row))

    @invariant
    def tablets_are_stored_by_their_replicas(self, n: Term[Node]) -> Bool:
        """001: when a tablet is not in transition, the storage layer of a node contains its writes
        "only if that shard is one of the current tablet replicas".
        """
        settled = (self.tablet.stage == Stage.none) & self.stored[Row.other].has(n)
        return settled.implies(self._has_tablet(self.host, n))

    @accepts(write_other)
    def tablets_are_written_at_any_time(self, n: Term[Node]) -> Bool:
        """001: while replicas change, "writes are going to both new and old" ones: no write waits
        for a join, nor for the migration of its tablet.
        """
        return self._serves_clients(n)

    @accepts(write)
    def vnodes_are_written_while_a_tablet_moves(self, n: Term[Node]) -> Bool:
        """001: a migration affects only its tablet: tables of vnodes, and their logs, are written meanwhile."""
        return self._serves_clients(n) & (self.tablet.stage != Stage.none)

    @accepts(write)
    def vnodes_are_written_while_a_node_joins(self, n: Term[Node]) -> Bool:
        """001: "Writes are going to both new and old replicas", and before that to the old ones:
        from the new CDC generation to the last read of the old ring no client waits, whichever
        generation nodes have learned of.
        """
        return self._serves_clients(n) & (self.state == NodeState.bootstrapping)

    @independent(
        ask_to_join,
        accept,
        insert_generation,
        commit_generation,
        read_new,
        finish,
        finish_rollback,
        begin_to_operate,
        migrate,
        finish_operation,
        finish_migration,
        of=(writing, coordinator, sent, logged, under_way, stored, acknowledged),
    )
    def no_change_waits_for_clients(self) -> None:
        """001: "Writes are going to both new and old replicas", so that the ring and the tablet change under clients: barriers
        wait for what began before them, and nothing else does.
        """

    @independent(
        pass_tablet_barrier,
        finish_operation,
        finish_migration,
        leave_track,
        of=(requested, operates, streamed),
    )
    def tablets_wait_for_no_join(self) -> None:
        """001: "allow for current migrations to drain": what is asked for meanwhile, and the generation of a join before, hold
        up none that has begun.
        """

    @independent(
        accept,
        insert_generation,
        commit_generation,
        stream,
        read_new,
        finish,
        finish_rollback,
        of=(operates, tablet, host, pending),
    )
    def joins_wait_for_no_tablet(self) -> None:
        """001: node operations "wait for tablet migration track to finish", and for nothing of tablets once they have begun; the
        generation was committed before, and starts operating in its own time.
        """

    @independent(
        pass_barrier,
        of=(requested, operates, streamed, logged, under_way, stored, acknowledged),
    )
    def barriers_wait_for_the_ring_alone(self) -> None:
        """001: "again the whole cluster needs to learn about it": nodes are to learn the state of the ring, whether or not the
        generation operates by then, and to end what they coordinate, wherever it is stored.
        """

    @step_property
    def the_tablet_is_where_it_has_moved(self, after: Self) -> Bool:
        """001: "replicas: the old replicas of a table", "new_replicas: the new replicas of a tablet": the new one takes the place
        of the old one when the transition ends; whoever coordinates, it stays there.
        """
        ends = (self.tablet.stage != Stage.none) & (after.tablet.stage == Stage.none)
        moved = ends & (after.host == self.pending)
        return (self.host != after.host).implies(moved)

    def _serves_clients(self, n: Term[Node]) -> Bool:
        """001, normal: the node "serves the slice of the ring that belongs to it"; the newcomer
        does once it knows that.
        """
        is_normal = (self.newcomer != n) | (self.state == NodeState.normal)
        return is_normal & (self.newcomer == n).implies(self.routing[n].joined)

    @sometimes(at={writes: 1})
    def a_stream_moves_to_the_newcomer(self) -> Bool:
        """A change from before the switch is stored by the newcomer, which is read from then on."""
        before = self.acknowledged.has(Row.change) & (self.logged == Generation.first)
        there = some((self.newcomer == n) & self.stored[Row.change].has(n) for n in Node)
        return before & there & (self.state == NodeState.normal)

    @sometimes(at={writes: 1})
    def colocation_is_lost_for_a_while(self) -> Bool:
        """003: "the old generation will still be operating": a row goes to both, its change to one."""
        return self.writing.has(Row.base) & ~(
            self.under_way[Row.base] <= self.under_way[Row.change]
        )

    @sometimes(at={migrations: 1, writes: 0})
    def the_newcomer_gets_the_tablet(self) -> Bool:
        """Once the newcomer has joined, the tablet moves to it."""
        return (self.host == self.newcomer) & self.operates

    @sometimes(at={Node: 3, writes: 0})
    def a_request_waits_for_a_migration(self) -> Bool:
        """The newcomer waits until the tablet migration track has drained."""
        return self.requested & (self.tablet.stage != Stage.none)

    @liveness
    def nodes_join(self) -> LeadsTo:
        """001: the "pending topology operation" may "start" once migrations have drained, and it ends."""
        done = self.state.any_of(NodeState.normal, NodeState.left)
        return leads_to(self.requested, done)

    @liveness
    def migrations_end(self) -> LeadsTo:
        """Every transition of the tablet ends, whatever else is going on."""
        return leads_to(self.tablet.stage != Stage.none, self.tablet.stage == Stage.none)

    @liveness
    def generations_operate(self) -> LeadsTo:
        """003: a committed generation eventually operates, whether or not the join succeeds."""
        return leads_to(self.cdc.committed.has(Generation.second), self.operates)

    @final
    def at_rest(self) -> Bool:
        """No topology change is going on, and no write is under way."""
        return (self.transition_state == NULL) & self.writing.is_empty()

    # -- what older versions break -----------------------------------------------------------------------

    left_open = known_violations(
        violated(
            tablets_are_stored_by_their_replicas,
            under=SEED,
            because="nothing says that the cleanup stage removes the rows: the tablet comes to rest while the node that it "
            "left still stores them",
        ),
    )

    # -- harmless changes --------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_replacement(
            receive,
            "stored[base][n] becomes: change for base",
            because="a node to which a change comes without its row is no replica of the row",
        ),
        equivalent_replacement(
            pass_tablet_barrier,
            "bootstrapping for none",
            "rebuilding for normal",
            "third for second",
            because="no node joins while a tablet moves: what is under way knows the ring as it is",
        ),
        equivalent_drop(
            receive,
            "a message is on its way to it",
            because="a node that gets no message stores nothing",
        ),
        equivalent_drop(
            acknowledge, "a write is under way", because="without one nothing is acknowledged"
        ),
        equivalent_drop(
            time_out, "a write is under way", because="without one there is nothing to lose"
        ),
        equivalent_drop(
            apply, "something new is committed", because="what is applied again changes nothing"
        ),
        equivalent_replacement(
            apply,
            "rebuilding for normal",
            "third for second",
            because="the transition state is new then, too",
        ),
        equivalent_drop(
            begin_to_operate,
            "it does not operate yet",
            because="a generation that is operating continues to",
        ),
        equivalent_drop(
            pass_barrier,
            "the state has a barrier",
            because="where a state has no barrier, none is required, and the next state starts without one",
        ),
        equivalent_drop(
            stream,
            "it has not streamed yet",
            because="rows that are streamed again are there already",
        ),
        equivalent_drop(
            commit_generation,
            "transition_state is commit_cdc_generation",
            because="the generation is in that state where the topology is",
        ),
        equivalent_drop(
            fail_barrier,
            "transition_state is commit_cdc_generation",
            because="the generation is in that state where the topology is",
        ),
        equivalent_drop(
            finish_rollback,
            "transition_state is left_token_ring",
            because="the generation is in that state where the topology is",
        ),
        equivalent_drop(
            fail_streaming,
            "transition_state is write_both_read_old",
            because="while writes go to both rings the old one has every row, whichever is read",
        ),
        equivalent_weakening(
            pass_barrier,
            "every node has applied it",
            because="only a newcomer that is not normal yet, and sends nothing, is not waited for",
        ),
        equivalent_replacement(
            pass_barrier,
            "bootstrapping for none",
            because="only a newcomer that is not normal yet, and sends nothing, is not waited for",
        ),
        equivalent_replacement(
            pass_barrier,
            "third for second",
            because="a barrier that waits for every request waits for those from before",
        ),
        equivalent_loss(
            _send,
            sent,
            because="a barrier that waits for every request waits for those from before",
        ),
        equivalent_loss(
            _send,
            coordinator,
            because="it only records who sends it, for clients_are_served_by_normal_nodes",
        ),
        equivalent_loss(
            _forget,
            sent,
            coordinator,
            because="it does not matter how a write was sent that is over",
        ),
        equivalent_replacement(
            _forget, "sent becomes", because="it does not matter how a write was sent that is over"
        ),
        equivalent_loss(
            insert_generation, barrier, because="the state before has no barrier that could pass"
        ),
        equivalent_loss(
            fail_barrier,
            barrier,
            because="nobody has sent anything to the newcomer for which a barrier would wait",
        ),
        equivalent_loss(finish, barrier, because=JOINS_ONCE),
        equivalent_loss(finish_rollback, barrier, because=JOINS_ONCE),
        equivalent_replacement(finish, "barrier becomes", because=JOINS_ONCE),
        equivalent_replacement(finish_rollback, "barrier becomes", because=JOINS_ONCE),
        equivalent_loss(fail_streaming, streamed, because=JOINS_ONCE),
        equivalent_loss(
            fail_over,
            barrier,
            streamed,
            because="a coordinator that knows all that its predecessor knew does no harm",
        ),
        equivalent_without(
            CdcPublication.fail_over,
            TabletMigration.fail_over,
            because="a coordinator that knows all that its predecessor knew does no harm",
        ),
        equivalent_loss(
            finish_migration, pending, because="at rest it does not matter which node is pending"
        ),
        equivalent_value(
            UNUSED_STAGES, lambda stage: stage.writes, because="no tablet enters this stage here"
        ),
        equivalent_value(
            UNUSED_STAGES, lambda stage: stage.reads, because="no tablet enters this stage here"
        ),
        equivalent_value(OF_OTHERS, lambda state: state.writes, because=NOT_ENTERED),
        equivalent_value(OF_OTHERS, lambda state: state.reads, because=NOT_ENTERED),
        equivalent_value(OF_OTHERS, lambda state: state.barrier, because=NOT_ENTERED),
        equivalent_value(OF_OTHERS, lambda state: state.tablets, because=NOT_ENTERED),
        equivalent_value(
            (T.join_group0, COMMIT),
            lambda state: state.writes,
            because="rows that reach the newcomer too early are streamed to it again",
        ),
        equivalent_value(
            (NULL, T.join_group0, T.tablet_migration),
            lambda state: state.barrier,
            because="one more barrier does no harm: the next state starts without one",
        ),
        equivalent_value(
            tuple(T),
            lambda state: state.tablets,
            True,
            because="a wider table forbids less; the steps say when a tablet may move",
        ),
        equivalent_step(transition_state, OF_OTHERS, tuple(T), because=NOT_ENTERED),
    )

    beyond_the_default_scope = unexercised(
        never_happens(
            finish_rollback, because="a join is given up only where there are `failures`"
        ),
        vacuous(
            CdcPublication.a_node_that_left_has_no_tokens_in_the_ring,
            CdcPublication.joins_are_undone_when_something_has_failed,
            because="a join is given up only where there are `failures`",
        ),
        vacuous(
            CdcPublication.one_topology_change_at_a_time,
            because="no table for CDC clients is lost here: cdc-publication has that",
        ),
        vacuous(
            CdcPublication.requests_create_a_generation,
            because="a node joins here, and no user asks for a generation: cdc-publication has that",
        ),
        vacuous(
            TabletMigration.only_rebuild_v2_repairs,
            TabletMigration.a_failed_repair_is_drained_after_it_failed,
            because="the tablet is neither repaired nor rebuilt here: tablet-migration has that",
        ),
        vacuous(
            TabletMigration.the_target_is_cleaned_up_after_a_barrier,
            TabletMigration.a_transition_is_undone_only_for_a_reason,
            TabletMigration.what_is_undone_is_not_taken_up_again,
            TabletMigration.nothing_is_unwanted_before_it_streams,
            because="no migration is undone here: cluster-views has that",
        ),
        vacuous(
            TabletMigration.nobody_waits_for_a_leaving_replica_that_is_gone,
            because="no replica's node is gone for good here: tablet has that",
        ),
    )
