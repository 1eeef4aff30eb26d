"""Clients: they write and read keys through any node, all the time, and tell the oracle."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from stagewright.impl.cluster.messages import ClientReply, ClientRequest, Row
from stagewright.impl.simulator.clock import Clock
from stagewright.impl.simulator.counters import Counters
from stagewright.impl.simulator.options import Options
from stagewright.impl.simulator.oracle import Oracle

IDLE_GAP_MS = (20, 60)  # once all writes were sent

SendRequest = Callable[[str, ClientRequest], None]


class Clients:
    """As many writes as the options say, first one of each key; about as many reads."""

    def __init__(
        self,
        options: Options,
        clock: Clock,
        rng: Random,
        oracle: Oracle,
        counters: Counters,
        nodes: Callable[[], list[str]],
        send: SendRequest,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._oracle = oracle
        self._counters = counters
        self._nodes = nodes
        self._send = send
        self.keys = _keys(options, oracle)
        self._gap_ms = options.gap_ms
        self._writes_left = options.writes
        self._number = 0
        self._waiting: dict[int, tuple[ClientRequest, str]] = {}
        self._stopped = False

    @property
    def finished(self) -> bool:
        """Whether all writes were sent."""
        return self._writes_left == 0

    def start(self) -> None:
        """Begin to send requests."""
        self._clock.after(1, self._next)

    def go_on_from(self, number: int) -> None:
        """Number requests from here on: the cluster has a past."""
        self._number = number
        self._oracle.known_from = number

    def stop(self) -> None:
        """Send no more."""
        self._stopped = True

    def _next(self) -> None:
        if self._stopped:
            return
        nodes = self._nodes()
        if nodes:
            node = self._rng.choice(nodes)
            if self._writes_left and self._rng.random() < 0.5:
                self._write(node)
            else:
                self.read(node, self._rng.choice(self.keys))
        self._clock.after(
            self._rng.randint(*(self._gap_ms if self._writes_left else IDLE_GAP_MS)), self._next
        )

    def _write(self, node: str) -> None:
        self._writes_left -= 1
        self._number += 1
        first = self._counters.requests["writes sent"]
        key = self.keys[first] if first < len(self.keys) else self._rng.choice(self.keys)
        # Numbers grow with time and are never used twice: good timestamps.
        row = Row(key, f"{key}={self._number}", self._number)
        self._counters.requests["writes sent"] += 1
        self._oracle.sent(row)
        self._begin(node, ClientRequest(self._number, True, row))

    def read(self, node: str, key: str) -> None:
        """Read a key through a node."""
        self._number += 1
        self._counters.requests["reads sent"] += 1
        self._oracle.begin_read(self._number, key)
        self._begin(node, ClientRequest(self._number, False, Row(key, "", 0)))

    def _begin(self, node: str, request: ClientRequest) -> None:
        self._waiting[request.number] = request, node
        self._send(node, request)

    def hear(self, reply: ClientReply) -> None:
        """A node answers."""
        request, node = self._waiting.pop(reply.number, (None, ""))
        if request is None:
            return
        what = "writes" if request.write else "reads"
        if not reply.succeeded:
            self._counters.requests[f"{what} failed"] += 1
        elif request.write:
            self._counters.requests["writes acknowledged"] += 1
            self._oracle.acknowledge(self._clock.now, request.row, node)
        else:
            self._counters.requests["reads returned"] += 1
            self._oracle.end_read(reply.number, request.row.key, reply.row, node)


def _keys(options: Options, oracle: Oracle) -> list[str]:
    """The same number of keys for every tablet."""
    left = dict.fromkeys(oracle.settings.tablets, options.keys_a_tablet)
    keys: list[str] = []
    number = 0
    while any(left.values()):
        key = f"k{number}"
        tablet = oracle.settings.tablet_of(key)
        if left[tablet]:
            left[tablet] -= 1
            keys.append(key)
        number += 1
    return keys
