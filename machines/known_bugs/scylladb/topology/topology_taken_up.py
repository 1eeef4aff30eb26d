"""Mistakes by which work, or its result, is lost when a second thing happens, or goes with that of somebody else."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import CLIENT, NETWORK, Node
from stagewright.machines.scylladb.topology import (
    fencing,
    topology_coordinator,
    topology_rebuild,
)
from stagewright.machines.scylladb.topology.control.topology_record import COORDINATOR, OPERATOR
from stagewright.machines.scylladb.topology.fencing import Fencing, Phase, Purpose
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_coordinator import (
    Coordinator,
    TopologyCoordinator,
)
from stagewright.machines.scylladb.topology.topology_rebuild import TopologyRebuild
from stagewright.machines.scylladb.topology.topology_sessions import Session, TopologySessions
from stagewright.machines.scylladb.topology.topology_states import Request
from stagewright.machines.systems import topology_change
from stagewright.machines.systems.topology_change import COMMIT, TopologyChange
from stagewright.spec import (
    Fairness,
    FlagVar,
    Term,
    action,
    choose,
    count,
    flag,
    only_when,
    per,
    require,
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
class WritesWaitForTheGeneration(TopologyChange):
    """Tables with CDC took no writes through a node from when a generation was made until the node had learned of it."""

    @action(by=CLIENT, spends=TopologyChange.writes)
    def write(self, n: Term[Node]) -> None:
        """A row is written unless a generation is about to be committed."""
        super().write(n)
        require(self.routing[n].state != COMMIT, "the node waits for no generation")


BUGS = known_bugs_in(globals())
