"""Rounds of a global barrier: each node drains what is older than a version; then each one learns the fence."""

from __future__ import annotations

from dataclasses import dataclass

from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import BarrierAck, BarrierRequest, Phase
from stagewright.impl.node.port import Effect, Send, Wake
from stagewright.machines.scylladb.topology.topology_states import NodeState


@dataclass
class Round:
    """One phase of a barrier, until all who take part have acknowledged it."""

    number: int
    phase: Phase
    version: int
    asked: frozenset[str]
    missing: set[str]
    repeats: int = 0  # how often those that are missing were asked once more

    @property
    def passed(self) -> bool:
        """Whether nobody is missing."""
        return not self.missing

    def serves(self, phase: Phase, version: int, participants: tuple[str, ...]) -> bool:
        """Whether it is a round of this phase that asks all of them: the same version may have new ones."""
        return (self.phase, self.version) == (phase, version) and self.asked.issuperset(
            participants
        )


class Rounds:
    """The rounds of one coordinator, one at a time."""

    def __init__(self, node: Context, term: int) -> None:
        self._node = node
        self._term = term
        self._number = 0
        self.round: Round | None = None

    def begin(self, phase: Phase, asked: tuple[str, ...]) -> list[Effect]:
        """Ask for a phase."""
        self._number += 1
        if self._node.has(Defect.joining_node_is_not_asked):
            nodes = self._node.view.nodes
            asked = tuple(n for n in asked if nodes[n].state is NodeState.normal)
        self.round = Round(
            self._number, phase, self._node.view.version, frozenset(asked), set(asked)
        )
        return self._send(self.round)

    def _send(self, round_: Round) -> list[Effect]:
        request = BarrierRequest(self._term, round_.number, round_.phase, round_.version)
        wake = Wake(self._node.timing.resend, ("coordinator", "round", self._term, round_.number))
        return [*(Send(n, request) for n in sorted(round_.missing)), wake]

    def acknowledged(self, sender: str, ack: BarrierAck) -> bool:
        """A node has; whether that was the last one."""
        found = self.round
        if found is None or (ack.term, ack.round) != (self._term, found.number):
            return False
        found.missing.discard(sender)
        return found.passed

    def again(self, number: int) -> list[Effect]:
        """Ask those that have not answered once more."""
        found = self.round
        if found is None or found.number != number or found.passed:
            return []
        found.repeats += 1
        return self._send(found)
