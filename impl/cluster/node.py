"""A node: coordinates requests, stores rows, learns from group0, and does what barriers and actions ask.

It does no I/O: messages and wake-ups come in, effects go out. What it must not forget is an effect, too.
"""

from __future__ import annotations

from typing import assert_never

from stagewright.impl.cluster.defects import Defect
from stagewright.impl.cluster.messages import (
    GROUP0,
    BarrierAck,
    BarrierRequest,
    ClientRequest,
    DropRows,
    Effect,
    Entries,
    Fetch,
    Learn,
    Message,
    OperationReply,
    Outcome,
    Phase,
    PullRows,
    PushAck,
    PushRows,
    PutRows,
    ReplicaReply,
    ReplicaRequest,
    RowChunk,
    RunOperation,
    Send,
    Wake,
)
from stagewright.impl.cluster.node_store import Rows
from stagewright.impl.cluster.requests import Requests
from stagewright.impl.cluster.settings import Settings
from stagewright.impl.cluster.transfers import Transfers
from stagewright.impl.cluster.view import TabletView, View
from stagewright.impl.store import Entry
from stagewright.machines.scylladb.tablets.tablet_stages import Run

ROWS_MAX = 1 << 30

# What a node does only after it has learned everything that is committed.
Guarded = BarrierRequest | RunOperation | PushRows


class Node:
    """One node, from a start to a crash. It starts with the view that its disk holds."""

    def __init__(self, name: str, view: View, rows: Rows, settings: Settings) -> None:
        self.name = name
        self.view = view
        self._rows = rows
        self._settings = settings
        self._requests = Requests(name, settings)
        self._transfers = Transfers(name, rows, settings)
        self._fetches = 0
        self._waiting: dict[int, Guarded] = {}
        self._draining: list[BarrierRequest] = []

    def handle(self, message: Message) -> list[Effect]:
        """What a message causes."""
        match message:
            case ClientRequest():
                return self._requests.begin(message, self.view)
            case ReplicaRequest():
                return [*self._serve(message)]
            case ReplicaReply():
                return [*self._requests.reply(message), *self._end_drains()]
            case Entries(entries, answers):
                return self._learn(entries, answers)
            case BarrierRequest() if self._settings.has(Defect.barrier_does_not_learn):
                return self._guarded(message)
            case BarrierRequest() | RunOperation() | PushRows():
                return self._after_learning(message)
            case PullRows():
                return self._transfers.give(message, self.view)
            case RowChunk():
                return self._transfers.received(message)
            case PushAck():
                return self._transfers.pushed(message)
            case _:
                raise AssertionError(f"{self.name} does not take {message}")

    def wake(self, reason: tuple[str | int, ...]) -> list[Effect]:
        """What the passing of time causes."""
        match reason:
            case ("request", int(number)):
                return [*self._requests.give_up(number), *self._end_drains()]
            case ("fetch", int(number), int(attempts)):
                return self._fetch(number, attempts)
            case ("transfer", str(tablet), int(number), str(after), int(attempts)):
                return self._transfers.again(tablet, number, after, attempts)
            case _:
                raise AssertionError(f"{self.name} is not woken for {reason}")

    def fail_operation(self, tablet: str) -> list[Effect]:
        """An error in the midst of streaming or repairing a tablet."""
        return self._transfers.fail(tablet, "an error on the way")

    def drained(self, version: int) -> bool:
        """Whether no request that began under an older version is going on here."""
        return self._requests.drained(version)

    def rows_between(self, tablet: str, after: str, last: str | None) -> int:
        """How many rows the node has of a tablet after a key, up to another one if there is one."""
        rows = self._rows.rows_after(tablet, after, ROWS_MAX)
        return sum(last is None or row.key <= last for row in rows)

    # -- learning ----------------------------------------------------------------------------------------

    def _after_learning(self, message: Guarded) -> list[Effect]:
        """Handle a message once everything that is committed now has been learned."""
        self._fetches += 1
        self._waiting[self._fetches] = message
        return self._fetch(self._fetches, 0)

    def _fetch(self, number: int, attempts: int) -> list[Effect]:
        if number not in self._waiting:
            return []
        if attempts == self._settings.attempts:
            del self._waiting[number]  # who sent the message will find out by itself
            return []
        wake = Wake(self._settings.resend_ms, ("fetch", number, attempts + 1))
        return [Send(GROUP0, Fetch(self.name, self.view.position, number)), wake]

    def _learn(self, entries: tuple[Entry, ...], answers: int | None) -> list[Effect]:
        """Apply what is new; ask for what is missing in between; then do what waited for it."""
        new = [e for e in entries if e.position > self.view.position]
        if new and new[0].position > self.view.position + 1:
            return [Send(GROUP0, Fetch(self.name, self.view.position, 0))]
        effects: list[Effect] = []
        if new:
            before, self.view = self.view, self.view.after_all(new)
            now = {t.name for t in self.view.tablets.values() if t.stored_at(self.name)}
            was = {t.name for t in before.tablets.values() if t.stored_at(self.name)}
            effects.append(Learn(tuple(new), tuple(sorted(now - was)), tuple(sorted(was - now))))
            self._transfers.end_closed(self.view)
        waited = self._waiting.pop(answers, None) if answers is not None else None
        return effects if waited is None else [*effects, *self._guarded(waited)]

    def _guarded(self, message: Guarded) -> list[Effect]:
        match message:
            case BarrierRequest(_, _, Phase.drain):
                self._draining.append(message)
                return self._end_drains()
            case BarrierRequest():
                return [self._ack(message)]
            case RunOperation():
                return self._run(message)
            case PushRows():
                tablet = self.view.tablets[message.tablet]
                runs = tablet.stage.action is Run.repair and tablet.session == message.session
                return self._transfers.take(message) if runs else []
        assert_never(message)

    def _end_drains(self) -> list[Effect]:
        careless = self._settings.has(Defect.barrier_does_not_drain)
        done = [d for d in self._draining if careless or self._requests.drained(d.version)]
        self._draining = [d for d in self._draining if d not in done]
        return [self._ack(d) for d in done]

    def _ack(self, request: BarrierRequest) -> Send:
        return Send(request.coordinator, BarrierAck(request.round, request.phase, self.name))

    # -- rows --------------------------------------------------------------------------------------------

    def _serve(self, request: ReplicaRequest) -> list[Effect]:
        """Read or write a row, unless the request is too old, or this is no replica."""
        tablet = self.view.tablets.get(request.tablet)
        fenced = request.version < self.view.fence and not self._settings.has(
            Defect.fence_is_ignored
        )
        if fenced or tablet is None or not tablet.stored_at(self.name):
            outcome = Outcome.fenced if fenced else Outcome.no_storage
            return [Send(request.coordinator, ReplicaReply(request.number, self.name, outcome))]
        if request.write:
            reply = ReplicaReply(request.number, self.name, Outcome.done)
            return [PutRows(request.tablet, (request.row,)), Send(request.coordinator, reply)]
        row = self._rows.row(request.tablet, request.row.key)
        reply = ReplicaReply(request.number, self.name, Outcome.done, row)
        return [Send(request.coordinator, reply)]

    def _run(self, order: RunOperation) -> list[Effect]:
        """Do what the coordinator asks, if the stage that it asks it for is still the tablet's."""
        tablet = self.view.tablets[order.tablet]
        stage, mine = tablet.stage, self._is_asked(order.run, tablet)
        if stage.action is not order.run or tablet.session != order.session or not mine:
            reason = f"{self.name} is not asked for {order.run.name} at {stage.name}"
            return [
                Send(order.coordinator, OperationReply(order.operation, self.name, False, reason))
            ]
        if order.run is not Run.cleanup:
            return self._transfers.begin(order, self.view)
        kept = self._settings.has(Defect.cleanup_leaves_rows)
        done = Send(order.coordinator, OperationReply(order.operation, self.name, True))
        return [done] if kept else [DropRows(order.tablet), done]

    def _is_asked(self, run: Run, tablet: TabletView) -> bool:
        match run:
            case Run.streaming:
                return self.name in tablet.pending
            case Run.repair:
                return self.name in tablet.replicas
            case Run.cleanup:
                return self.name not in tablet.chosen(tablet.stage.writes)
            case Run.nothing:
                return False
