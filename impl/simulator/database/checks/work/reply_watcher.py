"""Watches what clients are answered of rows: enough replicas have answered, and enough of those that are to be read have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from stagewright.impl.catalog.view import View
from stagewright.impl.node.keys import token_in
from stagewright.impl.node.messages import (
    ClientRead,
    ClientReply,
    ClientScan,
    Level,
    Message,
    ReplicaRead,
    ReplicaReply,
    ReplicaRows,
    ReplicaScan,
    ReplicaWrite,
    ScanReply,
)
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.ring.vnodes import Chosen
from stagewright.impl.simulator.database.hosts import Host, life_of


@dataclass
class _Question:
    """What replicas are asked for, a read or that they store what it found, and who has answered."""

    level: Level
    chosen: Chosen
    needed: int
    to_keep: int  # so many must have stored what is returned
    answered: set[str] = field(default_factory=set[str])

    @property
    def is_kept(self) -> bool:
        """Whether it is on as many replicas as a write of it needs, and where fewer stay, on a quorum of these."""
        stay = self.chosen.fewer
        left = not stay or len(self.answered & {*stay}) >= len(stay) // 2 + 1
        return left and len(self.answered) >= self.to_keep


class ReplyWatcher:
    """`take` records an action of an entity."""

    def __init__(self, take: Callable[..., None]) -> None:
        self._take = take
        self._reads: dict[int, _Question] = {}  # by the number of the replicas' messages
        self._repairs: dict[int, _Question] = {}

    def heard(self, sender: str, reply: ReplicaReply | ReplicaRows) -> None:
        """A replica has answered that it has done what it was asked for."""
        found = self._reads.get(reply.number) or self._repairs.get(reply.number)
        if found is not None:
            found.answered.add(sender)

    def sent(self, host: Host, node: DatabaseNode, message: Message, cause: Message | None) -> None:
        """A node asks a replica, or tells a client."""
        match message, cause:
            case ReplicaRead() | ReplicaScan(), ClientRead() | ClientScan():
                self._asks(node, message, cause.level)
            case ReplicaScan(), ReplicaRows():  # for the next range
                found = self._answers(host, node, cause.number, kept=True)
                if found is not None:
                    self._asks(node, message, found.level)
            case ReplicaWrite(), ReplicaReply() if cause.number in self._reads:
                self._repairs[message.number] = replace(
                    self._reads.pop(cause.number), answered=set()
                )
            case ScanReply(succeeded=True), ReplicaRows():
                self._answers(host, node, cause.number, kept=True)
            case ClientReply(succeeded=True), ReplicaReply() if cause.number in self._repairs:
                kept = self._repairs.pop(cause.number).is_kept
                self._take("lives", life_of(host), node.name, "return_rows", enough=True, kept=kept)
            case ClientReply(succeeded=True), ReplicaReply() if cause.number in self._reads:
                pending = self._reads[cause.number].chosen.pending
                self._answers(host, node, cause.number, kept=not (pending and message.timestamp))
            case _:
                pass

    def _asks(self, node: DatabaseNode, message: ReplicaRead | ReplicaScan, level: Level) -> None:
        if level is Level.one or message.number in self._reads:
            return
        view = node.context.view
        first = message.key if isinstance(message, ReplicaRead) else message.start
        chosen = view.replicas(message.table, token_in(first))
        self._reads[message.number] = _question(view, message.table, chosen, level)

    def _answers(
        self, host: Host, node: DatabaseNode, number: int, *, kept: bool
    ) -> _Question | None:
        found = self._reads.pop(number, None)
        if found is not None:
            enough = len(found.answered) >= found.needed
            self._take("lives", life_of(host), node.name, "return_rows", enough=enough, kept=kept)
        return found


def _question(view: View, table: str, chosen: Chosen, level: Level) -> _Question:
    if level is Level.all:
        needed, stored = len(chosen.reads), len(chosen.writes) - len(chosen.pending)
    else:
        needed = view.factor(table, chosen, writes=False) // 2 + 1
        stored = view.factor(table, chosen, writes=True) // 2 + 1
    return _Question(level, chosen, needed, stored + len(chosen.pending))
