"""Follows replica partitions through a failover: from the replica index of a node to its main index.

A partition is followed from when it is a replica until it is none any more: its transfer has ended, or it is
removed. What the two indexes do by themselves in between is hidden.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stagewright.spec.trace import Event
from stagewright.spec.values import FrozenMap
from stagewright.traces.readers.couchbase_record import GroupName, Record, Said
from stagewright.traces.recording import HiddenSteps, Recording

MACHINE = "PartitionReplicas"
_P = "partition0"
_NO_IDS: frozenset[int] = frozenset()
_HIDDEN = frozenset(
    {
        *("write", "index_main", "index_replica", "main.clean", "replica.clean"),
        *("apply_pending_in_main", "apply_pending_in_replica"),
        *("activate_replica", "clean_up_replica"),
    }
)
RECORDING = Recording(
    HiddenSteps(_HIDDEN),
    False,
    False,
    FrozenMap({"Partition": 1}),
    numbered=frozenset({"Partition"}),
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
            case Said.CONFIGURED | Said.STARTED | Said.LEFT:
                for key in [key for key in self._replicas if key[0] == index]:
                    del self._replicas[key]
            case Said.REPLICAS_ADDED:
                for p in sorted(record.lists["replicas"]):
                    self._follow(part, record, (index, p), on_transfer=False)
            case Said.REPLICAS_REMOVED:
                for p in sorted(record.lists["replicas"]):
                    found = self._replicas.pop((index, p), None)
                    if found is not None and not found.on_transfer:
                        self._event(part, record, found, "remove_replica", {"replicas": []})
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
                # No record told of that: nothing that the indexes do by themselves explains it.
                seen = _leaves(on_transfer=p in before)
                self._event(part, record, found, "main.clean", seen)
            found.on_transfer = p in after
            if p in after - before:
                seen = {**_leaves(on_transfer=True), **_main(record, p)}
                self._event(part, record, found, "fail_over", seen)
            elif p in before - after:
                cleaned_up = p in lists["cleanup partitions after"]
                action = "set_cleanup" if cleaned_up else "set_passive"
                seen = {**_leaves(on_transfer=False), **_main(record, p)}
                self._event(part, record, found, action, seen)
                del self._replicas[key]

    def _replica_updated(self, part: int, record: Record, index: GroupName) -> None:
        lists = record.lists
        active = lists["active partitions after"] - lists["active partitions before"]
        cleanup = lists["cleanup partitions after"] - lists["cleanup partitions before"]
        for p in sorted(active | cleanup):
            found = self._replicas.get((index, p))
            if found is None:
                continue
            if p in active:
                seen: dict[str, object] = {f"replica.group[{_P}].abit": True}
                self._event(part, record, found, "activate_replica", seen)
            elif found.on_transfer:  # else the main index tells next that it is removed
                seen = {f"replica.group[{_P}].content.cbit": True}
                self._event(part, record, found, "clean_up_replica", seen)

    def _transferred(self, part: int, record: Record, key: tuple[GroupName, int]) -> None:
        if found := self._replicas.pop(key, None):
            main: dict[str, object] = {f"main.group[{_P}].abit": True}
            seen = {**_leaves(on_transfer=False), **main}
            self._event(part, record, found, "finish_transfer", seen)

    def _follow(
        self, part: int, record: Record, key: tuple[GroupName, int], *, on_transfer: bool
    ) -> None:
        if key in self._replicas:
            return
        number = self._numbers[key] = self._numbers.get(key, 0) + 1
        again = f"#{number}" if number > 1 else ""
        found = self._replicas[key] = _Replica(f"{key[0]}/{key[1]}{again}", on_transfer)
        seen = {"replicas": [_P], **_leaves(on_transfer=on_transfer)}
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
    return {"on_transfer": [_P] if on_transfer else []}


def _main(record: Record, p: int) -> dict[str, object]:
    """What the record says of the partition in the main index, after it."""
    told = {"abit": "active", "pbit": "passive", "content.cbit": "cleanup"}
    return {
        f"main.group[{_P}].{leaf}": p in record.lists[f"{state} partitions after"]
        for leaf, state in told.items()
    }
