"""The network: messages take their time; some get lost, are late and overtake others, or arrive twice."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from stagewright.impl.cluster.messages import Message
from stagewright.impl.simulator.clock import Clock
from stagewright.impl.simulator.counters import Counters
from stagewright.impl.simulator.faults import FaultKind

Deliver = Callable[[str, Message], None]

LATENCY_MS = (1, 4)
LATE_MS = (20, 260)


class Network:
    """Carries messages between places; `rate` tells the share of messages that a fault befalls now."""

    def __init__(
        self,
        clock: Clock,
        rng: Random,
        counters: Counters,
        deliver: Deliver,
        rate: Callable[[FaultKind], float],
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._counters = counters
        self._deliver = deliver
        self._rate = rate

    def send(
        self, sender: str, place: str, to: str, message: Message, *, reliable: bool = False
    ) -> None:
        """Send a message from one place to an address at another, or at the same."""
        if sender == place:
            self._clock.after(0, lambda: self._deliver(to, message))
            return
        if not reliable and self._befalls(FaultKind.loss):
            self._counters.messages["lost"] += 1
            return
        copies = 1
        if not reliable and self._befalls(FaultKind.duplicate):
            self._counters.messages["duplicated"] += 1
            copies = 2
        for _ in range(copies):
            latency = self._rng.randint(*LATENCY_MS)
            if not reliable and self._befalls(FaultKind.delay):
                self._counters.messages["delayed"] += 1
                latency = self._rng.randint(*LATE_MS)
            self._counters.messages["sent"] += 1
            self._clock.after(latency, lambda: self._deliver(to, message))

    def _befalls(self, kind: FaultKind) -> bool:
        rate = self._rate(kind)
        return rate > 0 and self._rng.random() < rate
