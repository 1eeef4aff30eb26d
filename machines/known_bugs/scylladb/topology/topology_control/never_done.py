"""Mistakes put back into `TopologyControl`: what is never done."""

from __future__ import annotations

from stagewright.machines.scylladb.cluster import Node
from stagewright.machines.scylladb.topology.control.topology_record import COORDINATOR, WEAK, T
from stagewright.machines.scylladb.topology.topology_control import TopologyControl
from stagewright.machines.scylladb.topology.topology_states import TransitionState
from stagewright.spec import Bool, Term, action, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ONE_DEAD = {TopologyControl.requests: 1, TopologyControl.faults: 1}


@known_bug(
    "001-11",
    "design document 001, Topology states: a node leaves when its tablets have moved away",
    breaks=(TopologyControl.every_request_ends, TopologyControl.can_come_to_rest),
    profile="scylla-6.0",
    budgets={TopologyControl.faults: 0},
)
class ADrainWaitsForWhatIsGone(TopologyControl):
    """The last tablet of a node that was being drained for its decommission was moved by hand, or dropped with its table:
    the drain, which was to move it, waited for it for ever.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def settle_tablets(self) -> None:
        """What is not moved by the drain comes to rest in the tablet migration track alone."""
        super().settle_tablets()
        require(self.transition_state == T.tablet_migration, "in the tablet migration track")


@known_bug(
    "P10",
    "scylladb #16461",
    breaks=TopologyControl.every_request_ends,
    budgets={TopologyControl.requests: 1, TopologyControl.faults: 1},
)
class CommitOfAGenerationIsTriedForEver(TopologyControl):
    """A node died, the barrier of commit_cdc_generation failed, and was tried again and again."""

    def _gives_up(self) -> Bool:
        return super()._gives_up() & (
            self.transition_state != TransitionState.commit_cdc_generation
        )


@known_bug(
    "R03",
    "design document 001: tablets of a node that is replaced",
    breaks=TopologyControl.tablets_of_replaced_nodes_are_rebuilt,
    budgets=ONE_DEAD,
)
class NobodyRebuildsForTheReplacedNode(TopologyControl):
    """The balancer drained nodes whose request was paused, and forgot those that had been replaced."""

    def _to_be_drained(self, n: Term[Node]) -> Bool:
        return self._paused(n)


BUGS = known_bugs_in(globals())
