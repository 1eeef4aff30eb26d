"""Follows replica partitions through a failover: from the replica index of a node to its main index.

A partition is followed from when it is a replica until it is none any more: its transfer has ended, or it is
removed. What the two indexes do by themselves in between is hidden.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from stagewright.machines.couchbase.partitions.group_states import Partition
from stagewright.machines.couchbase.partitions.partition_replicas import PartitionReplicas
from stagewright.machines.couchbase.partitions.partition_states import (
    Content,
    Entry,
    PartitionGroup,
)
from stagewright.spec.declarations.variables import Var
from stagewright.spec.machine import Part
from stagewright.spec.trace import Event
from stagewright.spec.values import FrozenMap
from stagewright.traces.databases.couchbase.couchbase_record import GroupName, Record, Said
from stagewright.traces.databases.names import called, leaf, sizes, step
from stagewright.traces.events.observability import HiddenSteps, Recording

MACHINE = called(PartitionReplicas)
R = PartitionReplicas
PARTITION = Partition(0)
_P = PARTITION.name
_NO_IDS: frozenset[int] = frozenset()
_HIDDEN = frozenset(
    {
        *(step(action) for action in (R.write, R.index_main, R.index_replica)),
        *(step(PartitionGroup.clean, of=index) for index in (R.main, R.replica)),
        *(step(action) for action in (R.apply_pending_in_main, R.apply_pending_in_replica)),
        *(step(action) for action in (R.activate_replica, R.clean_up_replica)),
        *(step(action) for action in (R.fail_over, R.pause_replica, R.resume_replica)),
    }
)
RECORDING = Recording(
    HiddenSteps(_HIDDEN),
    False,
    False,
    FrozenMap(sizes({Partition: 1})),
    numbered=frozenset(sizes({Partition: 1})),
)


@dataclass
class _Replica:
    entity: str
    on_transfer: bool
    sequence: int = 0


class ReplicasReading:
    """Makes events of records that come in the order of time."""

    def __init__(self, profile: str) -> None:
        self.events: list[tuple[int, Event]] = []
        self._profile = profile
        self._replicas: dict[tuple[GroupName, int], _Replica] = {}
        self._numbers: dict[tuple[GroupName, int], int] = {}

    def take(self, part: int, record: Record) -> None:
        """Go on with the next record."""
        index = replace(record.group, kind="replicas")
        match record.said:
            case Said.CONFIGURED | Said.STARTED | Said.ROLLED_BACK | Said.LEFT:
                for key in [key for key in self._replicas if key[0] == index]:
                    del self._replicas[key]
            case Said.REPLICAS_ADDED:
                for p in sorted(record.lists["replicas"]):
                    self._follow(part, record, (index, p), on_transfer=False)
            case Said.REPLICAS_REMOVED:
                for p in sorted(record.lists["replicas"]):
                    found = self._replicas.pop((index, p), None)
                    if found is not None and not found.on_transfer:
                        self._event(
                            part, record, found, step(R.remove_replica), {leaf(R.replicas): []}
                        )
            case Said.TRANSFERRED:
                for p in sorted(record.lists["transferred"]):
                    self._transferred(part, record, (index, p))
            case Said.UPDATED if record.group.kind == "main":
                self._main_updated(part, record, index)
            case Said.UPDATED:
                self._replica_updated(part, record, index)
            case _:
                pass

    def _main_updated(self, part: int, record: Record, index: GroupName) -> None:
        lists = record.lists
        before, after = (
            lists.get(f"replicas on transfer {when}", _NO_IDS) for when in ("before", "after")
        )
        for p in sorted(lists.get("replica partitions before", _NO_IDS) | before):
            self._follow(part, record, (index, p), on_transfer=p in before)
        for key, found in [item for item in self._replicas.items() if item[0][0] == index]:
            p = key[1]
            if found.on_transfer != (p in before):
                # No record shows that: nothing that the indexes do by themselves explains it.
                seen = _leaves(on_transfer=p in before)
                self._event(part, record, found, step(PartitionGroup.clean, of=R.main), seen)
            found.on_transfer = p in after
            if p in before - after:
                action = step(R.set_passive if _is_added(record, p, "after") else R.set_cleanup)
                seen = {**_leaves(on_transfer=False), **_main(record, p)}
                self._event(part, record, found, action, seen)
                del self._replicas[key]
            elif p in after and (p not in before or not _is_added(record, p, "before")):
                added = _is_added(record, p, "after")
                if p not in before or added:
                    action = step(R.start_transfer if added else R.fail_over)
                    seen = {**_leaves(on_transfer=True), **_main(record, p)}
                    self._event(part, record, found, action, seen)

    def _replica_updated(self, part: int, record: Record, index: GroupName) -> None:
        lists = record.lists
        active = lists["active partitions after"] - lists["active partitions before"]
        cleanup = lists["cleanup partitions after"] - lists["cleanup partitions before"]
        for p in sorted(active | cleanup):
            found = self._replicas.get((index, p))
            if found is None:
                continue
            if p in active:
                seen: dict[str, object] = {_in(R.replica, Entry.abit): True}
                self._event(part, record, found, step(R.activate_replica), seen)
            elif found.on_transfer:  # else the main index says next that it is removed
                seen = {_in(R.replica, Entry.content, Content.cbit): True}
                self._event(part, record, found, step(R.clean_up_replica), seen)

    def _transferred(self, part: int, record: Record, key: tuple[GroupName, int]) -> None:
        if found := self._replicas.pop(key, None):
            main: dict[str, object] = {_in(R.main, Entry.abit): True}
            seen = {**_leaves(on_transfer=False), **main}
            self._event(part, record, found, step(R.finish_transfer), seen)

    def _follow(
        self, part: int, record: Record, key: tuple[GroupName, int], *, on_transfer: bool
    ) -> None:
        if key in self._replicas:
            return
        number = self._numbers[key] = self._numbers.get(key, 0) + 1
        again = f"#{number}" if number > 1 else ""
        found = self._replicas[key] = _Replica(f"{key[0]}/{key[1]}{again}", on_transfer)
        seen = {leaf(R.replicas): [_P], **_leaves(on_transfer=on_transfer)}
        self._event(part, record, found, None, seen)

    def _event(
        self,
        part: int,
        record: Record,
        replica: _Replica,
        action: str | None,
        seen: dict[str, object],
    ) -> None:
        event = Event(
            trace="",
            machine=MACHINE,
            profile=self._profile,
            definition="",
            entity=replica.entity,
            sequence=replica.sequence,
            node=record.group.node,
            action=action,
            parameters={"p": _P} if action else {},
            observed=seen,
            line=record.line,
        )
        replica.sequence += 1
        self.events.append((part, event))


def _leaves(*, on_transfer: bool) -> dict[str, object]:
    return {leaf(R.on_transfer): [_P] if on_transfer else []}


def _main(record: Record, p: int) -> dict[str, object]:
    """What the record says of the partition in the main index, after it."""
    data = {
        _in(R.main, Entry.abit): "active",
        _in(R.main, Entry.pbit): "passive",
        _in(R.main, Entry.content, Content.cbit): "cleanup",
    }
    return {name: p in record.lists[f"{state} partitions after"] for name, state in data.items()}


def _is_added(record: Record, p: int, when: str) -> bool:
    """The main index has the partition as a passive one, or will have when it is clean."""
    lists = record.lists
    pending = lists.get(f"pending transition {when}/passive", _NO_IDS)
    return p in lists[f"passive partitions {when}"] or p in pending


def _in(index: Part[PartitionGroup], *fields: Var[Any, Any]) -> str:
    """What an index says of the partition."""
    return leaf(PartitionGroup.group, PARTITION, *fields, of=index)
