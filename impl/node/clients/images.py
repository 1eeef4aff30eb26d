"""The read of a row before it is written, for logs that have the row as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from stagewright.impl.cdc.rows import ABSENT, UNKNOWN, Image
from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import (
    ClientReply,
    ClientWrite,
    Outcome,
    ReplicaRead,
    ReplicaReply,
)
from stagewright.impl.node.port import Effect, Send, Wake

Then = Callable[[str, ClientWrite, Image], list[Effect]]


@dataclass
class _Before:
    """The read of a row before it is written."""

    client: str
    request: ClientWrite
    version: int
    targets: tuple[str, ...]
    needed: int
    answers: dict[str, ReplicaReply] = field(default_factory=dict[str, ReplicaReply])


class Images:
    """Reads before writes, for logs with images; `then` writes.

    An image is what a read at the write's level returns. If the row is already newer than the write, no image is
    given: the version before it may not be kept any more.
    """

    def __init__(self, node: Context, then: Then) -> None:
        self._node = node
        self._then = then
        self._open: dict[int, _Before] = {}

    def begin(
        self, client: str, request: ClientWrite, key: bytes, targets: tuple[str, ...], needed: int
    ) -> list[Effect]:
        """Read the row that is to be written."""
        node = self._node
        number = node.number()
        if node.has(Defect.images_are_of_one_replica):
            needed = 1
        version = node.view.version
        self._open[number] = _Before(client, request, version, targets, needed)
        read = ReplicaRead(number, version, request.table, key)
        wake = Wake(node.timing.request, ("request", number))
        return [*(Send(n, read) for n in targets), wake]

    def owns(self, number: int) -> bool:
        """Whether a message's number is of such a read."""
        return number in self._open

    def reply(self, sender: str, reply: ReplicaReply) -> list[Effect]:
        """A replica has answered; once enough have, the write begins."""
        found = self._open[reply.number]
        if reply.outcome is not Outcome.done or sender not in found.targets:
            return []
        found.answers[sender] = reply
        if len(found.answers) < found.needed:
            return []
        del self._open[reply.number]
        newest = max(found.answers.values(), key=lambda r: r.timestamp)
        return self._then(found.client, found.request, self._image(found.request, newest))

    def _image(self, request: ClientWrite, newest: ReplicaReply) -> Image:
        careless = self._node.has(Defect.images_may_be_newer)
        if newest.timestamp >= request.timestamp and not careless:
            return UNKNOWN
        return ABSENT if newest.value is None else Image(newest.value)

    def give_up(self, number: int) -> list[Effect]:
        """The time is over: the write fails before it has begun."""
        found = self._open.pop(number)
        failed = ClientReply(found.request.number, False, reason="the row before was not read")
        return [Send(found.client, failed)]

    @property
    def versions(self) -> tuple[int, ...]:
        """Under which versions those that go on began."""
        return tuple(r.version for r in self._open.values())
