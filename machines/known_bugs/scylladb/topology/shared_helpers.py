"""Mistakes in helpers that several steps of the topology share, such as who waits, who leaves, or what is a quorum.

A promise that calls the same helper errs with it. Those that catch these say it in words of their own.
"""

from __future__ import annotations

from stagewright.machines.scylladb.cdc.cdc_publication import Generation
from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.fencing import Fencing, Node as Member
from stagewright.machines.scylladb.topology.group0 import Group0, Member as Voter
from stagewright.machines.scylladb.topology.topology_rebuild import Datacenter, TopologyRebuild
from stagewright.machines.scylladb.topology.topology_sessions import TopologySessions
from stagewright.machines.scylladb.topology.topology_states import NodeState
from stagewright.machines.scylladb.topology.topology_transition import TopologyTransition
from stagewright.machines.systems.topology_change import Logged, Row, TopologyChange
from stagewright.spec import Bool, Number, Term, count, every, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

BARRIER = 'design document 001: "no reads that started before this point exist in the system"'
QUIET = {Fencing.bumps: 0, Fencing.cleanups: 0}
ATOMICALLY = 'design document 001: "All this happens atomically"'


# -- sessions, and the way out of the ring ---------------------------------------------------------------


@known_bug(
    "001-122",
    'design document 001: "When streaming finishes, we move to write_both_read_new state"',
    breaks=TopologySessions.nothing_fails_without_need,
)
class WhoHasNoWorkHasLostIt(TopologySessions):
    """A node without a driver counted as one that had lost it, also before work was sent to it: operations failed at
    once.
    """

    def _is_lost(self) -> Bool:
        return some(~self.driven.has(n) for n in Node)


@known_bug(
    "001-123",
    "design document 001: the order of the transition states",
    breaks=TopologyTransition.who_leaves_leaves_the_ring_first,
)
class OnlyRemovedNodesLeaveTheRing(TopologyTransition):
    """A node that was decommissioned was left as soon as reads were fenced, and went on as if it had its tokens."""

    def _must_leave_ring(self) -> Bool:
        return super()._must_leave_ring() & (self.in_transition == NodeState.removing)


# -- rebuilding ------------------------------------------------------------------------------------------


@known_bug(
    "001-124",
    "design document 001, stage 3: writes are executed on behalf of successful requests",
    breaks=TopologyRebuild.writes_succeed_while_nodes_are_rebuilt,
)
class EachQuorumIsOfTwoDatacenters(TopologyRebuild):
    """EACH_QUORUM took it that each datacenter has nodes: where all of them stood in one, no write succeeded."""

    def _has_quorum(self, dc: Datacenter) -> Bool:
        return super()._has_quorum(dc) & some(self.datacenter[n] == dc for n in Node)


@known_bug(
    "001-125",
    'design document 001, stage 3: writes "will reach CL"',
    breaks=TopologyRebuild.acknowledged_rows_survive_a_loss,
)
class HalfOfTheReplicasAreAQuorum(TopologyRebuild):
    """Of two nodes one was enough to acknowledge a write: when it lost its volume, the row was gone."""

    def _has_quorum(self, dc: Datacenter) -> Bool:
        storing = count((self.datacenter[n] == dc) & self.stored.has(n) for n in Node)
        return storing * 2 >= count(self.datacenter[n] == dc for n in Node)


@known_bug(
    "001-126",
    'design document 001: rebuild_option is "used as a rebuild source"',
    breaks=TopologyRebuild.the_named_datacenter_is_the_source,
    sizes={Node: 3},
    budgets={TopologyRebuild.crashes: 0, TopologyRebuild.failovers: 0},
)
class OneLostNodeMakesAllUnsafe(TopologyRebuild):
    """A datacenter was no safe source while any node had lost its rows, and one always had: the node that was rebuilt.
    What the operator named was ignored.
    """

    def _is_safe(self, dc: Datacenter | Term[Datacenter]) -> Bool:
        return super()._is_safe(dc) & every(~self._is_lost(m) for m in Node)


# -- group0 ----------------------------------------------------------------------------------------------


@known_bug(
    "001-127",
    ATOMICALLY,
    breaks=Group0.a_change_is_refused_for_another_one,
    budgets={Group0.elections: 1, Group0.changes: 1, Group0.voter_changes: 1},
)
class VotersChangeTheState(Group0):
    """A change of the voters wrote a state id, too: whoever had taken a guard before was refused for nothing."""

    def _is_made(self, m: Term[Voter], i: int, state: Number | int) -> Bool:
        return self.log[m][i].read == state


@known_bug(
    "001-128",
    ATOMICALLY,
    breaks=Group0.one_change_follows_another,
    budgets={Group0.elections: 1},
)
class GuardsAreOfTheFirstState(Group0):
    """Whoever took a guard prepared its change under the state of the beginning: after the first one each was refused."""

    def _applied_state(self, m: Term[Voter]) -> Number | int:  # noqa: ARG002
        return 0


@known_bug(
    "001-129",
    ATOMICALLY,
    breaks=Group0.leaders_are_elected,
    budgets={Group0.changes: 0},
)
class WhoOnlyLearnsVotes(Group0):
    """The members that only learn were taken for the voters, and the voters for those that only learn."""

    def _is_voter(self, m: Term[Voter], v: Term[Voter]) -> Bool:
        return ~super()._is_voter(m, v)


# -- barriers --------------------------------------------------------------------------------------------


@known_bug(
    "001-130",
    BARRIER,
    breaks=(
        Fencing.no_coordinator_is_older_than_the_barrier,
        Fencing.stages_leave_nothing_older_behind,
    ),
    budgets={**QUIET, Fencing.failures: 0},
)
class NobodyWaitsForItself(Fencing):
    """A barrier did not wait for a request whose coordinator is its replica, too, since nothing of it is on the wire."""

    def _waits(self, n: Term[Member]) -> Bool:
        return super()._waits(n) & (self.request[n].replica != n)


@known_bug(
    "001-131",
    'design document 001: "expected invariants about cluster-wide state" hold',
    breaks=Fencing.transactions_exclude_each_other,
    budgets={**QUIET, Fencing.failures: 0, Fencing.writes: 0, Fencing.transactions: 2},
)
class ACoordinatorTakesNoLocks(Fencing):
    """A transaction took no locks, and was not waited for, on the replica that coordinated it."""

    def _executes(self, r: Term[Member], n: Term[Member]) -> Bool:
        return super()._executes(r, n) & (r != n)


@known_bug(
    "001-132",
    BARRIER,
    breaks=Fencing.barriers_wait_for_no_request_that_is_given_up,
    budgets={**QUIET, Fencing.failures: 0},
)
class WhatIsGivenUpIsWaitedFor(Fencing):
    """A node that had given a request up kept its version until nothing of it was on its way: barriers took minutes."""

    def _waits(self, n: Term[Member]) -> Bool:
        return self.request[n].replica.is_some()


@known_bug(
    "001-133",
    'design document 001: node operations "can take over the state machine"',
    breaks=Fencing.a_topology_change_goes_on_with_the_fence,
)
class NoBarrierFallsBack(Fencing):
    """Topology changes, too, tried a barrier again until every node had drained: one that hung held them up."""

    def _may_fall_back(self) -> Bool:
        return super()._may_fall_back() & False


# -- a topology change -----------------------------------------------------------------------------------


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


BUGS = known_bugs_in(globals())
