"""The documents as the nodes have them: each partition is active on one, copies of it follow on others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from stagewright.impl.view_engine.documents.changes import (
    Change,
    Position,
    RollbackError,
    Stream,
    rollback_point,
)
from stagewright.impl.view_engine.file.header import FailoverLog


class History:
    """All that was ever written, by the history that it belongs to: what the oracle compares with."""

    def __init__(self) -> None:
        self._branches: dict[tuple[int, bytes], list[Change]] = {}
        self._made = 0

    def new_branch(self, partition: int, shared: list[Change]) -> bytes:
        """A uuid for what follows these changes."""
        self._made += 1
        uuid = self._made.to_bytes(8, "big")
        self._branches[partition, uuid] = [*shared]
        return uuid

    def written(self, uuid: bytes, change: Change) -> None:
        self._branches[change.partition, uuid].append(change)

    def documents(self, partition: int, uuid: bytes | None, seq: int) -> dict[str, Any]:
        """The documents of a partition as they were at a sequence number of a history."""
        found: dict[str, Any] = {}
        if seq == 0:
            return found
        assert uuid is not None
        for change in self._branches[partition, uuid]:
            if change.seq <= seq:
                found.pop(change.doc_id.decode(), None)
                if change.body is not None:
                    found[change.doc_id.decode()] = _parsed(change.body)
        return found

    def shared(self, partition: int, one: bytes, other: bytes) -> int:
        """Up to which sequence number two histories are the same."""
        if one == other:
            return 1 << 60
        shared = 0
        ours, theirs = self._branches[partition, one], self._branches[partition, other]
        for mine, its in zip(ours, theirs, strict=False):
            if mine != its:
                break
            shared = mine.seq
        return shared


@lru_cache(maxsize=1 << 14)
def _parsed(body: bytes) -> Any:
    """The document; nobody changes it."""
    return json.loads(body)


class Sent(NamedTuple):
    """What a copy gets: go back to `back_to`, then append; the log is the active copy's."""

    back_to: int
    changes: tuple[Change, ...]
    log: FailoverLog


@dataclass
class Copy:
    """A partition at one node."""

    partition: int
    active: bool = False
    changes: list[Change] = field(default_factory=list[Change])
    log: FailoverLog = ()

    @property
    def position(self) -> Position:
        return Position(
            self.changes[-1].seq if self.changes else 0, self.log[0][0] if self.log else bytes(8)
        )


class Copies:
    """The document store of one node, as its indexes read it; survives crashes of the node."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.held: dict[int, Copy] = {}

    def write(self, partition: int, doc_id: bytes, body: bytes | None) -> Position | None:
        """Where the change is; None if the partition is not active here."""
        copy = self.held.get(partition)
        if copy is None or not copy.active:
            return None
        change = Change(partition, copy.position.seq + 1, doc_id, body)
        copy.changes.append(change)
        self._history.written(copy.log[0][0], change)
        return copy.position

    def activate(self, partition: int, *, anew: bool) -> None:
        """Take writes. `anew`: after a failover, what was not copied is lost and a new history begins."""
        copy = self.held.setdefault(partition, Copy(partition))
        if copy.active:
            return
        copy.active = True
        if anew or not copy.log:
            uuid = self._history.new_branch(partition, copy.changes)
            copy.log = ((uuid, copy.position.seq), *copy.log)

    def is_active(self, partition: int) -> bool:
        """Whether writes are taken here."""
        return partition in self.held and self.held[partition].active

    def lose(self, partition: int, count: int) -> None:
        """The node restarts without its last changes."""
        copy = self.held[partition]
        copy.active = False
        copy.changes = copy.changes[: max(len(copy.changes) - count, 0)]
        self.activate(partition, anew=True)

    def has_nothing_new(self, copy: Copy) -> bool:
        """Whether a copy of another node is as this node's."""
        mine = self.held.get(copy.partition)
        return mine is not None and mine.position == copy.position and mine.log == copy.log

    def send(self, partition: int, since: int, log: FailoverLog) -> Sent | None:
        """What a copy at `since` that knows a history lacks; None if the partition is not active here."""
        copy = self.held.get(partition)
        if copy is None or not copy.log:
            return None
        back_to = min(rollback_point(since, log, copy.log), since)
        return Sent(back_to, tuple(c for c in copy.changes if c.seq > back_to), copy.log)

    def receive(self, partition: int, since: int, log: FailoverLog, sent: Sent) -> None:
        """Take over what was sent for this state of the copy; if it has another one by now, nothing."""
        copy = self.held.get(partition)
        if copy is None or copy.active or copy.position.seq != since or copy.log != log:
            return
        copy.changes = [c for c in copy.changes if c.seq <= sent.back_to] + [*sent.changes]
        copy.log = sent.log

    # -- as the source of indexes --------------------------------------------------------------------------

    def positions(self) -> Mapping[int, Position]:
        return {partition: copy.position for partition, copy in self.held.items() if copy.log}

    def failover_log(self, partition: int) -> FailoverLog:
        copy = self.held.get(partition)
        return () if copy is None else copy.log

    def snapshot(self, partition: int, since: int, log: FailoverLog) -> Stream:
        copy = self.held.get(partition)
        if copy is None:
            raise RollbackError(partition, 0)
        back_to = rollback_point(since, log, copy.log)
        if back_to < since or since > copy.position.seq:
            raise RollbackError(partition, min(back_to, copy.position.seq))
        newest = {change.doc_id: change for change in copy.changes}
        changes = [c for c in copy.changes if c.seq > since and newest[c.doc_id] is c]
        return Stream(copy.position.seq, copy.log, iter([changes]))
