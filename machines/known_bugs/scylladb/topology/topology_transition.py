"""Mistakes put back into `TopologyTransition`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.topology.topology_states import NodeState
from stagewright.machines.scylladb.topology.topology_transition import (
    COORDINATOR,
    T,
    TopologyTransition,
)
from stagewright.spec import Bool
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "001-123",
    "design document 001: the order of the transition states",
    breaks=TopologyTransition.who_leaves_leaves_the_ring_first,
)
class OnlyRemovedNodesLeaveTheRing(TopologyTransition):
    """A node that was decommissioned was left as soon as reads were fenced, and went on as if it had its tokens."""

    def _must_leave_ring(self) -> Bool:
        return super()._must_leave_ring() & (self.in_transition == NodeState.removing)


@known_bug(
    "001-304",
    "design document 001: the entire topology can be in a transitioning state",
    breaks=TopologyTransition.the_topology_is_in_each_state,
)
class FinalizationsAreSeenAsMigrations(TopologyTransition):
    """While a split or a merge was finalized, the row said tablet_migration: the API moved tablets of the old boundaries."""

    @TopologyTransition.transition_state.step(T.null, T.tablet_migration, by=COORDINATOR)
    def start_resize(self) -> None:
        """Tablets of a table are split or merged for good, in the track of the others."""
        self._at_rest()


@known_bug(
    "001-722",
    "design document 001: the rebuilding state does not change the topology",
    breaks=TopologyTransition.rebuilds_end_with_no_transition_state,
)
class RebuildsEndWithTheTrack(TopologyTransition):
    """When the tablets that an operator had moved were there, no node was in transition any more: also one that streamed."""

    @TopologyTransition.transition_state.step(T.tablet_migration, T.null, by=COORDINATOR)
    def finish_tablets(self) -> None:
        """No tablet is in transition, and nothing else."""
        self._ends()


BUGS = known_bugs_in(globals())
