"""Bugs of ScyllaDB's global barrier, and of the fence that it moves."""

from __future__ import annotations

from stagewright.machines.scylladb import cluster
from stagewright.machines.scylladb.topology.control.topology_record import COORDINATOR
from stagewright.machines.scylladb.topology.fencing import Fencing, Node, NodeState, Phase
from stagewright.machines.scylladb.topology.shared_fence import LAST_VERSION, Kind, SharedFence
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_states import Barrier
from stagewright.spec import Bool, Fairness, Number, Term, action, choose, number, require
from stagewright.spec.known_bugs import NotFound, known_bug, known_bugs_in, released_bug

QUIET = {Fencing.bumps: 0, Fencing.cleanups: 0}

BARRIER_OF_A_STAGE_PASSES_UNDRAINED = released_bug(
    "T04",
    "scylladb #26864, #26375",
    "A node fails to drain, and the barrier of a tablet's stage falls back on the fence: what the node runs "
    "under the old version goes on beside the next stages, with locks on shards that these do not lock.",
    machine=Fencing,
    profile="scylla-2025.4",
    breaks=(Fencing.transactions_exclude_each_other, Fencing.nothing_older_runs_after_the_barrier),
    mended_in="scylla-2026.2",
    budgets={**QUIET, Fencing.writes: 0, Fencing.transactions: 2},
)


@known_bug(
    "T07",
    "scylladb #18699",
    breaks=Fencing.current_requests_are_not_fenced_out,
    budgets={Fencing.cleanups: 0, Fencing.failures: 0},
)
class FenceMovesToTheLatestVersion(Fencing):
    """`move_tablet` commits a version while a barrier runs; the fence moves to that version, and not to the
    one that was current when the barrier began. Requests of the latter, which nobody drained, are refused.
    """

    def _new_fence(self) -> Number:
        return self.version


@known_bug(
    "T09",
    "scylladb #15804",
    breaks=Fencing.no_coordinator_is_older_than_the_barrier,
    budgets={**QUIET, Fencing.failures: 0, Fencing.decommissions: 1},
)
class DecommissioningNodesAreNotAsked(Fencing):
    """Barriers go to normal nodes alone; one that is decommissioning goes on coordinating requests under
    its old version.
    """

    def _is_asked(self, n: Term[Node]) -> Bool:
        return super()._is_asked(n) & (self.node[n] == NodeState.normal)


@known_bug(
    "T10",
    "scylladb #17108",
    breaks=Fencing.fence_holds_on_every_replica,
    budgets={**QUIET, Fencing.decommissions: 1},
)
class FallbackLeavesOutDecommissioningNodes(Fencing):
    """Draining fails, and the second command, which is to make all replicas learn the fence, does not go to
    the node that is decommissioning: it stores a stale write.
    """

    def _is_asked(self, n: Term[Node]) -> Bool:
        drains = self.phase == Phase.draining
        return super()._is_asked(n) & (drains | (self.node[n] == NodeState.normal))


SHARED = "design document 001: one infrastructure for fencing"


@known_bug(
    "F01",
    SHARED,
    breaks=SharedFence.reads_see_acknowledged_writes,
    budgets={SharedFence.failures: 0},
)
class StagesOfTabletsHaveNoVersion(SharedFence):
    """Only a change of the ring committed a version: the stage of a tablet was taken for known as soon as it was
    committed.
    """

    def _commit(self, k: Term[Kind]) -> None:
        committed = choose(k == Kind.tablets, self.version, self.version + 1)
        self.since[k] = committed
        self.version = committed


@known_bug("F02", SHARED, breaks=SharedFence.reads_see_acknowledged_writes)
class TwoFences(SharedFence):
    """Requests of tablets had a fence of their own. A barrier that fell back on the fence moved that of the last
    change, and the other change went on while replicas stored what was older.
    """

    of_tablets = number(0, LAST_VERSION)

    def _pass(self) -> None:
        last = self.since[Kind.tablets] == self.barrier
        self.of_tablets = choose(last, self.barrier, self.of_tablets)
        super()._pass()

    def _passes_the_fence(self, r: Term[cluster.Node]) -> Bool:
        of_vnodes = (self.request.kind == Kind.vnodes) & super()._passes_the_fence(r)
        return of_vnodes | (
            (self.request.kind == Kind.tablets) & (self.request.version >= self.of_tablets)
        )


@known_bug(
    "001-110",
    'design document 001: "make sure that no reads that started before this point exist in the system"',
    breaks=TopologyControl.older_versions_are_fenced,
    budgets={TopologyControl.requests: 1},
)
class AFailedBarrierMovesNoFence(TopologyControl):
    """A barrier failed, and the coordinator went on after ring_delay without a fence: a node that was slow, and not down,
    read from replicas that got no writes any more.
    """

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def wait_ring_delay(self) -> None:
        """The failed barrier is put up with."""
        require(self.barrier == Barrier.failed, "barrier failed")
        require(self._waives(), "there is no way back")
        self.barrier = Barrier.waived


BUGS = known_bugs_in(globals())
NOT_FOUND: tuple[NotFound, ...] = ()
