"""A node's part of global barriers: it learns what is committed, and ends what began before that."""

from __future__ import annotations

from stagewright.impl.group0.member import Ended
from stagewright.impl.node.clients.requests import Requests
from stagewright.impl.node.clients.scans import Scans
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import BarrierAck, BarrierRequest, Phase
from stagewright.impl.node.port import Effect, Send


class Drains:
    """The barriers that a node has not acknowledged yet."""

    def __init__(self, node: Context, requests: Requests, scans: Scans) -> None:
        self._node = node
        self._requests = requests
        self._scans = scans
        self._learning: set[tuple[str, BarrierRequest]] = set()
        self._draining: list[tuple[str, BarrierRequest]] = []

    def begin(self, coordinator: str, request: BarrierRequest) -> list[Effect]:
        """A coordinator asks, maybe once more."""
        asked = coordinator, request
        if asked in self._learning or asked in self._draining:
            return []
        if self._node.has(Defect.barrier_does_not_learn):
            return self._learned(asked)
        self._learning.add(asked)

        def then(_: Ended) -> list[Effect]:
            self._learning.discard(asked)
            return self._learned(asked)

        return self._node.read_barrier(then)

    def _learned(self, asked: tuple[str, BarrierRequest]) -> list[Effect]:
        if asked[1].phase is Phase.fence:
            return [_ack(*asked)]
        self._draining.append(asked)
        return self.look()

    def look(self) -> list[Effect]:
        """What goes on may have ended."""
        if not self._draining:
            return []
        careless = self._node.has(Defect.barrier_does_not_drain)
        done = [d for d in self._draining if careless or self._drained(d[1].version)]
        self._draining = [d for d in self._draining if d not in done]
        return [_ack(*d) for d in done]

    @property
    def draining(self) -> tuple[BarrierRequest, ...]:
        """Barriers that wait for what goes on."""
        return tuple(request for _, request in self._draining)

    def _drained(self, version: int) -> bool:
        if self._node.has(Defect.reads_are_not_drained):
            return self._requests.writes_drained(version)
        return self._requests.drained(version) and self._scans.drained(version)


def _ack(coordinator: str, request: BarrierRequest) -> Send:
    return Send(coordinator, BarrierAck(request.term, request.round, request.phase))
