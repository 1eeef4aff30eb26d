"""What logs and tables show of the topology, as views of the machine that says why and when."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology import topology_coordinator, topology_sessions
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_coordinator import TopologyCoordinator
from stagewright.machines.scylladb.topology.topology_node import TopologyNode
from stagewright.machines.scylladb.topology.topology_rebuild import TopologyRebuild
from stagewright.machines.scylladb.topology.topology_request import TopologyRequest
from stagewright.machines.scylladb.topology.topology_sessions import TopologySessions
from stagewright.machines.scylladb.topology.topology_states import NodeState, TransitionState
from stagewright.machines.scylladb.topology.topology_transition import TopologyTransition
from stagewright.machines.systems.topology_change import TopologyChange
from stagewright.spec import Term, alike, choose, first_where, projection, refinement, some
from stagewright.spec.declarations.exercised import Choice

T = TopologyTransition
TWO_FAULTS: Choice = {TopologyControl.requests: 2, TopologyControl.faults: 2}
"""One fault is not enough for every way back."""
RELEASES = ("scylla-6.0", "scylla-2025.4", "scylla-2026.2")
ASKING = (
    TopologyControl.ask_to_join,
    TopologyControl.ask_to_replace,
    TopologyControl.ask_to_leave,
    TopologyControl.ask_to_remove,
    TopologyControl.ask_to_rebuild,
)
IN_TRANSITION = tuple(state for state in NodeState if state.in_transition)


@projection(
    at=(TWO_FAULTS,),
    beyond={
        "scylla-6.0": (T.start_resize, T.finish_resize),  # there by another name already
    },
)
def as_the_coordinator_logs_it(topology: TopologyControl, seen: TopologyTransition) -> None:
    """The topology coordinator's log and `system.topology` show the transition state, and of the node that is
    in transition its state.
    """
    seen.transition_state = topology.transition_state
    seen.in_transition = first_where(
        IN_TRANSITION, lambda state: some(topology.node_state[n] == state for n in Node)
    )


@projection(
    at=(TWO_FAULTS,),
    beyond=dict.fromkeys(
        ("seed", *RELEASES), (TopologyNode.start_the_cluster, TopologyNode.refuse)
    ),
    profiles={
        "seed": "seed",
        "scylla-6.0": "scylla-6.0",
        "scylla-2025.4": "scylla-6.0",
        "scylla-2026.2": "scylla-6.0",
    },
    from_start=False,
)
def a_node_of_the_topology(topology: TopologyControl, seen: TopologyNode, n: Term[Node]) -> None:
    """A row of `system.topology`: the node's state. A log may begin anywhere in a node's life."""
    seen.node_state = topology.node_state[n]


@projection(
    at=(TWO_FAULTS,),
    beyond={"seed": (TopologyRequest.fail, TopologyRequest.finish)},
    anew=ASKING,
    from_start=False,
)
def the_newest_request_of_a_node(
    topology: TopologyControl, seen: TopologyRequest, n: Term[Node]
) -> None:
    """A row of `system.topology_requests`; a node's next request is another row."""
    seen.asked = topology.asked[n].is_some()
    seen.error = topology.error.has(n)
    seen.done = topology.done.has(n)


@refinement(at=(TWO_FAULTS,), anew=ASKING, from_start=False)
def a_request_that_is_taken_up(
    topology: TopologyControl, seen: TopologyRequest, n: Term[Node]
) -> None:
    """The same row, and whether it has a start_time: it waits as long as the request is in the node's row."""
    alike(seen.asked & ~seen.done & ~seen.started, topology.topology_request[n].is_some())
    seen.done = topology.done.has(n)


@refinement(profiles={"": "scylla-6.0"}, from_start=False)
def a_node_that_is_rebuilt(rebuild: TopologyRebuild, seen: TopologyNode, n: Term[Node]) -> None:
    """Where rows come from, and a volume that is lost, are not seen of it."""
    rebuilt = rebuild.rebuilding == n
    seen.node_state = choose(rebuilt, NodeState.rebuilding, Term.of(NodeState.normal))


@refinement(
    anew=(
        TopologyRebuild.lose_volume,
        TopologyRebuild.lose_volume_naming,
        TopologyRebuild.ask_again,
    ),
    from_start=False,
)
def a_request_to_rebuild(rebuild: TopologyRebuild, seen: TopologyRequest, n: Term[Node]) -> None:
    """It is done with an error, or the node is whole again; who asks again makes another request."""
    seen.error = rebuild.failed.has(n)
    alike(seen.done, ~rebuild.waits.has(n) & (rebuild.rebuilding != n))


@refinement(
    profiles={"": "scylla-2026.2"},
    steps={
        TopologyCoordinator.complete_rollback: [T.complete_rollback, T.finish_tablets],
    },
)
def what_coordinators_commit(coordinator: TopologyCoordinator, seen: TopologyTransition) -> None:
    """Whichever coordinator commits, a decommission goes the way of the table; no tablet moves after a rollback."""
    seen.transition_state = coordinator.transition_state.column(_committed)
    leaves = coordinator.node_state == NodeState.decommissioning
    alike(seen.in_transition == NodeState.decommissioning, leaves)
    alike(seen.in_transition.is_some(), leaves)


def _committed(state: topology_coordinator.Transition) -> TransitionState:
    return TransitionState[state.name]


S = TopologySessions


@refinement(
    profiles={"": "scylla-2026.2"},
    steps={
        S.finish: [
            (T.leave_token_ring, T.complete_rollback, T.finish_request),
            (T.finish_left, T.finish_tablets, None),
        ],
    },
)
def what_opens_a_session(sessions: TopologySessions, seen: TopologyTransition) -> None:
    """A node that leaves streams in a session; its way out of the ring afterwards is one step, for it opens none."""
    seen.transition_state = sessions.transition_state.column(_with_a_session)


def _with_a_session(state: topology_sessions.Transition) -> TransitionState:
    return TransitionState[state.name]


@refinement()
def a_join_as_it_is_logged(change: TopologyChange, seen: TopologyTransition) -> None:
    """While a node joins across a CDC switch, and tablets move in between, a log shows what it shows of any join."""
    seen.transition_state = change.transition_state
    seen.in_transition = first_where(IN_TRANSITION, lambda state: change.state == state)


@refinement(profiles={"seed": "seed", "scylla-2026.2": "scylla-6.0"}, from_start=False)
def a_node_that_joins(change: TopologyChange, seen: TopologyNode) -> None:
    """The newcomer's row in `system.topology`."""
    seen.node_state = change.state
