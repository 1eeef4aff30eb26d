"""Mistakes by which what was sent, named or begun does not stay what it was, or is waited for wrongly."""

from __future__ import annotations

from stagewright.machines.scylladb import cluster
from stagewright.machines.scylladb.cdc.cdc_publication import Generation
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.topology.control.topology_record import (
    COORDINATOR as COORDINATOR_OF_NODES,
)
from stagewright.machines.scylladb.topology.fencing import (
    COORDINATOR,
    NETWORK,
    Fencing,
    Node,
    Phase,
    Purpose,
)
from stagewright.machines.scylladb.topology.group0 import MEMBER, Group0, Member
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_rebuild import (
    OPERATOR,
    Datacenter,
    TopologyRebuild,
)
from stagewright.machines.scylladb.topology.topology_states import NodeState
from stagewright.machines.systems.topology_change import (
    OPERATOR as OPERATOR_OF_JOINS,
    TIME,
    TopologyChange,
)
from stagewright.spec import Fairness, Term, action, choose, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
STARTED = 'design document 001: "no reads that started before this point exist in the system"'
LEARNS = 'design document 001: "After the entire cluster learns about it"'


# -- barriers --------------------------------------------------------------------------------------------


@known_bug(
    "001-337",
    STARTED,
    breaks=Fencing.what_began_before_is_waited_for,
    budgets={Fencing.bumps: 0, Fencing.cleanups: 0, Fencing.failures: 0},
)
class TheFenceMovesFirst(Fencing):
    """The fence moved when a barrier began: what was on its way was refused, though each node would have drained it."""

    @action(by=COORDINATOR)
    def begin_barrier(self, purpose: Term[Purpose]) -> None:
        """The fence is committed, and the command sent."""
        super().begin_barrier(purpose)
        self.fence = self.version


@known_bug(
    "001-338",
    "design document 001, stage 6: no write request reaches a replica which does not belong to the new replica set",
    breaks=Fencing.requests_keep_their_version,
    budgets={Fencing.cleanups: 0, Fencing.failures: 0},
)
class RequestsTakeTheVersionOfNow(Fencing):
    """A node that had learned of a version took it for the request that it coordinated: the barrier did not wait for what
    was on its way to the replicas of before, and no fence refused it.
    """

    def _apply(self, n: Term[Node]) -> None:
        super()._apply(n)
        held = self.request[n].version
        self.request[n].version = choose(held > 0, self.version, 0)


@known_bug(
    "001-339",
    LEARNS,
    breaks=Fencing.barriers_pass_once_all_have_answered,
    budgets={Fencing.writes: 0, Fencing.bumps: 0, Fencing.cleanups: 0, Fencing.failures: 2},
)
class AFailedBarrierHasPassed(Fencing):
    """The second command failed, too, and the coordinator went on as if all had drained."""

    @action(by=NETWORK, spends=Fencing.failures)
    def fail_to_inform(self) -> None:
        """A node does not answer the second command either: never mind."""
        require(self.phase == Phase.informing, "phase is informing")
        self.phase = Phase.done
        self.drain_failed = False


@known_bug(
    "001-340",
    LEARNS,
    breaks=Fencing.stages_leave_nothing_older_behind,
    budgets={Fencing.cleanups: 0, Fencing.failures: 0, Fencing.failovers: 1},
)
class TheBarrierGoesOnForALaterVersion(Fencing):
    """A new coordinator went on with the barrier of its predecessor, for the version that it found: nodes had answered for
    an older one.
    """

    @action(by=COORDINATOR, spends=Fencing.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and takes over what runs."""
        require(self.phase != Phase.none, "a barrier runs")
        self.barrier_version = self.version


# -- what is asked for -----------------------------------------------------------------------------------


@known_bug(
    "001-341",
    'design document 001: "atomically form the perspective of group0 state machine"',
    breaks=Group0.a_change_is_made_once,
    budgets={Group0.elections: 1, Group0.changes: 1},
)
class WhatMayBeMadeIsMadeAgain(Group0):
    """A member that did not know whether its change was made took another guard and sent it again: it was made twice."""

    @action(by=MEMBER)
    def give_up(self, m: Term[Member]) -> None:
        """commit_status_unknown: it tries once more, under the state of now."""
        require(self.change[m].command > 0, "it wants to make a change")
        self.change[m].read = self._applied_state(m)
        self.change[m].sent = False


@known_bug(
    "001-342",
    'design document 001: `rebuild_option`, "if the node is being rebuild contains datacenter name"',
    breaks=TopologyRebuild.each_node_has_its_own_source,
    budgets={
        TopologyRebuild.losses: 1,
        TopologyRebuild.crashes: 0,
        TopologyRebuild.failovers: 0,
    },
)
class OneSourceForAll(TopologyRebuild):
    """The source that an operator named for one node was kept for the cluster: others streamed from it, too."""

    @action(by=OPERATOR, spends=TopologyRebuild.losses)
    def lose_volume_naming(self, n: Term[cluster.Node], source: Term[Datacenter]) -> None:
        """A node comes back with an empty volume; the operator names the datacenter to stream from."""
        self._lose_rows(n)
        for m in cluster.Node:
            self.rebuild_option[m] = source


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
    "001-347",
    "design document 001: each node removes the rows of the ranges that it has lost",
    breaks=TopologyControl.rows_are_removed_when_nothing_can_write_them,
    sizes={cluster.Node: 3},
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 0},
)
class OneNodeCleansUpForAll(TopologyControl):
    """When the first node had removed its rows, none was taken to hold any: the others kept theirs."""

    @action(by=COORDINATOR_OF_NODES, fair=WEAK)
    def clean_up(self, n: Term[cluster.Node]) -> None:
        """A node removes the rows of ranges which it has lost: the cleanup is done."""
        require(self.is_at_rest(), "the topology is at rest")
        require(self.cleanup_needed.has(n) & ~self.down.has(n), "node holds rows of lost ranges")
        require(self.fence_version == self.version, "older requests are fenced")
        for m in cluster.Node:
            self.cleanup_needed.discard(m)


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

    @action(by=OPERATOR_OF_JOINS, spends=TopologyChange.joins)
    def ask_to_join(self) -> None:
        """A new node asks to join: a migration that has only begun leads nowhere."""
        super().ask_to_join()
        begun = self.tablet.stage == Stage.allow_write_both_read_old
        self.pending = choose(begun, None, self.pending)


BUGS = known_bugs_in(globals())
