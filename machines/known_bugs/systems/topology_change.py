"""Mistakes put back into `TopologyChange`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb import cluster
from stagewright.machines.scylladb.cdc.cdc_publication import Generation
from stagewright.machines.scylladb.cluster import CLIENT, NETWORK, Node
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.topology.topology_states import NodeState, Ring, TransitionState
from stagewright.machines.systems import topology_change
from stagewright.machines.systems.topology_change import (
    COMMIT,
    COORDINATOR,
    OPERATOR,
    READ_NEW,
    TIME,
    WEAK,
    Logged,
    Row,
    TopologyChange,
)
from stagewright.spec import Bool, FlagVar, Term, action, choose, flag, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

NO_MIGRATION = {TopologyChange.migrations: 0}


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "001-1",
    "design document 001, write_both_read_old; design document 003",
    breaks=TopologyChange.changes_are_read_with_their_rows,
    budgets=NO_MIGRATION,
)
class TheLogIsNotStreamed(TopologyChange):
    """The newcomer gets the rows of its part of the vnode, but not the CDC log's: changes whose stream moves with the
    vnode are not read any more.
    """

    def _is_streamed(self, row: Row) -> Bool:
        return some(()) if row is Row.change else super()._is_streamed(row)


@known_bug(
    "003-133",
    "design document 003: each replica either receives both writes or none of them",
    breaks=TopologyChange.what_is_streamed_is_colocated,
    budgets={**NO_MIGRATION, TopologyChange.losses: 1},
)
class ChangesOfTheNewGenerationAreNotStreamed(TopologyChange):
    """The newcomer streams changes of the previous generation alone, as those of its own are sent to it anyway: one that
    was lost on the way is missing beside its row, which is streamed.
    """

    def _is_streamed(self, row: Row) -> Bool:
        streamed = super()._is_streamed(row)
        return streamed & (self.logged != Generation.second) if row is Row.change else streamed


@known_bug(
    "003-161",
    "design document 003: the old generation will still be operating",
    breaks=TopologyChange.changes_are_read_with_their_rows,
    budgets=NO_MIGRATION,
)
class ChangesGoWhereTheirRowsGo(TopologyChange):
    """Once the newcomer had joined, a change was sent wherever its row was: one of the previous generation, whose stream
    stays with the old owner, went to the newcomer, and nobody looks for it there.
    """

    def _is_written(self, n: Term[Node], row: Row, g: Logged, r: Node | Term[Node]) -> Bool:
        written = super()._is_written(n, row, g, r)
        if row is not Row.change:
            return written
        with_its_row = super()._is_written(n, Row.base, g, r)
        return choose(self.routing[n].joined, with_its_row, written)


@known_bug(
    "003-162",
    "design document 003: each replica either receives both writes or none of them",
    breaks=TopologyChange.replicas_receive_both_writes_or_none,
    budgets=NO_MIGRATION,
)
class OldOwnersGetRowsAlone(TopologyChange):
    """Once nobody read from the old owner any more, rows were sent to it for as long as it was a replica, and changes were
    not.
    """

    def _is_written(self, n: Term[Node], row: Row, g: Logged, r: Node | Term[Node]) -> Bool:
        written = super()._is_written(n, row, g, r)
        if row is not Row.change:
            return written
        spared = self.barrier & (self.routing[n].state == READ_NEW) & (self.owner == r)
        return written & ~(spared & (g == Generation.second))


@known_bug(
    "001-2",
    "design document 001, write_both_read_old",
    breaks=TopologyChange.acknowledged_rows_are_read,
    budgets=NO_MIGRATION,
)
class StreamsBeforeAllHaveLearned(TopologyChange):
    """Streaming begins when the state is committed: a node that has not applied it acknowledges a row that only the old
    owner gets, too late to be streamed.
    """

    def _has_learned(self) -> None:
        """Nothing is waited for."""


@known_bug(
    "001-3",
    "design document 001, write_both_read_old",
    breaks=(
        TopologyChange.acknowledged_rows_are_read,
        TopologyChange.changes_are_read_with_their_rows,
    ),
    budgets=NO_MIGRATION,
)
class BarriersDoNotDrain(TopologyChange):
    """A barrier waits until every node has applied what is committed, but for no request that began before: a write
    that went to the old owner alone is stored after that has been streamed.
    """

    def _is_drained(self) -> Bool:
        return self.writing.is_empty() | ~self.writing.is_empty()


@known_bug(
    "001-4",
    "design document 001, Load balancing",
    breaks=TopologyChange.tablets_move_in_their_track,
    sizes={Node: 3},
    budgets={TopologyChange.writes: 0},
)
class TheTrackIsLeftEarly(TopologyChange):
    """Leaves the tablet migration track for the join that was asked for while a tablet is in transition."""

    def _has_drained(self) -> Bool:
        return super()._has_drained() | self.requested


@known_bug(
    "001-5",
    "design document 001, Load balancing",
    breaks=TopologyChange.migrations_wait_for_requests,
    sizes={Node: 3},
    budgets={TopologyChange.writes: 0},
)
class TheBalancerDoesNotLetMigrationsDrain(TopologyChange):
    """The load balancer starts a migration although a node waits to join."""

    def _no_request_waits(self) -> None:
        """Nothing is waited for."""


@known_bug(
    "001-6",
    "design document 001, commit_cdc_generation",
    breaks=TopologyChange.changes_are_in_the_generation_that_operates,
    budgets=NO_MIGRATION,
)
class TheTimestampIsNotAhead(TopologyChange):
    """The generation operates from its commit on: a node that has not applied that commit logs to the streams of the one
    before.
    """

    def _is_known(self) -> Bool:
        return self.cdc.committed.has(Generation.second)


@known_bug(
    "001-7",
    "design document 003, Generation switching",
    breaks=(
        TopologyChange.replicas_receive_both_writes_or_none,
        TopologyChange.changes_are_read_with_their_rows,
    ),
    budgets=NO_MIGRATION,
)
class LogWritesUseTheOldRing(TopologyChange):
    """While a node joins the base write goes to both rings, and the log write to the old one only."""

    def _is_written(self, n: Term[Node], row: Row, g: Logged, r: Node | Term[Node]) -> Bool:
        written = super()._is_written(n, row, g, r)
        return written & (self.owner == r) if row is Row.change else written


@known_bug(
    "001-8",
    'design document 001: left, "the node left the cluster"',
    breaks=TopologyChange.nodes_outside_of_the_ring_store_nothing,
    budgets={**NO_MIGRATION, TopologyChange.failures: 1},
)
class LeavesWithoutABarrier(TopologyChange):
    """A join is rolled back and the newcomer is left at once: a write that is under way still comes to it."""

    def _nobody_sends_to_it(self) -> None:
        """Nothing is waited for."""


@known_bug(
    "001-9",
    "design document 001, commit_cdc_generation",
    breaks=TopologyChange.changes_are_in_the_generation_that_operates,
    budgets=NO_MIGRATION,
)
class CommitsWithoutABarrier(TopologyChange):
    """The generation gets its timestamp although a node may not have its data: cut off, it learns of neither in the
    minute or two, and logs to the streams of the generation before.
    """

    def _every_node_has_its_data(self) -> None:
        self.barrier = False


@known_bug(
    "001-10",
    'design document 001: none, "has no tokens and data to serve"',
    breaks=(
        TopologyChange.clients_are_served_by_normal_nodes,
        TopologyChange.acknowledged_rows_are_read,
    ),
    sizes={Node: 3},
    budgets={TopologyChange.joins: 0},
)
class ServesBeforeItHasJoined(TopologyChange):
    """A node of group0 serves clients before it bootstraps: no barrier waits for it, so it writes to a replica that the
    tablet has left.
    """

    def _coordinates(self, n: Term[Node]) -> Bool:
        return super()._coordinates(n) | (self.newcomer == n)


@known_bug(
    "001-25",
    "design document 001, cleanup",
    breaks=TopologyChange.tablets_are_stored_by_their_replicas,
    sizes={Node: 3},
    budgets={TopologyChange.joins: 0},
)
class CleanupLeavesTheRows(TopologyChange):
    """The stage cleanup passes, and the node that the tablet has left still stores its rows."""

    def _is_cleaned_up(self, n: Term[Node]) -> Bool:
        return super()._is_cleaned_up(n) & some(())


@known_bug(
    "001-26",
    'design document 003: "each replica either receives both writes or none of them"',
    breaks=TopologyChange.replicas_receive_both_writes_or_none,
    budgets=NO_MIGRATION,
)
class ChangesAreSentApart(TopologyChange):
    """A row and its change are sent as two messages: a replica stores the one, and the other is still on its way."""

    @action(fair=WEAK)
    def receive(self, n: Term[Node]) -> None:
        """A replica stores the row, then its change."""
        require(some(self.under_way[row].has(n) for row in Row), "a message is on its way to it")
        row_is_first = self.under_way[Row.base].has(n)
        for row in Row:
            waits = row_is_first if row is Row.change else some(())
            comes = self.under_way[row].has(n) & ~waits
            self.stored[row].put(n, self.stored[row].has(n) | comes)
            self.under_way[row].put(n, self.under_way[row].has(n) & waits)


@known_bug(
    "001-27",
    "design document 003, Generation switching: the old generation is still operating",
    breaks=TopologyChange.colocation_is_lost_for_a_while,
    budgets=NO_MIGRATION,
)
class WritesWaitForTheGeneration(TopologyChange):
    """Nobody writes to a table with a log from the change of the ring until the new generation operates."""

    @action(by=CLIENT, spends=TopologyChange.writes)
    def write(self, n: Term[Node]) -> None:
        """A row is written unless its change would be at other nodes."""
        super().write(n)
        changes = self.routing[n].state.column(lambda state: state.writes is Ring.both)
        before = ~changes & ~self.routing[n].joined
        require(self.operates | before, "the ring is that of the generation")


@known_bug(
    "001-28",
    "design document 001: a request waits until current migrations have drained",
    breaks=TopologyChange.a_request_waits_for_a_migration,
    sizes={Node: 3},
    budgets={TopologyChange.writes: 0},
)
class JoinsAreRefusedWhileTabletsMove(TopologyChange):
    """A node that asks to join while a tablet migrates is refused, and not queued."""

    @action(by=OPERATOR, spends=TopologyChange.joins)
    def ask_to_join(self) -> None:
        """A new node asks to join while all tablets are at rest."""
        super().ask_to_join()
        require(self.tablet.stage == Stage.none, "no tablet is in transition")


@known_bug(
    "001-101",
    "design document 001, write_both_read_old",
    breaks=TopologyChange.acknowledged_rows_are_read,
    budgets={**NO_MIGRATION, TopologyChange.failovers: 1},
)
class StreamingIsTakenForDone(TopologyChange):
    """A coordinator that takes over while writes go to both rings goes on with reads: what its predecessor was about to
    stream is at the old owner alone.
    """

    @action(by=COORDINATOR, spends=TopologyChange.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator."""
        self.cdc.fail_over()
        self.tablet.fail_over()
        self.barrier = False
        self.streamed = self.transition_state == TransitionState.write_both_read_old


@known_bug(
    "001-102",
    "design document 001: replicas that are read reflect all successful writes",
    breaks=TopologyChange.acknowledged_rows_are_read,
    budgets={**NO_MIGRATION, TopologyChange.losses: 1},
)
class LostWritesAreAcknowledged(TopologyChange):
    """The client of a write that timed out is told that it has succeeded."""

    @action(by=NETWORK, spends=TopologyChange.losses)
    def time_out(self) -> None:
        """The write is lost, and what is left of it is an answer."""
        self.acknowledged = self.acknowledged | self.writing
        super().time_out()


@known_bug(
    "001-135",
    "design document 003: the streams of a generation are those of its vnodes",
    breaks=TopologyChange.a_stream_moves_to_the_newcomer,
    budgets={TopologyChange.writes: 1},
)
class OldStreamsStayWhereTheyAre(TopologyChange):
    """Only the streams of its own generation moved to the newcomer: those of the one before stayed with the old owner."""

    def _moves(self, row: Row, g: Logged) -> Bool:
        if row is Row.change:
            return g == Generation.second
        return super()._moves(row, g)


@known_bug(
    "001-154",
    "design document 001: a barrier waits for requests from before",
    breaks=(
        TopologyChange.nodes_outside_of_the_ring_store_nothing,
        TopologyChange.tablets_are_stored_by_their_replicas,
    ),
    budgets={**NO_MIGRATION, TopologyChange.losses: 1, TopologyChange.failures: 1},
)
class WritesThatTimedOutAreStillSent(TopologyChange):
    """A write that had timed out was over, so that no barrier waited for it, and its messages were still on their way: one
    came to a node that had left.
    """

    @action(by=NETWORK, spends=TopologyChange.losses)
    def time_out(self) -> None:
        """The client hears no more of its write."""
        require(~self.writing.is_empty(), "a write is under way")
        self._forget()


@known_bug(
    "001-348",
    'design document 001, stage 1: "transition info in group0 is filled with information about migration"',
    breaks=TopologyChange.a_tablet_that_moves_has_a_new_replica,
    sizes={cluster.Node: 3},
    budgets={TopologyChange.writes: 0},
)
class JoinsTakeTheNewReplicaBack(TopologyChange):
    """A join that was asked for before anything was written to the new replica took it out of the transition: the tablet went
    through all stages without, and its only replica was cleaned up.
    """

    @action(by=OPERATOR, spends=TopologyChange.joins)
    def ask_to_join(self) -> None:
        """A new node asks to join: a migration that has only begun leads nowhere."""
        super().ask_to_join()
        begun = self.tablet.stage == Stage.allow_write_both_read_old
        self.pending = choose(begun, None, self.pending)


@known_bug(
    "001-379",
    'design document 001, left: "the node left the cluster and group0"',
    breaks=TopologyChange.the_tablet_is_on_a_normal_node,
    budgets={TopologyChange.failures: 1, TopologyChange.writes: 0},
)
class TheBalancerKnowsWhoWasAccepted(TopologyChange):
    """The balancer moved tablets to each node that had been accepted, also to one whose join had been rolled back."""

    def _is_normal(self, n: Term[Node]) -> Bool:
        return (self.newcomer != n) | self.state.any_of(NodeState.normal, NodeState.left)


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "001-370",
    'design document 001: the load balancer lets the "pending topology operation … start", and it ends',
    breaks=TopologyChange.nodes_join,
    budgets={
        TopologyChange.failures: 1,
        TopologyChange.failovers: 1,
        TopologyChange.migrations: 0,
    },
)
class ARollbackIsForgotten(TopologyChange):
    """That a join had failed only the coordinator knew that saw it: the next one waited for it to go on."""

    knows: FlagVar = flag(init=True)

    @action(by=topology_change.COORDINATOR, spends=TopologyChange.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator."""
        super().fail_over()
        self.knows = self.transition_state != topology_change.T.left_token_ring

    def _nobody_sends_to_it(self) -> None:
        super()._nobody_sends_to_it()
        require(self.knows, "the coordinator knows that it has failed")


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "001-103",
    "design document 001: writes go to both new and old replicas",
    breaks=TopologyChange.tablets_are_written_at_any_time,
    budgets=NO_MIGRATION,
)
class TabletsWaitForTheRing(TopologyChange):
    """No row of a tablet is written while a node joins, though its replicas stay what they are."""

    @action(by=CLIENT, spends=TopologyChange.writes)
    def write_other(self, n: Term[Node]) -> None:
        """A row is written unless the ring changes."""
        super().write_other(n)
        changes = self.transition_state.column(lambda state: state.writes is Ring.both)
        require(~changes, "the ring stays what it is")


@known_bug(
    "001-104",
    "design document 001, Load balancing",
    breaks=TopologyChange.vnodes_are_written_while_a_tablet_moves,
    sizes={Node: 3},
    budgets={TopologyChange.joins: 0},
)
class VnodesWaitForTheTrack(TopologyChange):
    """Tables of vnodes take no writes while the topology is in the tablet migration track."""

    @action(by=CLIENT, spends=TopologyChange.writes)
    def write(self, n: Term[Node]) -> None:
        """A row is written unless a tablet moves."""
        super().write(n)
        require(self.tablet.stage == Stage.none, "no tablet is in transition")


@known_bug(
    "001-134",
    'design document 001: a normal node "serves the slice of the ring that belongs to it"',
    breaks=TopologyChange.tablets_are_written_at_any_time,
    budgets={TopologyChange.migrations: 0, TopologyChange.failures: 0, TopologyChange.failovers: 0},
)
class NewcomersServeNobody(TopologyChange):
    """A node that had joined, and knew it, still refused its clients."""

    def _coordinates(self, n: Term[Node]) -> Bool:
        return super()._coordinates(n) & (self.newcomer != n)


@known_bug(
    "001-343",
    'design document 001: "create a timestamp for it and tell every node to start using it"',
    breaks=TopologyChange.the_time_of_a_generation_waits_for_no_join,
    budgets={TopologyChange.migrations: 0, TopologyChange.writes: 0},
)
class AGenerationWaitsForItsJoin(TopologyChange):
    """A generation was used only when its node had joined: for hours changes went to streams of the one before, which no
    client looked for after its time.
    """

    @action(by=TIME, fair=WEAK)
    def begin_to_operate(self) -> None:
        """The join is over: the generation starts to operate."""
        over = self.state.any_of(NodeState.normal, NodeState.left)
        require(over & self.cdc.committed.has(Generation.second), "its node has joined, or left")
        require(~self.operates & self._is_known(), "everybody knows it")
        self.operates = True


@known_bug(
    "001-371",
    'design document 001: "Writes are going to both new and old replicas"',
    breaks=TopologyChange.vnodes_are_written_while_a_node_joins,
)
class WritesWaitUntilTheGenerationIsLearned(TopologyChange):
    """Tables with CDC took no writes through a node from when a generation was made until the node had learned of it."""

    @action(by=CLIENT, spends=TopologyChange.writes)
    def write(self, n: Term[Node]) -> None:
        """A row is written unless a generation is about to be committed."""
        super().write(n)
        require(self.routing[n].state != COMMIT, "the node waits for no generation")


@known_bug(
    "001-526",
    'design document 001: "After the entire cluster learns about it"',
    breaks=TopologyChange.nodes_apply_what_is_committed_while_clients_wait,
)
class WhoCoordinatesDoesNotApply(TopologyChange):
    """A node applied what was committed when the write that it coordinated was over."""

    @action(fair=WEAK)
    def apply(self, n: Term[Node]) -> None:
        """The node coordinates nothing, and applies what is committed."""
        super().apply(n)
        require(self.coordinator != n, "it coordinates nothing")


@known_bug(
    "001-527",
    'design document 001: "Writes are going to both new and old replicas … streaming starts"',
    breaks=TopologyChange.the_newcomer_streams_while_clients_write,
    budgets=NO_MIGRATION,
)
class TheNewcomerStreamsWhenNobodyWrites(TopologyChange):
    """The newcomer streamed its part of the ring while no write was under way, of whichever table."""

    @action(by=COORDINATOR, fair=WEAK)
    def stream(self) -> None:
        """The newcomer gets its rows, if no client writes."""
        super().stream()
        require(self.writing.is_empty(), "no write is under way")


@known_bug(
    "001-528",
    'design document 001: "the state machine will exit the tablet migration track"',
    breaks=TopologyChange.the_track_is_left_while_clients_write,
)
class TheTrackIsLeftWhenNobodyWrites(TopologyChange):
    """The tablet migration track was left when migrations and writes had drained: a node that had asked to join
    waited for clients.
    """

    @TopologyChange.transition_state.step(
        TransitionState.tablet_migration, TransitionState.null, by=COORDINATOR, fair=WEAK
    )
    def leave_track(self) -> None:
        """No tablet is in transition, and no client writes."""
        require(self._has_drained(), "no tablet is in transition")
        require(self.writing.is_empty(), "no write is under way")


@known_bug(
    "001-574",
    'design document 001: "Writes are going to both new and old replicas"',
    breaks=TopologyChange.no_change_waits_for_clients,
)
class MigrationsEndWhenNobodyWrites(TopologyChange):
    """A migration was over when its tablet was cleaned up, and no client wrote to any table."""

    @action(by=COORDINATOR, fair=WEAK)
    def finish_migration(self) -> None:
        """The pending replica becomes the tablet's replica, if no client writes."""
        super().finish_migration()
        require(self.writing.is_empty(), "no write is under way")


@known_bug(
    "001-575",
    'design document 001: "allow for current migrations to drain"',
    breaks=TopologyChange.tablets_wait_for_no_join,
)
class TabletsWaitForGenerations(TopologyChange):
    """After a join tablets were streamed when its CDC generation had started operating, a minute or two later."""

    @action(by=COORDINATOR, fair=WEAK)
    def finish_operation(self) -> None:
        """What the stage asks for is done, and the newest generation operates."""
        super().finish_operation()
        begun = self.cdc.committed.has(Generation.second).implies(self.operates)
        require(begun, "the newest generation operates")


@known_bug(
    "001-576",
    'design document 001: "When streaming finishes, we move to write_both_read_new state"',
    breaks=TopologyChange.joins_wait_for_no_tablet,
    budgets=NO_MIGRATION,
)
class ReadsWaitForTheGeneration(TopologyChange):
    """A node that had streamed was read when its CDC generation had started operating."""

    @TopologyChange.transition_state.step(
        TransitionState.write_both_read_old,
        TransitionState.write_both_read_new,
        by=COORDINATOR,
        fair=WEAK,
    )
    def read_new(self) -> None:
        """Streaming is finished, and the generation operates."""
        require(self.operates, "the generation operates")
        require(self.streamed, "streaming is finished")
        self.barrier = False


@known_bug(
    "001-607",
    'design document 001: "replicas", and "new_replicas: the new replicas of a tablet"',
    breaks=TopologyChange.the_tablet_is_where_it_has_moved,
    sizes={Node: 3},
    budgets={TopologyChange.joins: 0, TopologyChange.writes: 0, TopologyChange.failovers: 1},
)
class ReplicasAreWrittenBackAsTheyWere(TopologyChange):
    """A new coordinator wrote the replicas of a tablet back as it had them in memory, from before the last migration."""

    @action(by=COORDINATOR, spends=TopologyChange.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and writes what it remembers."""
        super().fail_over()
        self.host = None


@known_bug(
    "001-606",
    'design document 001: "the whole cluster needs to learn about it"',
    breaks=TopologyChange.barriers_wait_for_the_ring_alone,
    budgets=NO_MIGRATION,
)
class BarriersWaitForTheGeneration(TopologyChange):
    """The barriers of a join waited until its CDC generation had started operating, a minute or two after its commit."""

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self) -> None:
        """The whole cluster has learned the state, and the newest generation operates."""
        super().pass_barrier()
        begun = self.cdc.committed.has(Generation.second).implies(self.operates)
        require(begun, "the newest generation operates")


BUGS = known_bugs_in(globals())
