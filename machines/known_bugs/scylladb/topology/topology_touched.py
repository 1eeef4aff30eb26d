"""Mistakes by which what goes on is stopped, or done again, for what is committed beside it."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.control.topology_record import (
    COORDINATOR,
    OPERATOR,
    PUBLISHER,
)
from stagewright.machines.scylladb.topology.fencing import (
    COORDINATOR as BARRIER_COORDINATOR,
    OPERATOR as BARRIER_OPERATOR,
    Fencing,
    Node as FencedNode,
    Phase,
    Purpose,
)
from stagewright.machines.scylladb.topology.shared_fence import Kind, SharedFence, Stage
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_states import TransitionState as T, Work
from stagewright.spec import Fairness, Term, action, choose, every, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'
LEARNS = 'design document 001: "After the entire cluster learns about it"'
ISSUED = 'design document 001: "When a request is issued to a node the entry is added to the map"'


# -- barriers --------------------------------------------------------------------------------------------


@known_bug(
    "001-391",
    LEARNS,
    breaks=Fencing.barriers_are_for_what_is_committed_by_then,
    budgets={Fencing.cleanups: 0, Fencing.failures: 0, Fencing.failovers: 1},
)
class BarriersAreTriedAgainForTheirOldVersion(Fencing):
    """A coordinator that found a barrier without an end ran it again, for the version that it had been for: what another
    change had committed meanwhile was taken for learned.
    """

    def _forget_barrier(self) -> None:
        self.purpose = Purpose.tablets
        self.drain_failed = False

    @action(by=BARRIER_COORDINATOR)
    def begin_barrier(self, purpose: Term[Purpose]) -> None:
        """The coordinator sends `barrier_and_drain`, for the version that is not fenced yet."""
        require(self.phase == Phase.none, "the coordinator is free")
        failed = self.barrier_version > self.fence
        self.phase = Phase.draining
        self.barrier_version = choose(failed, self.barrier_version, self.version)
        self.purpose = purpose
        self._send_command()


@known_bug(
    "001-392",
    'design document 001, "still alive owners": who is given up may live on',
    breaks=Fencing.excluded_nodes_are_left_alone,
    budgets={Fencing.bumps: 0, Fencing.cleanups: 0, Fencing.failures: 0, Fencing.exclusions: 1},
)
class WhoIsGivenUpHasSentNothing(Fencing):
    """With a node that was given up its requests were forgotten, and a replica that executed one released its locks: another
    transaction ran on the row beside it.
    """

    @action(by=BARRIER_OPERATOR, spends=Fencing.exclusions)
    def exclude(self, n: Term[FencedNode]) -> None:
        """The operator declares a node gone for good."""
        super().exclude(n)
        self._forget(n)


@known_bug(
    "001-393",
    INDEPENDENTLY,
    breaks=SharedFence.barriers_end_by_passing,
    budgets={SharedFence.failures: 0},
)
class CommitsStopTheBarrier(SharedFence):
    """A barrier that ran was begun anew with each commit, so that it was for the newest version: as long as tablets changed
    their stages, no node joined.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def advance(self, k: Term[Kind]) -> None:
        """The next stage is committed; the barrier of the moment is out of date."""
        super().advance(k)
        self.barrier = 0


@known_bug(
    "001-394",
    INDEPENDENTLY,
    breaks=SharedFence.barriers_wait_for_no_stream,
    budgets={SharedFence.failures: 0, SharedFence.writes: 0},
)
class BarriersWaitForStreams(SharedFence):
    """A barrier was begun when nothing streamed, of either kind: while a node was streamed to, no tablet came to its next
    stage.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def begin_barrier(self) -> None:
        """`barrier_and_drain` goes to every node, when whatever may stream has streamed."""
        quiet = every(
            (self.stage[k] != Stage.write_both_read_old)
            | self.streamed.has(k)
            | (self.passed < self.since[k])
            for k in Kind
        )
        require(quiet, "nothing streams")
        super().begin_barrier()


# -- the topology ------------------------------------------------------------------------------------------


@known_bug(
    "001-395",
    'design document 001: "operations that don\'t affect any specific node but the entire cluster"',
    breaks=TopologyControl.requests_on_tables_open_a_session,
    budgets={TopologyControl.requests: 1},
)
class NewCoordinatorsTruncateAgain(TopologyControl):
    """A coordinator that found a TRUNCATE opened its session, as if nobody had worked for it yet: what clients had written
    since the table was truncated was removed as well.
    """

    @action(by=COORDINATOR, spends=TopologyControl.faults)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and begins with the request."""
        super().fail_over()
        tables = self.transition_state.any_of(T.truncate_table, T.snapshot_tables)
        self.session = self.session | tables


@known_bug(
    "001-396",
    ISSUED,
    breaks=TopologyControl.requests_change_nothing_that_goes_on,
    budgets={TopologyControl.requests: 1},
)
class AbortsStopTheDrain(TopologyControl):
    """With a request to leave that was aborted the transitions of the tablets went that were moved for it: a replica that had
    been streamed to stayed where nobody knew of it.
    """

    @action(by=OPERATOR, spends=TopologyControl.faults)
    def abort(self, n: Term[Node]) -> None:
        """The operator aborts a request to leave; nothing need be drained any more."""
        super().abort(n)
        drains = self.tablet_work == Work.draining
        self.tablet_work = choose(drains, None, self.tablet_work)


@known_bug(
    "001-397",
    'design document 001: "we need to publish it to user-facing description tables"',
    breaks=TopologyControl.generations_are_published_at_any_time,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 0},
)
class GenerationsArePublishedAtRest(TopologyControl):
    """The publisher waited for the topology to be at rest: while a node streamed for hours, its generation was in use, and
    no reader of the log knew its streams.
    """

    @action(by=PUBLISHER, fair=WEAK)
    def publish_generation(self) -> None:
        """The generation is written to the tables that users read, when nothing else goes on."""
        self._nothing_goes_on()
        super().publish_generation()


BUGS = known_bugs_in(globals())
