"""Mistakes by which work, or its result, is lost when a second thing happens, or goes with that of somebody else."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import CLIENT, NETWORK, Node
from stagewright.machines.scylladb.topology import (
    fencing,
    topology_coordinator,
    topology_rebuild,
)
from stagewright.machines.scylladb.topology.control.topology_record import COORDINATOR, OPERATOR
from stagewright.machines.scylladb.topology.fencing import Answer, Fencing, Phase, Purpose
from stagewright.machines.scylladb.topology.group0 import LEADER, MEMBER, Group0, Member
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_coordinator import (
    Coordinator,
    TopologyCoordinator,
)
from stagewright.machines.scylladb.topology.topology_rebuild import TopologyRebuild
from stagewright.machines.scylladb.topology.topology_sessions import Session, TopologySessions
from stagewright.machines.scylladb.topology.topology_states import (
    GlobalRequest,
    NodeState,
    Owner,
    Request,
    TransitionState,
)
from stagewright.machines.systems import topology_change
from stagewright.machines.systems.topology_change import COMMIT, TopologyChange
from stagewright.spec import (
    Bool,
    Fairness,
    FlagVar,
    Term,
    action,
    choose,
    count,
    every,
    flag,
    only_when,
    per,
    require,
    set_of,
    some,
)
from stagewright.spec.known_bugs import known_bug, known_bugs_in

WEAK = Fairness.WEAK
IN_THE_MAP = (
    'design document 001: "When a request is issued to a node the entry is added to the map"'
)
SOURCES = 'design document 001: a node that is rebuilt "is streaming data from other replicas"'


# -- after a failover --------------------------------------------------------------------------------------


@known_bug(
    "001-366",
    SOURCES,
    breaks=TopologyRebuild.a_rebuilt_node_has_every_row,
    sizes={Node: 3},
    budgets={TopologyRebuild.losses: 2, TopologyRebuild.crashes: 0},
)
class ABrokenStreamIsForgotten(TopologyRebuild):
    """What had streamed was noted in group0, but not that a source came back empty: the next coordinator went on."""

    @action(by=topology_rebuild.COORDINATOR, spends=TopologyRebuild.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator: it has the rest streamed."""
        self.broken = False


@known_bug(
    "001-367",
    'design document 001: "After the entire cluster learns about it"',
    breaks=(
        Fencing.fence_holds_on_every_replica,
        Fencing.barriers_pass_once_all_have_answered,
        Fencing.answers_say_what_is_so,
    ),
    budgets={Fencing.bumps: 0, Fencing.cleanups: 0, Fencing.failovers: 1},
)
class TheFenceIsFoundCommitted(Fencing):
    """A new coordinator that found the fence committed took the barrier for passed, with nodes that had not learned it."""

    @action(by=fencing.COORDINATOR, spends=Fencing.failovers)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator, and finds where the fence is."""
        found = self.phase == Phase.informing
        self.phase = choose(found, Phase.done, Phase.none)
        self.purpose = choose(found, self.purpose, Purpose.tablets)
        self.barrier_version = choose(found, self.barrier_version, 0)
        self.drain_failed = found & self.drain_failed


@known_bug(
    "001-368",
    'design document 001: "Tablets are migrated in parallel and independently"',
    breaks=(TopologyCoordinator.migrations_end, TopologyCoordinator.the_track_is_left),
    sizes={topology_coordinator.Tablet: 2},
    budgets={
        TopologyCoordinator.requests: 0,
        TopologyCoordinator.failures: 0,
        TopologyCoordinator.migrations: 2,
    },
)
class TheNextLeaderLooksForOneTablet(TopologyCoordinator):
    """A new coordinator took up the one tablet in transition, and nothing where it found two of them."""

    unknown = per(topology_coordinator.Tablet, flag())  # to the coordinator

    @action(by=NETWORK, spends=TopologyCoordinator.failovers)
    def elect(self, c: Term[Coordinator]) -> None:
        """Another node becomes the leader."""
        super().elect(c)
        two = count(self._is_moving(t) for t in topology_coordinator.Tablet) >= 2
        for t in topology_coordinator.Tablet:
            self.unknown[t] = two

    @action(by=topology_coordinator.COORDINATOR, fair=WEAK)
    def do_what_the_stage_asks(
        self, c: Term[Coordinator], t: Term[topology_coordinator.Tablet]
    ) -> None:
        """A barrier or an action runs, for a tablet that the coordinator knows."""
        super().do_what_the_stage_asks(c, t)
        require(~self.unknown[t], "the coordinator knows the tablet")


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


@known_bug(
    "001-382",
    'design document 001, left: "the node left the cluster and group0"',
    breaks=Group0.leaders_are_elected,
    budgets={Group0.changes: 0, Group0.restarts: 1, Group0.voter_changes: 1},
)
class VotersAreThoseOfTheSnapshot(Group0):
    """A member that had restarted took those for voters that its snapshot named, whatever its log said of them since."""

    restarted = set_of(Member)

    @action(by=MEMBER, spends=Group0.restarts)
    def restart(self, m: Term[Member]) -> None:
        """What a member only had in memory is lost."""
        super().restart(m)
        self.restarted.add(m)

    @action(by=LEADER)
    def replicate(self, leader: Term[Member], m: Term[Member]) -> None:
        """A member takes over the leader's log, with the voters that it names."""
        super().replicate(leader, m)
        self.restarted.discard(m)

    def _is_voter(self, m: Term[Member], v: Term[Member]) -> Bool:
        changed = some(entry.voter == v for entry in self.log[m])
        return self.voters_at_first.has(v) != (changed & ~self.restarted.has(m))


# -- after a failure, or beside another change -----------------------------------------------------------------


@known_bug(
    "001-377",
    "design document 001, removing: the cluster goes on with nodes that are alive",
    breaks=(Fencing.barriers_end, Fencing.the_last_stage_can_be_reached),
    budgets={Fencing.bumps: 0, Fencing.exclusions: 1},
)
class TheFenceWaitsForWhoIsGone(Fencing):
    """Nodes that were gone for good did not hold up a drain; but where that had failed, the second command waited for them."""

    def _all_have_acknowledged(self) -> None:
        informs = self.phase == Phase.informing
        answers = every(
            (self.answer[n] == Answer.acknowledged) | ~(self._is_asked(n) | informs)
            for n in fencing.Node
        )
        require(answers, "every node has acknowledged")


@known_bug(
    "001-378",
    'design document 001: "After the entire cluster learns about it"',
    breaks=(
        Fencing.fence_holds_on_every_replica,
        Fencing.barriers_pass_once_all_have_answered,
        Fencing.answers_say_what_is_so,
    ),
    budgets={Fencing.bumps: 0, Fencing.cleanups: 0, Fencing.decommissions: 1},
)
class WhoLeavesNeedNotKnowTheFence(Fencing):
    """The second command of a barrier waited for normal nodes only: one that was leaving stored what all others refused."""

    def _all_have_acknowledged(self) -> None:
        informs = self.phase == Phase.informing
        answers = every(
            (self.answer[n] == Answer.acknowledged)
            | ~self._is_asked(n)
            | (informs & (self.node[n] == fencing.NodeState.decommissioning))
            for n in fencing.Node
        )
        require(answers, "every node has acknowledged")


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


@known_bug(
    "001-380",
    "design document 001: requests that wait are worked on when the one before has ended",
    breaks=(TopologySessions.every_request_ends, TopologySessions.ids_are_used_once),
    sizes={Session: 3},
    budgets={TopologySessions.truncations: 2},
)
class AFailureEmptiesTheQueue(TopologySessions):
    """A TRUNCATE that failed took the one along that waited behind it: its client was never answered."""

    @action(by=COORDINATOR, fair=WEAK)
    def fail_to_truncate(self) -> None:
        """A node that drives the work has restarted: nothing is left to do."""
        super().fail_to_truncate()
        self.queued = None


# -- what whoever asked is told ------------------------------------------------------------------------------


@known_bug(
    "001-372",
    IN_THE_MAP,
    breaks=TopologyControl.results_stay_until_the_node_asks_again,
    budgets={TopologyControl.requests: 1},
)
class ResultsAreForgotten(TopologyControl):
    """What had become of requests was known to the coordinator that had served them: the next one knew of none."""

    @action(by=COORDINATOR, spends=TopologyControl.faults)
    def fail_over(self) -> None:
        """Another node becomes the topology coordinator."""
        super().fail_over()
        for n in Node:
            ended = self.done.has(n) & ~self._in_transition(n)
            self.asked[n] = choose(ended, None, self.asked[n])
            self.error.put(n, self.error.has(n) & ~ended)
            self.done.put(n, self.done.has(n) & ~ended)


@known_bug(
    "001-374",
    IN_THE_MAP,
    breaks=TopologyControl.results_stay_until_the_node_asks_again,
    budgets={TopologyControl.faults: 2, TopologyControl.requests: 1},
    sizes={Node: 3},
)
class ARestartMendsTheResult(TopologyControl):
    """A rebuild that had failed was shown as done well once its node had been restarted."""

    @action(by=OPERATOR)
    def restart(self, n: Term[Node]) -> None:
        """Node `n` comes back, with its data for all that it knows."""
        super().restart(n)
        rebuilt = (self.asked[n] == Request.rebuild) & self.done.has(n)
        self.error.put(n, self.error.has(n) & ~rebuilt)


@known_bug(
    "001-373",
    'design document 001: "a map of topology requests per node"',
    breaks=TopologyControl.requests_end_each_for_itself,
    sizes={Node: 3},
)
class AllThatWaitAreAborted(TopologyControl):
    """To abort the request of one node aborted those of all nodes that waited until they had no tablets."""

    @action(by=OPERATOR, spends=TopologyControl.faults)
    def abort(self, n: Term[Node]) -> None:
        """The operator aborts a request to leave, and with it all that are paused."""
        only_when(self.release.parallel_draining)
        require(self._wants_to_go(n), "a request to leave is pending or paused")
        for m in Node:
            goes = (m == n) | self._paused(m)
            self.topology_request[m] = choose(goes, None, self.topology_request[m])
            self.done.put(m, self.done.has(m) | goes)
            self.error.put(m, self.error.has(m) | goes)


@known_bug(
    "001-381",
    'design document 001: the field has "one of the supported global topology requests"',
    breaks=TopologyControl.global_requests_are_not_overwritten,
    budgets={TopologyControl.faults: 0},
)
class TheLastGlobalRequestCounts(TopologyControl):
    """A global request took the place of another one that was not taken up yet, and whose client was never answered."""

    @action(by=OPERATOR, spends=TopologyControl.requests)
    def ask_globally(self, request: Term[GlobalRequest]) -> None:
        """A request that affects the entire cluster, while none is worked on."""
        worked_on = self.transition_state.any_of(
            *(state for state in TransitionState if state.owner is Owner.request),
            TransitionState.commit_cdc_generation,
        )
        require(self.global_request.is_none() | ~worked_on, "none is worked on")
        self.global_request = request


@known_bug(
    "001-369",
    'design document 001: "When streaming finishes, we move"',
    breaks=TopologySessions.nothing_of_a_closed_session_runs,
)
class AFailureIsToldAtOnce(TopologySessions):
    """TRUNCATE was reported as failed when its session was closed: a node that still worked for it truncated later."""

    @action(by=COORDINATOR, fair=WEAK)
    def fail_to_truncate(self) -> None:
        """A node that drives the work has restarted: whoever asked is told so."""
        super().fail_to_truncate()
        for s in Session:
            self.done.put(s, self.done.has(s) | (self.running == s))


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


BUGS = known_bugs_in(globals())
