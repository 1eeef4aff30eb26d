"""The states of partitions: decided by the machine `partition-states`, one instance a partition.

What the header says of a partition is the state of its instance. A request is a step of it: what the
definition refuses is refused here, with the requirement's name, and what the step assigns is what the new
header says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from stagewright.impl.runtime import Instance, Program
from stagewright.impl.view_engine.defects import Defect, has
from stagewright.impl.view_engine.file.header import IndexHeader, Pending, Root
from stagewright.impl.view_engine.file.masks import partitions_of
from stagewright.impl.view_engine.tree.nodes import Pointer
from stagewright.machines.couchbase.partitions.group_states import COUCHBASE, SEED, Partition, Role
from stagewright.machines.couchbase.partitions.partition_states import PartitionStates
from stagewright.spec.define import define
from stagewright.spec.errors import RefusedError
from stagewright.spec.terms.terms import Term
from stagewright.spec.values import FrozenMap

Request = Callable[[PartitionStates, Term[Partition]], None]

SET_ACTIVE = PartitionStates.set_active
SET_PASSIVE = PartitionStates.set_passive
SET_CLEANUP = PartitionStates.set_cleanup
MARK_UNINDEXABLE = PartitionStates.mark_unindexable
MARK_INDEXABLE = PartitionStates.mark_indexable
CLEAN = PartitionStates.clean.__name__
APPLY = PartitionStates.apply_pending_transition.__name__
ONE = Partition(0)  # each instance is of one partition


class PartitionStateError(ValueError):
    """A request that the definition does not allow in the state that the partition is in."""


def request(header: IndexHeader, action: Request, partitions: Iterable[int]) -> IndexHeader:
    """The header after a request for each of these partitions.

    Raises PartitionStateError, naming the requirement that does not hold; then none is changed.
    """
    for number in partitions:
        if not 0 <= number < header.num_partitions:
            raise PartitionStateError(f"the index has no partition {number}")
        state = state_of(header, number, ONE)
        after = _fired(_program(), action.__name__, FrozenMap(state))
        if isinstance(after, str):
            raise PartitionStateError(f"partition {number}: {after}")
        header = with_state(header, number, after)
    return header


def settle(header: IndexHeader) -> IndexHeader:
    """The header after what follows by itself.

    Cleanup ends where no tree has rows of the partition any more, and what was pending for it happens.
    """
    there = _mask(header.id_root)
    for root in header.view_roots:
        there |= _mask(root)
    pending = {*header.pending.active, *header.pending.passive}
    if has(Defect.cleanup_ends_at_once):
        there = 0
    clean = {number for number in partitions_of(header.cleanup) if not there >> number & 1}
    ready = {number for number in pending if not (header.cleanup >> number & 1) or number in clean}
    if has(Defect.pending_is_forgotten):
        ready = set()
    steps = ((CLEAN, sorted(clean)), (APPLY, sorted(ready)))
    for action, numbers in steps:
        for number in numbers:
            after = _fired(_program(), action, FrozenMap(state_of(header, number, ONE)))
            assert not isinstance(after, str), after
            header = with_state(header, number, after)
    return header


def _mask(root: Root | None) -> int:
    return 0 if root is None else Pointer(b"", *root).mask


@cache
def _program_of(profile: str) -> Program:
    return Program(define(PartitionStates, profile=profile))


def _program() -> Program:
    return _program_of((SEED if has(Defect.cleanup_is_not_waited_for) else COUCHBASE).name)


# A step depends on nothing else, and most partitions take the same ones.
@lru_cache(maxsize=1 << 16)
def _fired(program: Program, action: str, state: FrozenMap[str, Any]) -> Any:
    """What the header says of a partition after a step; a text why the definition refuses it."""
    instance = Instance(program, dict(state), name="a partition")
    arguments = {} if action == APPLY else {"p": ONE}
    try:
        instance.fire(action, **arguments)
    except RefusedError as error:
        return str(error)
    return instance.state["group"]


def state_of(
    header: IndexHeader, number: int, partition: Partition, prefix: str = ""
) -> dict[str, Any]:
    """What a header says of a partition as the variables of a `PartitionGroup`; `prefix` names the part."""
    active, passive = _bit(header.active, number), _bit(header.passive, number)
    pending_active = number in header.pending.active
    pending_passive = number in header.pending.passive
    pending_unindexable = number in header.pending.unindexable
    frozen = number in header.unindexable_seqs
    seq = header.seqs.get(number, header.unindexable_seqs.get(number, 0))
    cleanup = _bit(header.cleanup, number)
    content = {
        "cbit": cleanup,
        "in_seqs": number in header.seqs,
        "in_unindexable_seqs": frozen,
        "has_version": active or passive,
        "seq": seq,
        "rows": int(cleanup) or seq,
    }
    entry: Any = {
        "abit": active,
        "pbit": passive,
        "pending_active": pending_active,
        "pending_passive": pending_passive,
        "pending_unindexable": pending_unindexable,
        "content": FrozenMap(content),
    }
    role = Role.none
    if active or pending_active:
        role = Role.active
    elif passive or pending_passive:
        role = Role.passive
    paused = frozenset({partition} if frozen or pending_unindexable else ())
    return {
        f"{prefix}group": FrozenMap({partition: FrozenMap(entry)}),
        f"{prefix}requested": FrozenMap({partition: role}),
        f"{prefix}paused": paused,
    }


def _bit(mask: int, number: int) -> bool:
    return bool(mask >> number & 1)


def with_state(header: IndexHeader, number: int, group: Any) -> IndexHeader:
    """The header with what `group`, of an instance of one partition, says of it."""
    [entry] = group.values()
    content = entry["content"]
    seq = int(content["seq"])
    versions = {p: log for p, log in header.partition_versions.items() if p != number}
    if content["has_version"] and seq and number in header.partition_versions:
        versions[number] = header.partition_versions[number]
    return replace(
        header,
        active=_set(header.active, number, entry["abit"]),
        passive=_set(header.passive, number, entry["pbit"]),
        cleanup=_set(header.cleanup, number, content["cbit"]),
        seqs=_listed(header.seqs, number, seq, content["in_seqs"]),
        unindexable_seqs=_listed(
            header.unindexable_seqs, number, seq, content["in_unindexable_seqs"]
        ),
        pending=Pending(
            _member(header.pending.active, number, entry["pending_active"]),
            _member(header.pending.passive, number, entry["pending_passive"]),
            _member(header.pending.unindexable, number, entry["pending_unindexable"]),
        ),
        partition_versions=versions,
    )


def _set(mask: int, number: int, bit: bool) -> int:
    return mask | 1 << number if bit else mask & ~(1 << number)


def _listed(seqs: Any, number: int, seq: int, present: bool) -> dict[int, int]:
    rest = {p: s for p, s in seqs.items() if p != number}
    return {**rest, number: seq} if present else rest


def _member(partitions: tuple[int, ...], number: int, present: bool) -> tuple[int, ...]:
    rest = {p for p in partitions if p != number}
    return tuple(sorted(rest | {number} if present else rest))
