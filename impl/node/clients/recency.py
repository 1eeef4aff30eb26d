"""Logged writes wait until their node has read group0 lately: it then knows each set of streams that may operate.

A set of streams begins `2 * ring_delay` after a coordinator makes it, so that who has read group0 within `ring_delay`
knows it before it begins. Design document 003 cannot prevent that a node learns of a generation too late, "due to a
network partition"; a node that is cut off writes to no log here: it gives up availability for safety.
"""

from __future__ import annotations

from collections.abc import Callable

from stagewright.impl.cdc.rows import Image
from stagewright.impl.group0.member import Ended
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import ClientReply, ClientWrite
from stagewright.impl.node.port import Effect, Send, Wake

Held = tuple[str, ClientWrite, Image | None]
"""A client, its write, and what was read before it."""


class Recency:
    """When one node has read group0, and the writes that wait for it to do so; `begin` begins one of them."""

    def __init__(self, node: Context, begin: Callable[[Held], list[Effect]]) -> None:
        self._node = node
        self._begin = begin
        self._read_at: int | None = None  # all that was committed by then is known
        self._reading = False
        self._held: dict[int, Held] = {}

    def admit(self, write: Held) -> list[Effect]:
        """Begin a write, or hold it until group0 is read; read it in time for those that follow."""
        node, limit = self._node, 1000 * self._node.timing.ring_delay
        if node.has(Defect.cut_off_nodes_write_to_logs):
            return self._begin(write)
        age = None if self._read_at is None else node.around.now() - self._read_at
        reading = [] if age is not None and 2 * age <= limit else self._read()
        if age is not None and age <= limit:
            return [*reading, *self._begin(write)]
        number = node.number()
        self._held[number] = write
        return [*reading, Wake(node.timing.request, ("request", number))]

    def _read(self) -> list[Effect]:
        if self._reading:
            return []
        self._reading, began = True, self._node.around.now()

        def then(_: Ended) -> list[Effect]:
            self._reading, self._read_at = False, began
            held, self._held = self._held, {}
            return [effect for write in held.values() for effect in self.admit(write)]

        return self._node.read_barrier(then)

    def owns(self, number: int) -> bool:
        """Whether a number is of a write that waits."""
        return number in self._held

    def give_up(self, number: int) -> list[Effect]:
        """The time is over: the write fails before it has begun."""
        client, request, _ = self._held.pop(number)
        reason = "group0 does not answer: which streams operate is not known"
        return [Send(client, ClientReply(request.number, False, reason=reason))]

    @property
    def waiting(self) -> int:
        """How many writes wait."""
        return len(self._held)
