"""Global barriers: every node that is not ignored learns what is committed and drains older requests.

One barrier goes on at a time, for all tablets that wait for one when it begins. First every node drains;
then the fence advances, and the barrier ends when every node knows the new fence: from then on no replica
accepts a request that began under an older version, not even from a node that is ignored but alive.
"""

from __future__ import annotations

from dataclasses import dataclass

from stagewright.impl.cluster.defects import Defect
from stagewright.impl.cluster.group0 import Group0
from stagewright.impl.cluster.messages import (
    BarrierAck,
    BarrierRequest,
    Effect,
    Phase,
    Send,
    Wake,
)
from stagewright.impl.cluster.settings import Settings

ROUNDS_A_TERM = 1_000_000


@dataclass(frozen=True)
class Closed:
    """A barrier that has ended, with the tablets that waited for it and the versions of their stages.

    `nodes` are those that must have acknowledged it, if it has passed.
    """

    number: int
    passed: bool
    tablets: dict[str, int]
    nodes: tuple[str, ...]


@dataclass
class _Round:
    number: int
    version: int
    tablets: dict[str, int]
    phase: Phase
    missing: list[str]  # nodes that have not acknowledged the phase


Result = tuple[list[Effect], Closed | None]


class Barriers:
    """The barriers of one coordinator."""

    def __init__(
        self, address: str, term: int, group0: Group0, nodes: tuple[str, ...], settings: Settings
    ) -> None:
        self._address = address
        self._term = term
        self._group0 = group0
        self._nodes = nodes
        self._settings = settings
        self._wanted: dict[str, int] = {}
        self._round: _Round | None = None
        self._number = term * ROUNDS_A_TERM

    def want(self, tablet: str, version: int) -> Result:
        """A tablet waits for a barrier that begins after the version of its stage was committed."""
        if self._round is None or self._round.tablets.get(tablet) != version:
            self._wanted[tablet] = version
        return self.next_round()

    def next_round(self) -> Result:
        """Begin a barrier, if none is going on and some tablet wants one."""
        if self._round is not None or not self._wanted:
            return [], None
        self._number += 1
        tablets, self._wanted = self._wanted, {}
        version = self._group0.view.version
        self._round = _Round(self._number, version, tablets, Phase.drain, self._asked())
        if self._settings.has(Defect.barrier_asks_nobody):
            return self._end(passed=True)
        return [*self._send(), self._wake(0)], None

    def _asked(self) -> list[str]:
        return [n for n in self._nodes if n not in self._group0.view.ignored]

    def _send(self) -> list[Effect]:
        assert self._round is not None
        r = self._round
        request = BarrierRequest(self._address, r.number, r.phase, r.version)
        return [Send(node, request) for node in r.missing]

    def _wake(self, attempts: int) -> Wake:
        assert self._round is not None
        return Wake(self._settings.resend_ms, ("barrier", self._round.number, attempts + 1))

    def acknowledged(self, ack: BarrierAck) -> Result:
        """A node has passed a phase."""
        r = self._round
        if r is None or (r.number, r.phase) != (ack.round, ack.phase) or ack.node not in r.missing:
            return [], None
        r.missing.remove(ack.node)
        return self._go_on()

    def ignored(self) -> Result:
        """A node was declared gone: no barrier waits for it any more."""
        if self._round is None:
            return [], None
        asked = self._asked()
        self._round.missing = [n for n in self._round.missing if n in asked]
        return self._go_on()

    def _go_on(self) -> Result:
        r = self._round
        assert r is not None
        if r.missing:
            return [], None
        if r.phase is Phase.fence:
            return self._end(passed=True)
        self._group0.advance_fence(r.version, self._term)
        if self._settings.has(Defect.fence_is_not_awaited):
            return self._end(passed=True)
        r.phase, r.missing = Phase.fence, self._asked()
        return self._send(), None

    def again(self, number: int, attempts: int) -> Result:
        """Ask the nodes that have not answered once more, or count the barrier as failed."""
        if self._round is None or self._round.number != number:
            return [], None
        if attempts * self._settings.resend_ms >= self._settings.barrier_ms:
            return self._end(passed=False)
        return [*self._send(), self._wake(attempts)], None

    def _end(self, *, passed: bool) -> Result:
        assert self._round is not None
        ended, self._round = self._round, None
        return [], Closed(ended.number, passed, ended.tablets, tuple(self._asked()))
