"""View updates on their way: sent to whom they concern now, and again until all of these have them.

Those that follow from a request or a stream are hints on the disk, too, and are not sent before they are synced.
Those of a build are in memory alone: a task that was not finished is done again. They, too, wait until what was stored
before them is on the disk: a view must not have a row that its base may lose. A node that does not keep up is
sent no more until it answers: what it was sent twice it would have to write twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

from stagewright.impl.node.context import Context
from stagewright.impl.node.defects import Defect
from stagewright.impl.node.messages import Outcome, ReplicaReply, ReplicaWrite
from stagewright.impl.node.port import Drop, Effect, Send, Wake
from stagewright.impl.views.maintenance.hints import hint_key, hints_of
from stagewright.impl.views.maintenance.pairing import targets_of
from stagewright.impl.views.maintenance.updates import ViewUpdate

AGAIN = ("views", "again")
WINDOW = 128  # updates on their way to one node
Key = tuple[int, bytes]
"""Of which batch of a build an update is, 0 for hints, and the key of its hint."""


@dataclass
class _Sending:
    """An update with those that it is for, and those of them that have it."""

    base: str
    update: ViewUpdate
    stored: int = 0  # the batch of the store that has its hint
    targets: tuple[str, ...] = ()
    have: set[str] = field(default_factory=set[str])
    numbers: dict[str, int] = field(default_factory=dict[str, int])  # of messages, by target

    def is_of(self, base: str, low: bytes, high: bytes | None) -> bool:
        """Whether its base row is in low <= stored key < high of a table."""
        at = self.update.base_key
        return self.base == base and low <= at and (high is None or at < high)


@dataclass
class _Lane:
    """What is for one node: updates that it was sent, and when, and those that wait for its answers."""

    sent: dict[Key, int] = field(default_factory=dict[Key, int])
    waits: dict[Key, None] = field(default_factory=dict[Key, None])  # in their order

    def forget(self, key: Key) -> None:
        """It is of no use there, or has arrived."""
        self.sent.pop(key, None)
        self.waits.pop(key, None)


class Outbox:
    """The updates of one node; `built` is called for a batch of a build whose updates have all arrived."""

    def __init__(self, node: Context) -> None:
        self._node = node
        self._sending: dict[Key, _Sending] = {}
        self._messages: dict[int, Key] = {}
        self._lanes: dict[str, _Lane] = defaultdict(_Lane)
        self._stored = 0  # batches that were given to the store
        self._synced = 0
        self._fresh: list[Key] = []  # not sent yet, in their order
        self._ticks = False
        self._left: dict[int, int] = {}  # of each batch of a build: updates that have not arrived
        self.built: Callable[[int], list[Effect]] = lambda _: []

    # -- what is to be sent --------------------------------------------------------------------------------

    def store(self, base: str, updates: Iterable[ViewUpdate]) -> list[Effect]:
        """Updates whose hints are written with a batch; what is to follow when it is synced."""
        self._stored += 1
        for update in updates:
            self._add(0, _Sending(base, update, self._stored))
        return [Wake(0, ("views", "synced", self._stored))]

    def load(self, base: str, hints: Iterable[ViewUpdate]) -> None:
        """Hints that are on the disk."""
        for update in hints:
            self._add(0, _Sending(base, update))

    def build(self, base: str, batch: int, updates: Iterable[ViewUpdate]) -> list[Effect]:
        """Send the updates of a batch of a build, which may have read rows that are not synced yet."""
        self._left[batch] = 0
        for update in updates:
            # maybe in the place of another one
            added = self._add(batch, _Sending(base, update, self._stored))
            self._left[batch] += added
        return self._send_fresh() if self._left[batch] else self.built(batch)

    def _add(self, batch: int, one: _Sending) -> bool:
        key = batch, hint_key(one.update)
        known = self._sending.get(key)
        if known is not None:
            if known.update.time >= one.update.time:
                return False
            self._close(key)
        self._sending[key] = one
        self._fresh.append(key)
        return True

    def has(self, update: ViewUpdate) -> bool:
        """Whether an update, or a newer one of the same row, is on its way with a hint."""
        known = self._sending.get((0, hint_key(update)))
        return known is not None and known.update.time >= update.time

    def end(self, batch: int) -> None:
        """A batch of a build is over: what of it has not arrived is of no use."""
        self._left.pop(batch, None)
        for key in [k for k in self._sending if k[0] == batch]:
            self._close(key)

    def forget(self, base: str, low: bytes, high: bytes | None) -> None:
        """The base rows of low <= stored key < high are no longer here."""
        for key in [k for k, one in self._sending.items() if one.is_of(base, low, high)]:
            self._close(key)

    def waits(self, base: str, low: bytes, high: bytes | None) -> bool:
        """Whether hints of such base rows have not arrived; who is given up is not waited for."""
        gone = self._node.view.given_up
        return any(
            not batch and one.is_of(base, low, high) and not {*one.targets} <= one.have | gone
            for (batch, _), one in self._sending.items()
        )

    def rows_of(self, base: str) -> set[bytes]:
        """The base rows of a table that hints are of which have not arrived."""
        return {
            o.update.base_key for (n, _), o in self._sending.items() if not n and o.base == base
        }

    @property
    def waiting(self) -> int:
        """How many hints have not arrived."""
        return sum(not batch for batch, _ in self._sending)

    # -- sending -------------------------------------------------------------------------------------------

    def synced(self, batch: int) -> list[Effect]:
        """What was given to the store up to a batch is on the disk."""
        self._synced = max(self._synced, batch)
        return self._send_fresh()

    def again(self) -> list[Effect]:
        """Some time is over: what has not arrived is sent again."""
        self._ticks = False
        effects = self._send_fresh()
        for target, lane in self._lanes.items():
            for key in (*lane.sent, *lane.waits):
                effects += self._offer(key, target)
        return [*effects, *self._tick()]

    def learned(self) -> list[Effect]:
        """Something was committed: updates may concern others now, or nobody."""
        view, effects = self._node.view, list[Effect]()
        for key, one in [*self._sending.items()]:
            if key in self._sending and one.update.view not in view.views:
                effects += self._arrived(key, one)
        return [*effects, *self._send([*self._sending])]

    def _send_fresh(self) -> list[Effect]:
        fresh, self._fresh = self._fresh, []
        return self._send(fresh)

    def _send(self, keys: Iterable[Key]) -> list[Effect]:
        """Send what is due, and look again after a while if something is left."""
        node, effects = self._node, list[Effect]()
        early = node.has(Defect.view_updates_are_sent_unsynced)
        for key in keys:
            one = self._sending.get(key)
            if one is None:
                continue
            if one.stored > self._synced and not early:
                self._fresh.append(key)
                continue
            effects += self._retarget(key, one)
            if key in self._sending:
                for target in one.targets:
                    effects += self._offer(key, target)
        return [*effects, *self._tick()]

    def _tick(self) -> list[Effect]:
        if not self._sending or self._ticks:
            return []
        self._ticks = True
        return [Wake(self._node.timing.resend, AGAIN)]

    def _retarget(self, key: Key, one: _Sending) -> list[Effect]:
        """Look whom an update is for now; who was not one of them before has it not."""
        update, node = one.update, self._node
        targets = targets_of(node, one.base, update, one.targets, built=bool(key[0]))
        if (targets or ()) != one.targets:
            one.have &= {*(targets or ())}
            for target in sorted({*one.targets} - {*(targets or ())}):
                self._lanes[target].forget(key)
            one.targets = targets or ()
        if targets is None and key[0] and node.has(Defect.staging_is_processed_early):
            return self._arrived(key, one)
        if targets and one.have >= {*targets}:
            return self._arrived(key, one)
        return []

    def _offer(self, key: Key, target: str) -> list[Effect]:
        """Send an update to one of its targets, unless that has it, or has too much to do, or was sent it just now."""
        node, one, lane = self._node, self._sending[key], self._lanes[target]
        now = node.around.now() // 1000
        sent_at = lane.sent.get(key)
        if target in one.have or (sent_at is not None and now - sent_at < node.timing.resend):
            return []
        if target in node.down or (sent_at is None and len(lane.sent) >= WINDOW):
            if sent_at is None:
                lane.waits[key] = None
            return []
        lane.waits.pop(key, None)
        lane.sent[key] = now
        number = one.numbers.setdefault(target, node.number())
        self._messages[number] = key
        cell = (one.update.key, one.update.time, one.update.value)
        return [Send(target, ReplicaWrite(number, node.view.version, one.update.view, cell))]

    def owns(self, number: int) -> bool:
        """Whether an answer is to one of these updates."""
        return number in self._messages

    def reply(self, sender: str, reply: ReplicaReply) -> list[Effect]:
        """A view replica has answered."""
        key = self._messages[reply.number]
        one = self._sending[key]
        if reply.outcome is not Outcome.done:
            return []
        one.have.add(sender)
        self._lanes[sender].forget(key)
        return [*self._retarget(key, one), *self._go_on(sender)]

    def _go_on(self, target: str) -> list[Effect]:
        """A node has answered: it gets what waits, as much as it may have."""
        lane, effects = self._lanes[target], list[Effect]()
        for key in list(islice(lane.waits, max(0, WINDOW - len(lane.sent)))):
            effects += self._offer(key, target)
        return effects

    def _arrived(self, key: Key, one: _Sending) -> list[Effect]:
        """All have an update: its hint goes; of a build the next rows are read, if it was the last."""
        self._close(key)
        batch, hint = key
        if not batch:
            return [Drop(hints_of(one.base), hint, hint + b"\0")]
        return self.built(batch) if self._left.get(batch) == 0 else []

    def _close(self, key: Key) -> None:
        one = self._sending.pop(key)
        for number in one.numbers.values():
            del self._messages[number]
        for target in one.targets:
            self._lanes[target].forget(key)
        if key[0] in self._left:
            self._left[key[0]] -= 1
