"""Watches which requests nodes refuse as too few replicas are alive: those of which they know it, and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from stagewright.impl.catalog.view import View
from stagewright.impl.node.keys import stored_key, token_in
from stagewright.impl.node.messages import (
    ClientRead,
    ClientReply,
    ClientScan,
    ClientWrite,
    Level,
    Message,
    ReplicaRead,
    ReplicaScan,
    ReplicaWrite,
    ScanReply,
    Unavailable,
)
from stagewright.impl.node.node import DatabaseNode
from stagewright.impl.node.port import Effect, Send

Request = ClientWrite | ClientRead | ClientScan


class RefusalWatcher:
    """`is_there`: whether a node has been there for another one for so long that this must know it."""

    def __init__(self, is_there: Callable[[str, str], bool], broken: Callable[[str], None]) -> None:
        self._is_there = is_there
        self._broken = broken

    def did(self, node: DatabaseNode, effect: Effect, cause: Message | None) -> None:
        """A node has done something about a message."""
        request = cause if isinstance(cause, Request) else None
        match effect:
            case Send(_, ClientReply() | ScanReply() as reply) if reply.unavailable is not None:
                self._refused(node, reply.unavailable, request)
            case Send(_, ReplicaWrite() | ReplicaRead() | ReplicaScan() as asked):
                if request is not None and asked.table == node.context.view.named(request.table):
                    self._asked(node, request, writes=isinstance(asked, ReplicaWrite))
            case _:
                pass

    def _refused(self, node: DatabaseNode, short: Unavailable, request: Request | None) -> None:
        for name in short.down:
            if self._is_there(node.name, name):
                self._broken(f"{node.name} refused a request as {name} is down, which is there")
        if request is None or short.of_log:
            return
        writes = (False, True) if isinstance(request, ClientWrite) else (False,)
        if all(self._reached(node, request, writes=w) for w in writes):
            self._broken(f"{node.name} refused a request though enough replicas are alive: {short}")

    def _asked(self, node: DatabaseNode, request: Request, *, writes: bool) -> None:
        if not self._reached(node, request, writes=writes):
            self._broken(f"{node.name} asked replicas of which it knows that too few are alive")

    def _reached(self, node: DatabaseNode, request: Request, *, writes: bool) -> bool:
        """Whether enough replicas are alive, as far as the node knows."""
        context = node.context
        parts = _wanted(context.view, request, writes=writes)
        return all(len({*some} - context.down) >= needed for some, needed in parts)


def _wanted(view: View, request: Request, *, writes: bool) -> Iterator[tuple[tuple[str, ...], int]]:
    """Of which replicas how many must be there, among them those that are to come and those that are to stay."""
    table, level = view.named(request.table), request.level
    first = request.start if isinstance(request, ClientScan) else stored_key(request.key)
    chosen = view.replicas(table, token_in(first))
    asked, pending = (chosen.writes, chosen.pending) if writes else (chosen.reads, ())
    majority = view.factor(table, chosen, writes=writes) // 2 + 1
    settled = {Level.one: 1, Level.quorum: majority, Level.all: len(asked) - len(pending)}[level]
    yield asked, settled + len(pending)
    if writes and chosen.fewer and level is not Level.one:
        yield chosen.fewer, min(majority, len(chosen.fewer))
