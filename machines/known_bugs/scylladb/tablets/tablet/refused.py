"""Mistakes put back into `TabletCluster`: who is refused, or waits."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.machines.scylladb.cluster import CLIENT, Node, Tablet
from stagewright.machines.scylladb.tablets.load_balancer import COORDINATOR
from stagewright.machines.scylladb.tablets.tablet import TabletCluster
from stagewright.machines.scylladb.tablets.tablet_migration import (
    OPERATOR,
    Progress,
    TabletMigration,
)
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage
from stagewright.spec import Bool, Fairness, Term, action, every, require, some
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.known_bugs import known_bug, known_bugs_in

INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'
TWO_TABLETS: Mapping[BudgetName, int | None] = {
    TabletCluster.migrations: 2,
    TabletCluster.writes: 0,
    TabletCluster.reads: 0,
    TabletCluster.crashes: 0,
    TabletMigration.failures: 0,
}
Budgets = Mapping[BudgetName, int | None]
NO_FAULTS: Budgets = {TabletCluster.crashes: 0, TabletMigration.failures: 0}
NO_CLIENTS: Budgets = {**NO_FAULTS, TabletCluster.writes: 0, TabletCluster.reads: 0}
ALIVE = 'design document 001: "streamed to nodes that took over from still alive owners"'
WEAK = Fairness.WEAK
TWO_MIGRATIONS: dict[BudgetName, int | None] = {
    TabletCluster.writes: 0,
    TabletCluster.reads: 0,
    TabletCluster.crashes: 0,
    TabletCluster.migrations: 2,
}


@known_bug(
    "001-19",
    "design document 001: write_both_read_old",
    breaks=TabletCluster.clients_write_while_tablets_move,
    budgets={TabletCluster.crashes: 0, TabletMigration.failures: 0, TabletCluster.reads: 0},
)
class WritesWaitForTheStream(TabletCluster):
    """A tablet that is streamed takes no writes."""

    @action(by=CLIENT, spends=TabletCluster.writes)
    def begin_write(self, n: Term[Node], t: Term[Tablet]) -> None:
        """A client writes to a tablet that is not streamed, as far as the node knows."""
        super().begin_write(n, t)
        require(self.view[n][t].stage != Stage.streaming, "the tablet is not streamed")


@known_bug(
    "001-68",
    INDEPENDENTLY,
    breaks=TabletCluster.tablets_advance_independently,
    sizes={Tablet: 2},
    budgets={**NO_CLIENTS, TabletCluster.migrations: 2},
)
class TabletsAdvanceInStep(TabletCluster):
    """The coordinator moved its tablets on together: what had streamed waited for those that still did."""

    @action(by=COORDINATOR, fair=WEAK)
    def use_new(self, t: Term[Tablet]) -> None:
        """No read uses the old replicas, and no other tablet streams."""
        super().use_new(t)
        streamed = every(self.tablets[u].stage != Stage.streaming for u in Tablet)
        require(streamed, "no other tablet streams")


@known_bug(
    "001-69",
    INDEPENDENTLY,
    breaks=TabletCluster.barriers_wait_for_no_stream,
    sizes={Tablet: 2},
    budgets={**NO_CLIENTS, TabletCluster.migrations: 2},
)
class TheCoordinatorWaitsForAStream(TabletCluster):
    """The coordinator waited for the stream of one tablet before it ran the barrier of the others."""

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self, t: Term[Tablet]) -> None:
        """Every node has answered, and nothing streams."""
        super().pass_barrier(t)
        streamed = every(self.tablets[u].stage != Stage.streaming for u in Tablet)
        require(streamed, "no tablet streams")


@known_bug(
    "001-70",
    INDEPENDENTLY,
    breaks=TabletCluster.tablets_are_rebuilt_independently,
    sizes={Tablet: 2},
    budgets={**NO_CLIENTS, TabletCluster.rebuilds: 1},
)
class RebuildsWaitForRest(TabletCluster):
    """A tablet got no replica more before all others had come to rest."""

    @action(by=COORDINATOR, spends=TabletCluster.rebuilds)
    def start_rebuild(self, t: Term[Tablet], pending: Term[Node], kind: Term[Kind]) -> None:
        """The tablet gets one replica more, when no tablet is in transition."""
        super().start_rebuild(t, pending, kind)
        at_rest = every((u == t) | (self.tablets[u].stage == Stage.none) for u in Tablet)
        require(at_rest, "no other tablet is in transition")


@known_bug(
    "001-71",
    'design document 001: "When a request is issued to a node the entry is added to the map"',
    breaks=TabletCluster.topology_changes_are_requested_at_any_time,
    budgets={**NO_CLIENTS, TabletCluster.topology_changes: 1},
)
class RequestsAreRefusedWhileTabletsMove(TabletCluster):
    """A node was refused while a tablet was streamed, and as it did not wait, the balancer moved the next one."""

    @action(by=OPERATOR, spends=TabletCluster.topology_changes)
    def request_topology_change(self) -> None:
        """A node asks to join or leave in a cluster in which nothing is streamed."""
        super().request_topology_change()
        streamed = some(self.tablets[t].stage == Stage.streaming for t in Tablet)
        require(~streamed, "nothing is streamed")


@known_bug(
    "001-72",
    'design document 001, write_both_read_old: "Writes are going to both new and old replicas"',
    breaks=TabletCluster.writes_are_stored_while_tablets_move,
    budgets={**NO_FAULTS, TabletCluster.reads: 0},
)
class ThePendingReplicaTakesNoWrites(TabletCluster):
    """A replica took no writes while it streamed: each that came meanwhile timed out."""

    @action(fair=WEAK)
    def store_write(self, n: Term[Node], r: Term[Node], t: Term[Tablet]) -> None:
        """Replica `r` stores the write, unless it streams."""
        super().store_write(n, r, t)
        streams = (self.view[r][t].stage == Stage.streaming) & ~self.view[r][t].replicas.has(r)
        require(~streams, "the replica does not stream")


@known_bug(
    "001-73",
    "design document 001, stage 3: writes are executed on behalf of successful requests",
    breaks=TabletCluster.writes_succeed_while_tablets_move,
    budgets={**NO_FAULTS, TabletCluster.reads: 0},
)
class WritesAreAcknowledgedAtRest(TabletCluster):
    """A write that all replicas had stored was acknowledged when the migration had ended: most had timed out by then."""

    @action(fair=WEAK)
    def acknowledge_write(self, n: Term[Node], t: Term[Tablet]) -> None:
        """All replicas have answered, and the tablet is at rest, as far as the node knows."""
        super().acknowledge_write(n, t)
        require(self.view[n][t].stage == Stage.none, "the tablet is at rest")


@known_bug(
    "001-74",
    "design document 001, stage 5: read requests complete successfully",
    breaks=TabletCluster.reads_succeed_while_tablets_move,
    budgets={**NO_FAULTS, TabletCluster.writes: 0},
)
class ASourceAnswersNoReads(TabletCluster):
    """The replica that streams to another one answered no read before it had sent its rows."""

    @action(fair=WEAK)
    def answer_read(self, n: Term[Node], r: Term[Node], t: Term[Tablet]) -> None:
        """Replica `r` answers the read, unless it is streamed from."""
        super().answer_read(n, r, t)
        require(self.view[r][t].stage != Stage.streaming, "the replica sends no rows")


@known_bug(
    "001-137",
    INDEPENDENTLY,
    breaks=TabletCluster.barriers_wait_for_no_stream,
    budgets={TabletCluster.crashes: 0, TabletMigration.failures: 0},
)
class BarriersWaitForWhatBeganSince(TabletCluster):
    """A barrier waited for requests of its own version, too: while clients wrote without a pause, no tablet moved on."""

    def _is_older(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        return self.request[n].tablet == t


@known_bug(
    "001-138",
    INDEPENDENTLY,
    breaks=TabletCluster.barriers_wait_for_no_stream,
    budgets={TabletCluster.reads: 0, TabletMigration.failures: 0},
)
class TabletsWaitForWhatIsGivenUp(TabletCluster):
    """A barrier waited for a write that its coordinator had given up, until nothing of it was on the wire."""

    def _acknowledges_barrier(self, n: Term[Node], t: Term[Tablet]) -> Bool:
        given_up = self._is_older(n, t) & self.request[n].abandoned
        return super()._acknowledges_barrier(n, t) & (self.excluded.has(n) | ~given_up)


@known_bug(
    "001-203",
    INDEPENDENTLY,
    breaks=TabletCluster.tablets_are_repaired_independently,
    sizes={Tablet: 2},
    budgets={**NO_CLIENTS, TabletCluster.repairs: 1},
)
class RepairsWaitForRest(TabletCluster):
    """A tablet was repaired when all others had come to rest: under a balancer, never."""

    @action(by=OPERATOR, spends=TabletCluster.repairs)
    def start_repair(self, t: Term[Tablet]) -> None:
        """The operator asks for a repair, when no tablet is in transition."""
        super().start_repair(t)
        at_rest = every(self.tablets[u].stage == Stage.none for u in Tablet)
        require(at_rest, "no tablet is in transition")


@known_bug(
    "001-204",
    'design document 001, write_both_read_old: "Writes are going to both new and old replicas"',
    breaks=TabletCluster.backups_are_loaded_while_tablets_move,
    budgets={**NO_CLIENTS, TabletCluster.loads: 1},
)
class BackupsAreLoadedAtRest(TabletCluster):
    """Rows of a backup were refused by a node that knew the tablet to be in transition."""

    @action(by=CLIENT, spends=TabletCluster.loads)
    def begin_load(self, n: Term[Node], t: Term[Tablet]) -> None:
        """Load-and-stream, into a tablet at rest."""
        super().begin_load(n, t)
        require(self.view[n][t].stage == Stage.none, "the tablet is at rest")


@known_bug(
    "001-205",
    INDEPENDENTLY,
    breaks=TabletCluster.rows_are_rewritten_while_tablets_move,
    budgets={**NO_FAULTS, TabletCluster.reads: 0, TabletCluster.compactions: 1},
)
class NothingIsRewrittenWhileItStreams(TabletCluster):
    """A replica that knew its tablet to be streamed rewrote nothing: a split of it waited for the end."""

    @action(spends=TabletCluster.compactions)
    def begin_compaction(self, t: Term[Tablet], n: Term[Node]) -> None:
        """A node rewrites what does not stream."""
        super().begin_compaction(t, n)
        require(self.view[n][t].stage != Stage.streaming, "the tablet does not stream")


@known_bug(
    "001-206",
    ALIVE,
    breaks=TabletCluster.dead_nodes_are_given_up_at_any_time,
    budgets={TabletCluster.writes: 0, TabletCluster.reads: 0},
)
class TheDeadAreGivenUpAtRest(TabletCluster):
    """A dead node was given up when no tablet was streamed: those that were had to wait for it."""

    @action(by=OPERATOR)
    def exclude(self, n: Term[Node]) -> None:
        """The node is gone for good, and no tablet is streamed."""
        super().exclude(n)
        streamed = some(self.tablets[t].stage == Stage.streaming for t in Tablet)
        require(~streamed, "nothing is streamed")


@known_bug(
    "001-207",
    'design document 001: "it means that expected invariants about cluster-wide state … hold"',
    breaks=TabletCluster.barriers_fail_where_a_node_is_down,
    budgets={TabletCluster.writes: 0, TabletCluster.reads: 0},
    sizes={Node: 3},
)
class OnlyReplicasFailABarrier(TabletCluster):
    """A barrier was taken for failed if a replica was down: of any other node that was, it waited for ever."""

    @action(by=COORDINATOR)
    def fail_barrier(self, t: Term[Tablet]) -> None:
        """A replica does not answer the barrier."""
        super().fail_barrier(t)
        replicas = some(self.down.has(n) for n in self.replicas[t] | self.next[t])
        require(replicas, "a replica is down")


@known_bug(
    "001-388",
    INDEPENDENTLY,
    breaks="tablets.what_failed_is_tried_again",
    sizes={Tablet: 2},
    budgets=TWO_MIGRATIONS,
)
class WhatFailedIsTriedAgainWhenOthersRest(TabletCluster):
    """An action that had failed was tried again when no other tablet was in transition, as failures were laid to load: two
    that had failed waited for each other.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def retry_operation(self, t: Term[Tablet]) -> None:
        """The coordinator tries again, if nothing else is going on."""
        alone = every((o == t) | (self.tablets[o].kind.is_none()) for o in Tablet)
        require(alone, "no other tablet is in transition")
        self.tablets[t].retry_operation()


@known_bug(
    "001-389",
    INDEPENDENTLY,
    breaks="tablets.barriers_that_failed_are_tried_again",
    sizes={Tablet: 2},
    budgets=TWO_MIGRATIONS,
)
class BarriersAreTriedAgainWhenNothingStreams(TabletCluster):
    """A barrier that had failed was tried again when no action ran, of whichever tablet: beside long streams a tablet that
    was ready for its next stage waited for hours.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def retry_barrier(self, t: Term[Tablet]) -> None:
        """The coordinator tries the barrier again, if nothing runs."""
        quiet = every(self.tablets[o].operation != Progress.running for o in Tablet)
        require(quiet, "no action runs")
        self.tablets[t].retry_barrier()


@known_bug(
    "M02",
    'design document 001: "Tablets are migrated in parallel and independently"',
    breaks=(
        TabletCluster.tablets_are_migrated_independently,
        TabletCluster.two_tablets_stream_at_once,
    ),
    sizes={Tablet: 2},
    budgets=TWO_TABLETS,
)
class OneMigrationAtATime(TabletCluster):
    """A migration begins when all other tablets are at rest."""

    def _may_start(self) -> None:
        super()._may_start()
        at_rest = every(self.tablets[t].stage == Stage.none for t in Tablet)
        require(at_rest, "no other tablet is in transition")


@known_bug(
    "M05",
    'design document 001: tablets are migrated "independently"',
    breaks=TabletCluster.tablets_are_migrated_independently,
    sizes={Tablet: 2},
    budgets=TWO_TABLETS,
)
class MigrationsWaitForCleanups(TabletCluster):
    """No migration begins while the replica that another tablet has left is cleaned up."""

    def _may_start(self) -> None:
        super()._may_start()
        cleaned = every(self.tablets[t].stage != Stage.cleanup for t in Tablet)
        require(cleaned, "no other tablet is cleaned up")


@known_bug(
    "001-516",
    INDEPENDENTLY,
    breaks=TabletCluster.tablets_advance_independently,
    sizes={Tablet: 2},
    budgets=TWO_TABLETS,
)
class TabletsComeToRestTogether(TabletCluster):
    """The last commit of a migration waited until every other tablet of the track had got as far as to its new
    replicas.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def finish(self, t: Term[Tablet]) -> None:
        """The migration is done, and all others have come as far."""
        through = (Stage.none, Stage.use_new, Stage.cleanup, Stage.end_migration)
        others = every((o == t) | self.tablets[o].stage.any_of(*through) for o in Tablet)
        require(others, "all other tablets use their new replicas")
        super().finish(t)


@known_bug(
    "001-517",
    INDEPENDENTLY,
    breaks=TabletCluster.replicas_are_cleaned_up_independently,
    sizes={Tablet: 2},
    budgets={**NO_FAULTS, TabletCluster.reads: 0, TabletCluster.compactions: 1},
)
class CleanupsWaitForTheWholeNode(TabletCluster):
    """A replica's rows were removed when nothing was compacted on its node, of whichever tablet."""

    def _waits_for_local_users(self, t: Term[Tablet], n: Term[Node]) -> None:
        idle = every(self.compacting[other][n] == 0 for other in Tablet)
        require(idle, "nothing is compacted on the node")


@known_bug(
    "001-518",
    'design document 001, stage 2: replicas "see the transition info … via local token metadata"',
    breaks=TabletCluster.nodes_learn_while_clients_wait,
    budgets={**NO_FAULTS, TabletCluster.reads: 0},
)
class WhoCoordinatesDoesNotLearn(TabletCluster):
    """A node applied what was committed between two requests: one that always had one to coordinate never learned."""

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """The node coordinates nothing, and applies what is committed."""
        super().learn(n)
        require(self.request[n].tablet.is_none(), "no request is on its way")


@known_bug(
    "001-519",
    'design document 001, stage 3: "by the means of coordinator replication or by the means of streaming"',
    breaks=TabletCluster.rows_are_streamed_while_clients_write,
    budgets={**NO_FAULTS, TabletCluster.reads: 0},
)
class StreamsWaitForClients(TabletCluster):
    """A tablet's rows were sent when no client was writing to it, or reading from it."""

    @action(fair=WEAK)
    def send_chunk(self, t: Term[Tablet], source: Term[Node], target: Term[Node]) -> None:
        """A replica sends its rows, while the tablet is not in use."""
        super().send_chunk(t, source, target)
        require(every(self.request[n].tablet != t for n in Node), "no client uses the tablet")


@known_bug(
    "001-540",
    INDEPENDENTLY,
    breaks=TabletCluster.tablets_advance_independently,
    sizes={Tablet: 2},
    budgets={**TWO_TABLETS, TabletMigration.failures: 1},
)
class TabletsAreMovedBackOneByOne(TabletCluster):
    """A migration that had failed was undone when no other tablet was streamed any more: the balancer always found one
    that was.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def revert(self, t: Term[Tablet]) -> None:
        """The pending replica is cleaned up, and nothing is streamed."""
        super().revert(t)
        require(every(self.tablets[o].stage != Stage.streaming for o in Tablet), "nothing streams")


@known_bug(
    "001-541",
    'design document 001, stage 3: "by the means of coordinator replication or by the means of streaming"',
    breaks=TabletCluster.no_step_waits_for_clients,
    budgets={**NO_FAULTS, TabletCluster.reads: 0},
)
class StreamsAreOverWhenNobodyWrites(TabletCluster):
    """That all rows had been sent was heard when no write to the tablet was on its way: one to which clients wrote all
    the time stayed in its stage.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def finish_streaming(self, t: Term[Tablet]) -> None:
        """The pending replica answers, while nobody writes to the tablet."""
        quiet = every((self.request[n].tablet != t) | ~self.request[n].write for n in Node)
        require(quiet, "nobody writes to the tablet")
        super().finish_streaming(t)


@known_bug(
    "001-701",
    INDEPENDENTLY,
    breaks=TabletCluster.tablets_advance_independently,
    sizes={Tablet: 2},
    budgets=TWO_TABLETS,
)
class CleanupsComeOneByOne(TabletCluster):
    """A replica was asked to clean up when no other tablet was being cleaned up: of many that had moved most kept the rows of
    two replicas.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def ask_to_clean_up(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The replica is asked to remove its rows, and no other one is."""
        alone = every((o == t) | self.cleanup_at[o].is_none() for o in Tablet)
        require(alone, "no other tablet is cleaned up")
        super().ask_to_clean_up(t, n)


@known_bug(
    "001-702",
    'design document 001, stage 6: "No write request will reach" the replica that leaves',
    breaks=TabletCluster.no_step_waits_for_clients,
    budgets={**NO_FAULTS, TabletCluster.reads: 0},
)
class CleanupsBeginWhenNobodyWrites(TabletCluster):
    """A replica that had left was asked to clean up when no request to the tablet was on its way, also to its new replica."""

    @action(by=COORDINATOR, fair=WEAK)
    def ask_to_clean_up(self, t: Term[Tablet], n: Term[Node]) -> None:
        """The replica is asked to remove its rows, while nobody uses the tablet."""
        require(every(self.request[m].tablet != t for m in Node), "no client uses the tablet")
        super().ask_to_clean_up(t, n)


@known_bug(
    "001-703",
    'design document 001, stage 3: "by the means of coordinator replication or by the means of streaming"',
    breaks=TabletCluster.no_step_waits_for_clients,
    budgets={**NO_FAULTS, TabletCluster.reads: 0, TabletCluster.compactions: 1},
)
class StreamsWaitForCompactions(TabletCluster):
    """A tablet was streamed when nothing was compacted on any node: to split a large one held up all that moved."""

    @action(by=COORDINATOR, fair=WEAK)
    def ask_to_stream(self, t: Term[Tablet], pending: Term[Node]) -> None:
        """The pending replica streams, while no node compacts."""
        idle = every(self.compacting[o][n] == 0 for o in Tablet for n in Node)
        require(idle, "nothing is compacted")
        super().ask_to_stream(t, pending)


@known_bug(
    "001-704",
    INDEPENDENTLY,
    breaks=TabletCluster.tablets_advance_independently,
    sizes={Tablet: 2},
    budgets={**NO_CLIENTS, TabletCluster.rebuilds: 2, TabletCluster.migrations: 0},
)
class RepairsRunOneByOne(TabletCluster):
    """The repair before a rebuild began when no action of another tablet ran."""

    @action(by=COORDINATOR, fair=WEAK)
    def run_repair(self, t: Term[Tablet]) -> None:
        """The replicas are asked to repair, and nothing else runs."""
        alone = every((o == t) | (self.tablets[o].operation != Progress.running) for o in Tablet)
        require(alone, "no other action runs")
        super().run_repair(t)


BUGS = known_bugs_in(globals())
