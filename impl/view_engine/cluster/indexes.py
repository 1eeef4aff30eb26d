"""The two indexes that a node has of a design document: the main one, and that of its replica partitions.

Each control step of the pair is one of the machine `partition-replicas`, one instance a partition, whose
state is what the two headers say. A step changes one of the headers, which is committed before the next: a
crash between two steps leaves a state of the machine, from which it goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from stagewright.impl.runtime import Instance, Program
from stagewright.impl.view_engine.cluster.messages import ViewRequest
from stagewright.impl.view_engine.cluster.streams import Part
from stagewright.impl.view_engine.defects import Defect, has
from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.documents.changes import (
    Position,
    Source,
    rollback_point,
)
from stagewright.impl.view_engine.file.header import IndexHeader
from stagewright.impl.view_engine.file.masks import partitions_of
from stagewright.impl.view_engine.group.group import Group, Kind
from stagewright.impl.view_engine.group.partitions import (
    ONE,
    PartitionStateError,
    state_of,
    with_state,
)
from stagewright.impl.view_engine.index.progress import still_wanted
from stagewright.impl.view_engine.index.updater import UpdaterLimits
from stagewright.impl.view_engine.log.log import NO_LOG, ServerLog
from stagewright.impl.view_engine.scheduling import THREADS, Scheduler
from stagewright.machines.couchbase.partitions.group_states import COUCHBASE
from stagewright.machines.couchbase.partitions.partition_replicas import Asked, PartitionReplicas
from stagewright.spec.define import define
from stagewright.spec.errors import RefusedError
from stagewright.spec.values import FrozenMap

State = FrozenMap[str, Any]  # the variables of an instance of one partition

# What the group processes do about a partition by themselves.
FOLLOWING = (
    PartitionReplicas.activate_replica.__name__,
    PartitionReplicas.pause_replica.__name__,
    PartitionReplicas.start_transfer.__name__,
    PartitionReplicas.finish_transfer.__name__,
    PartitionReplicas.resume_replica.__name__,
    PartitionReplicas.clean_up_replica.__name__,
)

_LEFT_OUT = {
    Defect.replica_is_not_paused: PartitionReplicas.pause_replica.__name__,
    Defect.replica_is_not_cleaned_up: PartitionReplicas.clean_up_replica.__name__,
    Defect.transfer_does_not_start: PartitionReplicas.start_transfer.__name__,
}
_due_steps: dict[
    object, tuple[str, ...]
] = {}  # which of them are enabled, by the state of a partition


class Indexes:
    """Of one design document on one node. All methods may be called from any thread."""

    def __init__(
        self,
        folder: Path,
        design: DesignDocument,
        source: Source,
        partitions: int,
        *,
        limits: UpdaterLimits | None = None,
        scheduler: Scheduler = THREADS,
        log: ServerLog = NO_LOG,
        takes_writes: Callable[[int], bool] = lambda _: True,
    ) -> None:
        """Open both or create them without partitions, and go on where a crash interrupted a transfer.

        `takes_writes` says whether this node has the active documents of a partition: if not, it was failed
        over and does not know yet, and what it has indexed answers no query.
        """

        def opened(kind: Kind) -> Group:
            return Group(
                folder, design, source, partitions,
                limits=limits, active=(), kind=kind, scheduler=scheduler, log=log,
            )  # fmt: skip

        self.main = opened("main")
        self.replica = opened("replica")
        self._source = source
        self._takes_writes = takes_writes
        self._lock = scheduler.condition()  # taken before those of the groups
        had = self.replica.header
        self._replicas = {*partitions_of(had.passive), *had.pending.passive, *self.on_transfer}
        self.main.log.replicas = lambda: self._replicas
        self.follow()

    @property
    def on_transfer(self) -> tuple[int, ...]:
        """The partitions that are queried in the replica index, until the main one has caught up."""
        return self.main.header.replicas_on_transfer

    @property
    def replicas(self) -> frozenset[int]:
        """The replica partitions of this node, those on transfer included."""
        return frozenset(self._replicas)

    # -- requests of the cluster manager -----------------------------------------------------------------

    def set_partition_states(
        self,
        active: Iterable[int] = (),
        passive: Iterable[int] = (),
        cleanup: Iterable[int] = (),
    ) -> None:
        """As `Group.set_partition_states` of the main index; a replica that is to be active is transferred.

        Raises PartitionStateError.
        """
        with self._lock:
            for partition in active:
                if partition in self._replicas and not self._in_main(partition):
                    self._step(PartitionReplicas.fail_over.__name__, partition)
                elif partition not in self.on_transfer:
                    self.main.set_partition_states(active=[partition])
            for partition in passive:
                self._make_passive(partition)
            for partition in cleanup:
                if self._in_main(partition) or partition in self.on_transfer:
                    self._step(PartitionReplicas.set_cleanup.__name__, partition)
            self.follow()

    def _make_passive(self, partition: int) -> None:
        if partition in self.on_transfer:
            self._step(PartitionReplicas.set_passive.__name__, partition)
            return
        if partition in self._replicas:
            self._step(PartitionReplicas.remove_replica.__name__, partition)
        self.main.set_partition_states(passive=[partition])

    def add_replicas(self, partitions: Iterable[int]) -> None:
        """Index them as replicas; what the main index has is left alone."""
        with self._lock:
            self.follow()
            for partition in partitions:
                if not self._in_main(partition) and partition not in self._replicas:
                    self._step(PartitionReplicas.add_replica.__name__, partition)

    def remove_replicas(self, partitions: Iterable[int]) -> None:
        """They are not needed any more; those on transfer stay."""
        with self._lock:
            for partition in partitions:
                if partition in self._replicas and partition not in self.on_transfer:
                    self._step(PartitionReplicas.remove_replica.__name__, partition)
            self.follow()

    def mark_unindexable(self, partitions: Iterable[int]) -> None:
        """Pause partitions of the main index. Raises PartitionStateError for one on transfer."""
        with self._lock:
            wanted = [*partitions]
            if moving := sorted({*wanted} & {*self.on_transfer}):
                raise PartitionStateError(f"the partitions {moving} are on transfer")
            self.main.mark_unindexable(wanted)

    def mark_indexable(self, partitions: Iterable[int]) -> None:
        """Go on with those that are paused; others are left alone."""
        with self._lock:
            header = self.main.header
            paused = {*header.unindexable_seqs, *header.pending.unindexable}
            self.main.mark_indexable([p for p in partitions if p in paused])

    # -- queries -----------------------------------------------------------------------------------------

    @contextmanager
    def reading(self, request: ViewRequest) -> Iterator[Sequence[Part]]:
        """The snapshots that have the wanted partitions, of one moment; each partition in one of them.

        Partitions that no query may see here, or that take writes elsewhere, are in none. Raises
        IndexNotReadyError.
        """
        asked = self._source.positions() if request.query.stale == "false" else {}
        with ExitStack() as held:
            yield self._held(request.query.partitions or (), asked, held)

    def _held(
        self, partitions: Sequence[int], wanted: Mapping[int, Position], held: ExitStack
    ) -> Sequence[Part]:
        waits = not has(Defect.stale_false_does_not_wait)
        while True:
            if wanted and waits:
                self.main.wait_until_current()
                wanted = still_wanted(wanted, self._source.positions())
            with self._lock, self.main.lock, self.replica.lock:
                if waits and not self.main.is_current(wanted):
                    continue
                in_replica = self.replica.header.active & _mask(self.on_transfer)
                parts: list[Part] = []
                partitions = [p for p in partitions if self._takes_writes(p)]
                in_main = self.main.header.active
                if has(Defect.transfer_is_answered_twice):
                    in_main |= _mask(self.on_transfer)
                for group, mask in (
                    (self.main, in_main),
                    (self.replica, in_replica),
                ):
                    if mine := [p for p in partitions if mask >> p & 1]:
                        snapshot = group.held()
                        held.callback(snapshot.file.close)
                        parts.append(Part(snapshot, mine))
                answered = [p for part in parts for p in part.partitions]
                once = len(answered) == len({*answered})
                self.main.log.trace.answered(self.main.header, wanted, once=once)
                return parts

    # -- what the groups do by themselves ------------------------------------------------------------------

    def follow(self) -> bool:
        """Take the steps of transfers that are due: called now and then. Whether there were some."""
        taken = False
        with self._lock:
            while step := next((s for s in self._due() if not _is_left_out(s[0])), None):
                try:
                    self._step(*step)
                except PartitionStateError:
                    return taken  # an updater took the index back meanwhile: it is not due any more
                taken = True
            if self.main.log.trace.is_kept and self._replicas:
                self.main.log.trace.did("rest", settled=not any(self._due()))
        return taken

    def _due(self) -> Iterator[tuple[str, int]]:
        main, replica = self.main.header, self.replica.header
        there = partitions_of(replica.active | replica.passive)
        waiting = (*replica.pending.active, *replica.pending.passive)
        for partition in sorted({*there, *waiting, *self.on_transfer}):
            numbers = self._numbers(main, replica, partition)
            key = (
                _bits(main, partition),
                _bits(replica, partition),
                partition in self._replicas,
                partition in main.replicas_on_transfer,
                numbers[0] >= numbers[2],  # all that steps of FOLLOWING ask of sequence numbers
            )
            if key not in _due_steps:
                is_replica = partition in self._replicas
                state = self._state(main, replica, partition, is_replica=is_replica)
                enabled = Instance(_program(), dict(state)).enabled()
                _due_steps[key] = tuple(s.action for s in enabled if s.action in FOLLOWING)
            for action in _due_steps[key]:
                yield action, partition

    def close(self) -> None:
        """Stop all work of both."""
        self.main.close()
        self.replica.close()

    def _in_main(self, partition: int) -> bool:
        header = self.main.header
        pending = (*header.pending.active, *header.pending.passive)
        return bool((header.active | header.passive) >> partition & 1) or partition in pending

    def _step(self, action: str, partition: int) -> None:
        """Fire a step, and commit what it changes in one of the indexes. Raises PartitionStateError."""

        def fired(
            main: IndexHeader, replica: IndexHeader
        ) -> tuple[State, IndexHeader, IndexHeader]:
            after = _fired(action, self._state(main, replica, partition, is_replica=was_one))
            if isinstance(after, str):
                raise PartitionStateError(f"partition {partition}: {after}")
            return after, *_headers(main, replica, partition, after)

        was_one = partition in self._replicas
        before = self.main.header, self.replica.header
        after, main, replica = fired(*before)
        is_one = bool(after["replicas"])
        assert (main, replica, is_one) != (*before, was_one), f"{action} changes nothing"
        self._replicas = self._replicas | {partition} if is_one else self._replicas - {partition}
        if main != before[0]:
            self.main.change(lambda header: fired(header, self.replica.header)[1])
        if replica != before[1]:
            self.replica.change(lambda header: fired(self.main.header, header)[2])
        if action == PartitionReplicas.add_replica.__name__:
            self.main.log.replica_added(partition)
        elif action == PartitionReplicas.remove_replica.__name__:
            self.main.log.replica_removed(partition)

    def _numbers(
        self, main: IndexHeader, replica: IndexHeader, partition: int
    ) -> tuple[int, int, int]:
        """Up to where the two indexes have a partition, and what a transfer has to reach."""
        frozen = replica.unindexable_seqs.get(partition, 0)
        log = replica.partition_versions.get(partition, ())
        # of a history that was left meanwhile the main index can only reach what both share
        target = rollback_point(frozen, log, self._source.failover_log(partition))
        ours = main.seqs.get(partition, main.unindexable_seqs.get(partition, 0))
        return ours, replica.seqs.get(partition, frozen), target

    def _state(
        self, main: IndexHeader, replica: IndexHeader, number: int, *, is_replica: bool
    ) -> State:
        """A partition as the two headers have it."""
        partition = ONE
        moving = number in main.replicas_on_transfer
        asked = Asked.nothing
        if moving or main.active >> number & 1 or number in main.pending.active:
            asked = Asked.active
        elif main.passive >> number & 1 or number in main.pending.passive:
            asked = Asked.passive
        elif is_replica:
            asked = Asked.replica
        ours, its, target = self._numbers(main, replica, number)
        state: dict[str, Any] = {
            **state_of(main, number, partition, "main."),
            **state_of(replica, number, partition, "replica."),
            "replicas": frozenset({partition} if is_replica else ()),
            "on_transfer": frozenset({partition} if moving else ()),
            "asked": FrozenMap({partition: asked}),
            "kv": FrozenMap({partition: max(ours, its)}),
            "target": FrozenMap({partition: target}),
        }
        return FrozenMap(state)


def _is_left_out(action: str) -> bool:
    return any(has(defect) for defect, step in _LEFT_OUT.items() if step == action)


@cache
def _program() -> Program:
    return Program(define(PartitionReplicas, profile=COUCHBASE.name))


# A step depends on nothing else, and most partitions take the same ones.
@lru_cache(maxsize=1 << 16)
def _fired(action: str, state: State) -> State | str:
    """A partition after a step; a text why the definition refuses it."""
    instance = Instance(_program(), dict(state), name="a partition")
    try:
        instance.fire(action, p=ONE)
    except RefusedError as error:
        return str(error)
    return FrozenMap(instance.state)


def _headers(
    main: IndexHeader, replica: IndexHeader, number: int, state: State
) -> tuple[IndexHeader, IndexHeader]:
    """The two headers with what an instance says of its partition."""
    others = {p for p in main.replicas_on_transfer if p != number}
    moving = tuple(sorted(others | {number} if state["on_transfer"] else others))
    return (
        replace(with_state(main, number, state["main.group"]), replicas_on_transfer=moving),
        with_state(replica, number, state["replica.group"]),
    )


def _bits(header: IndexHeader, partition: int) -> tuple[bool, ...]:
    """What a header says of a partition, but for its sequence number."""
    masks = (header.active, header.passive, header.cleanup)
    pending = header.pending
    lists = (
        header.seqs, header.unindexable_seqs,
        pending.active, pending.passive, pending.unindexable,
    )  # fmt: skip
    return (*(bool(mask >> partition & 1) for mask in masks), *(partition in of for of in lists))


def _mask(partitions: Iterable[int]) -> int:
    return sum(1 << partition for partition in partitions)
