"""The requests of clients, at the node that coordinates them.

A request takes its replicas from the view that the node has when it begins, and is marked with that
view's version: a barrier waits for it, and replicas refuse it once the fence is past its version.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stagewright.impl.cluster.defects import Defect
from stagewright.impl.cluster.messages import (
    CLIENT,
    ClientReply,
    ClientRequest,
    Effect,
    Outcome,
    ReplicaReply,
    ReplicaRequest,
    Row,
    Send,
    Wake,
)
from stagewright.impl.cluster.settings import Consistency, Settings
from stagewright.impl.cluster.view import TabletView, View
from stagewright.machines.scylladb.tablets.tablet_stages import Replicas


@dataclass
class _Open:
    request: ClientRequest
    version: int
    targets: frozenset[str]
    needed: int
    done: set[str] = field(default_factory=set)
    refused: dict[str, Outcome] = field(default_factory=dict)
    newest: Row | None = None


class Requests:
    """The open requests of one node."""

    def __init__(self, name: str, settings: Settings) -> None:
        self._name = name
        self._settings = settings
        self._open: dict[int, _Open] = {}

    def begin(self, request: ClientRequest, view: View) -> list[Effect]:
        """Send a client's request to the replicas."""
        tablet = self._settings.tablet_of(request.row.key)
        if tablet not in view.tablets:
            return [_failed(request.number, f"{self._name} has not heard of {tablet}")]
        targets, needed = self._plan(request, view.tablets[tablet], view.ignored)
        if len(targets) < needed:
            return [_failed(request.number, "too few replicas")]
        self._open[request.number] = _Open(request, view.version, frozenset(targets), needed)
        message = ReplicaRequest(
            self._name, request.number, request.write, tablet, request.row, view.version
        )
        return [
            *(Send(node, message) for node in targets),
            Wake(self._settings.request_ms, ("request", request.number)),
        ]

    def _plan(
        self, request: ClientRequest, tablet: TabletView, ignored: frozenset[str]
    ) -> tuple[tuple[str, ...], int]:
        """The replicas to ask, and how many of them must answer."""
        stage = tablet.stage
        quorum = self._settings.consistency is Consistency.quorum
        if not request.write:
            replicas = tablet.chosen(stage.reads)
            if quorum:
                return replicas, len(replicas) // 2 + 1
            live = [n for n in replicas if n not in ignored]
            return (live[request.number % len(live)],) if live else (), 1
        which = stage.writes
        if self._settings.has(Defect.writes_skip_the_pending_replica):
            which = Replicas.previous
        targets = tablet.chosen(which)
        pending = tablet.pending if which is Replicas.both else ()
        awaited = () if self._settings.has(Defect.pending_replica_is_not_awaited) else pending
        if quorum:
            return targets, (len(targets) - len(pending)) // 2 + 1 + len(awaited)
        # A replica that is down for good will never answer, nor be asked.
        needed = [n for n in targets if n not in ignored and (n in awaited or n not in pending)]
        return targets, max(1, len(needed))

    def reply(self, reply: ReplicaReply) -> list[Effect]:
        """Count what a replica answers."""
        found = self._open.get(reply.number)
        if found is None or reply.replica not in found.targets:
            return []
        if reply.outcome is not Outcome.done:
            found.refused[reply.replica] = reply.outcome
            if len(found.targets) - len(found.refused) < found.needed:
                return self._close(found, _failed(reply.number, reply.outcome.name))
            return []
        found.done.add(reply.replica)
        if reply.row and (found.newest is None or reply.row.timestamp > found.newest.timestamp):
            found.newest = reply.row
        if len(found.done) < found.needed:
            return []
        return self._close(found, Send(CLIENT, ClientReply(reply.number, True, found.newest)))

    def give_up(self, number: int) -> list[Effect]:
        """The time of a request is over."""
        found = self._open.get(number)
        return [] if found is None else self._close(found, _failed(number, "timed out"))

    def _close(self, request: _Open, answer: Send) -> list[Effect]:
        del self._open[request.request.number]
        return [answer]

    def drained(self, version: int) -> bool:
        """Whether no request that began under an older version is going on."""
        return all(r.version >= version for r in self._open.values())


def _failed(number: int, reason: str) -> Send:
    return Send(CLIENT, ClientReply(number, False, reason=reason))
