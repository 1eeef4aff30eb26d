"""Records what the nodes and the coordinator do beside the steps of tablets: barriers, requests, sessions, rows.

It sees what their logs would: the messages that a node handles, and the effects that it carries out, with what
the node knows at that time. Each kind is a file of its own, judged by a definition in `machines/recorded`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import cast

from stagewright.impl.cluster.barriers import Closed
from stagewright.impl.cluster.messages import (
    BarrierAck,
    BarrierRequest,
    ClientReply,
    DropRows,
    Effect,
    Learn,
    Message,
    OperationReply,
    Outcome,
    Phase,
    PutRows,
    ReplicaReply,
    ReplicaRequest,
    RowChunk,
    RunOperation,
    Send,
)
from stagewright.impl.cluster.node import Node
from stagewright.impl.cluster.settings import Consistency, Settings
from stagewright.impl.simulator.clock import Clock
from stagewright.machines.recorded import RECORDED
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Run
from stagewright.spec.definition import Definition
from stagewright.spec.loading import load
from stagewright.spec.trace import TraceWriter
from stagewright.spec.values import FrozenMap, State, Value
from stagewright.spec.verdict import Step

_FORGETS = TabletMigration.fail_over.__name__
_COUNTS = TabletMigration.pass_barrier.__name__


@lru_cache(maxsize=1)
def recorded_definitions() -> Mapping[str, Definition]:
    """The definitions of what is recorded, by the name of the file."""
    return {name: load(place) for name, place in RECORDED.items()}


class Recorder:
    """Writes one file for each kind of what is recorded, until it is closed."""

    def __init__(self, directory: Path, trace: str, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock
        self._started: set[tuple[str, str]] = set()
        self._operations: dict[int, tuple[str, Run]] = {}  # what the coordinators have asked for
        self._sessions: dict[tuple[str, str], int | None] = {}  # by node and tablet, as it learned
        self._answered: dict[int, set[str]] = {}  # writes: who has answered
        self._barriers: dict[int, int] = {}  # the version that each is for
        with ExitStack() as stack:
            self._writers = {
                name: stack.enter_context(
                    TraceWriter(directory / f"{name}.jsonl", definition, trace)
                )
                for name, definition in recorded_definitions().items()
            }
            self._stack = stack.pop_all()

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files."""
        return tuple(writer.path for writer in self._writers.values())

    def close(self) -> None:
        """Mark the end of everything, and close the files."""
        for writer in self._writers.values():
            writer.close(time=self._clock.now)
        self._stack.close()

    def _take(self, kind: str, entity: str, node: str, action: str, **arguments: Value) -> None:
        self._start(kind, entity, node, FrozenMap({}))
        step = Step(action, FrozenMap(arguments))
        self._writers[kind].record(entity, step, {}, node=node, time=self._clock.now)

    def _start(self, kind: str, entity: str, node: str, known: State) -> None:
        if (kind, entity) not in self._started:
            self._started.add((kind, entity))
            self._writers[kind].start(entity, known, node=node, time=self._clock.now)

    # -- the coordinator -----------------------------------------------------------------------------

    def stepped(self, tablet: str, step: Step, before: State, after: State, node: str) -> None:
        """The coordinator at a node has taken a step of a tablet."""
        if step.action == _COUNTS:
            self._take("stage-barriers", tablet, node, "count")
        elif step.action == _FORGETS:
            self._take("stage-barriers", tablet, node, "forget")
        if after["stage"] is not before["stage"]:
            self._take("stage-barriers", tablet, node, "enter")

    def barrier_ended(self, ended: Closed, entered: Mapping[str, int], node: str) -> None:
        """A barrier is over; `entered`: the version with which each tablet entered its stage."""
        if not ended.passed:
            return
        for asked in ended.nodes:
            self._take("node-barriers", f"barrier{ended.number}@{asked}", node, "end")
        for tablet, version in ended.tablets.items():
            if entered[tablet] == version:
                self._take("stage-barriers", tablet, node, "end")

    def sent_by_coordinator(self, message: Message) -> None:
        """The coordinator sends a message."""
        if isinstance(message, RunOperation):
            self._operations[message.operation] = message.tablet, message.run
        elif isinstance(message, BarrierRequest):
            self._barriers[message.round] = message.version

    # -- the nodes -----------------------------------------------------------------------------------

    def heard(self, node: Node, message: Message) -> None:
        """A node is about to handle a message."""
        if not isinstance(message, ReplicaReply) or message.outcome is not Outcome.done:
            return
        answered = self._answered.get(message.number)
        if answered is not None and message.replica not in answered:
            answered.add(message.replica)
            self._take("writes", f"write{message.number}", node.name, "answer")

    def carried_out(self, node: Node, effect: Effect, handled: Message | None) -> None:
        """A node has carried out an effect of what it handled."""
        match effect:
            case Learn():
                self._learned(node, effect)
            case PutRows(tablet, _, session) if not isinstance(handled, ReplicaRequest):
                self._take("replicas", f"{tablet}@{node.name}", node.name, "store_streamed")
                if session is not None:
                    entity = f"{tablet}/{session}@{node.name}"
                    self._take("sessions", entity, node.name, "store")
            case DropRows(tablet):
                self._take("replicas", f"{tablet}@{node.name}", node.name, "delete_rows")
            case Send(_, BarrierAck() as ack):
                self._acknowledged(node, ack)
            case Send(_, OperationReply(operation, _, True)):
                tablet, run = self._operations[operation]
                if run is Run.cleanup:
                    self._take("replicas", f"{tablet}@{node.name}", node.name, "answer_cleanup")
            case Send(_, RowChunk() as chunk) if chunk.session is not None and not chunk.refused:
                last = None if chunk.last else chunk.rows[-1].key
                read = node.rows_between(chunk.tablet, chunk.after, last)
                entity = f"{chunk.tablet}/{chunk.session}@{node.name}"
                self._take("sessions", entity, node.name, "send", whole=read == len(chunk.rows))
            case Send(_, ReplicaRequest() as request) if request.write:
                self._began(node, request)
            case Send(_, ReplicaReply() as reply) if isinstance(handled, ReplicaRequest):
                self._served(node, handled, reply)
            case Send(_, ClientReply() as reply) if reply.number in self._answered:
                what = "acknowledge" if reply.succeeded else "fail"
                self._take("writes", f"write{reply.number}", node.name, what)
            case _:
                pass

    def _learned(self, node: Node, learn: Learn) -> None:
        for tablet in learn.allocate:
            self._take("replicas", f"{tablet}@{node.name}", node.name, "allocate")
        for tablet in learn.deallocate:
            self._take("replicas", f"{tablet}@{node.name}", node.name, "deallocate")
        for entry in learn.entries:
            if not entry.entity:
                continue
            session = cast("int | None", entry.attached["session"])
            key = node.name, entry.entity
            before = self._sessions.get(key)
            if session != before:
                self._sessions[key] = session
                for number, what in ((before, "close"), (session, "open")):
                    if number is not None:
                        entity = f"{entry.entity}/{number}@{node.name}"
                        self._take("sessions", entity, node.name, what)

    def _acknowledged(self, node: Node, ack: BarrierAck) -> None:
        entity, version = f"barrier{ack.round}@{node.name}", self._barriers[ack.round]
        if ack.phase is Phase.fence:
            if node.view.fence >= version:
                self._take("node-barriers", entity, node.name, "learn_fence")
            self._take("node-barriers", entity, node.name, "answer_fence")
            return
        if node.view.version >= version:
            self._take("node-barriers", entity, node.name, "learn")
        if node.drained(version):
            self._take("node-barriers", entity, node.name, "drain")
        self._take("node-barriers", entity, node.name, "answer_drain")

    def _began(self, node: Node, request: ReplicaRequest) -> None:
        """A node sends a write to one replica, maybe the first."""
        entity = f"write{request.number}"
        if request.number not in self._answered:
            self._answered[request.number] = set()
            view = node.view
            tablet = view.tablets[request.tablet]
            targets = tablet.chosen(tablet.stage.writes)
            known: dict[str, Value] = {
                "stage": tablet.stage,
                "staying": len(tablet.staying),
                "leaving": len(tablet.leaving),
                "pending": len(tablet.pending),
                "given_up": len(view.ignored.intersection(targets)),
                "quorum": self._settings.consistency is Consistency.quorum,
            }
            self._start("writes", entity, node.name, FrozenMap(known))
        self._take("writes", entity, node.name, "send")

    def _served(self, node: Node, request: ReplicaRequest, reply: ReplicaReply) -> None:
        entity, what = f"{request.tablet}@{node.name}", "refuse"
        if reply.outcome is Outcome.done:
            what = "write" if request.write else "read"
        self._take("replicas", entity, node.name, what, older=request.version < node.view.fence)
