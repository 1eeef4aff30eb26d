"""Follows the partitions of indexes through the records of their group processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from stagewright.machines.couchbase.partitions.group_states import Partition
from stagewright.machines.couchbase.partitions.partition_states import (
    Content,
    Entry,
    PartitionStates,
)
from stagewright.spec.trace import Event
from stagewright.traces.databases.couchbase.couchbase_record import GroupName, Record, Said
from stagewright.traces.databases.names import called, leaf, step

MACHINE = called(PartitionStates)
PARTITION = Partition(0)  # each trace has one partition
_P = PARTITION.name
_APPLY = step(PartitionStates.apply_pending_transition)
_NO_IDS: frozenset[int] = frozenset()


_FIELDS = {
    "abit": (Entry.abit,),
    "pbit": (Entry.pbit,),
    "cbit": (Entry.content, Content.cbit),
    "pending_active": (Entry.pending_active,),
    "pending_passive": (Entry.pending_passive,),
    "pending_unindexable": (Entry.pending_unindexable,),
    "unindexable": (Entry.content, Content.in_unindexable_seqs),
}
"""Where the machine has what is known of a partition."""


@dataclass(frozen=True)
class _State:
    """What is known of a partition; None: not recorded."""

    abit: bool | None = None
    pbit: bool | None = None
    cbit: bool | None = None
    pending_active: bool | None = None
    pending_passive: bool | None = None
    pending_unindexable: bool | None = None
    unindexable: bool | None = None

    def observed(self) -> dict[str, object]:
        """The leaves of the machine that are known."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            leaf(PartitionStates.group, PARTITION, *_FIELDS[name]): value
            for name, value in values.items()
            if value is not None
        }

    def agrees(self, other: _State) -> bool:
        """Nothing that both know is different."""
        mine, others = self.observed(), other.observed()
        return all(mine[name] == others[name] for name in mine.keys() & others.keys())

    def updated(self, recorded: _State) -> _State:
        """This, with what is recorded in place of what was."""
        values = {f.name: getattr(recorded, f.name) for f in fields(recorded)}
        return replace(self, **{name: v for name, v in values.items() if v is not None})

    def request(self) -> str:
        """The request after which a partition is so."""
        if self.abit or self.pending_active:
            return step(PartitionStates.set_active)
        passive = self.pbit or self.pending_passive
        return step(PartitionStates.set_passive if passive else PartitionStates.set_cleanup)


_ABSENT = _State(*[False] * 7)


@dataclass
class _Group:
    name: str
    generation: int
    known: dict[int, _State] = field(default_factory=dict[int, _State])
    partly: set[int] = field(default_factory=set[int])  # of these not all is known
    # by what is so of them
    having: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    sequences: dict[int, int] = field(default_factory=dict[int, int])
    frozen: dict[int, int] = field(default_factory=dict[int, int])  # up to where, while unindexable
    applying: Record | None = None

    def set(self, p: int, state: _State) -> None:
        """This is known of a partition from now on."""
        self.known[p] = state
        values = {f.name: getattr(state, f.name) for f in fields(state)}
        for name, value in values.items():
            if value:
                self.having.setdefault(name, set()).add(p)
            else:
                self.having.setdefault(name, set()).discard(p)
        if None in values.values():
            self.partly.add(p)
        else:
            self.partly.discard(p)

    def concerned(
        self, before: Mapping[str, frozenset[int]], after: Mapping[str, frozenset[int]]
    ) -> list[int]:
        """The partitions of which a record says something new; there may be a thousand others."""
        names = before.keys() | after.keys()
        found = {
            p for p in self.partly if any(getattr(self.known[p], name) is None for name in names)
        }
        for lists in (before, after):
            for ids in lists.values():
                found |= ids - self.known.keys()
        for name, ids in before.items():
            found |= ids ^ self.having.get(name, set())
            found |= ids ^ after.get(name, ids)
        for name, ids in after.items():
            found |= ids ^ self.having.get(name, set())
        return sorted(found)


class GroupsReading:
    """Makes events of records that come in the order of time."""

    def __init__(self, profile: str) -> None:
        self.events: list[tuple[int, Event]] = []
        self._profile = profile
        self._counts: Counter[str] = Counter()
        self._groups: dict[tuple[GroupName, str], _Group] = {}  # by their processes, too
        self._generations: Counter[GroupName] = Counter()

    def take(self, part: int, record: Record) -> None:
        """Go on with the next record."""
        key = record.group, record.process
        if record.said in (Said.LEFT, Said.ROLLED_BACK):
            if key in self._groups:
                if record.said is Said.ROLLED_BACK:
                    self._rolled_back(part, record, self._groups[key])
                del self._groups[key]
                self._counts["indexes were rolled back, reset or stopped, and followed anew"] += 1
            return
        if record.said in (Said.REPLICAS_ADDED, Said.REPLICAS_REMOVED):
            return
        if record.said in (Said.CONFIGURED, Said.STARTED) or key not in self._groups:
            self._groups[key] = self._begun(record.group)
        group = self._groups[key]
        match record.said:
            case Said.UPDATED:
                self._updated(part, record, group)
            case Said.APPLYING:
                group.applying = record
            case Said.MARKED | Said.UNMARKED:
                self._marked(part, record, group)
            case Said.CLEANED | Said.CLEANER_STOPPED:
                self._cleaned(part, record, group)
            case Said.TRANSFERRED:
                for p in sorted(record.lists["transferred"]):
                    active = _State(abit=True, pbit=False)
                    self._step(
                        part, record, group, p, None, active, step(PartitionStates.set_active)
                    )
            case _:
                self._found(part, record, group)

    def notes(self) -> list[str]:
        """What was noticed."""
        return [f"{count} {what}" for what, count in sorted(self._counts.items())]

    def _begun(self, name: GroupName) -> _Group:
        """A new process of an index: what it begins with is in its file, or unknown."""
        self._generations[name] += 1
        return _Group(str(name), self._generations[name])

    def _found(self, part: int, record: Record, group: _Group) -> None:
        """The states in which an index begins, or its process finds it."""
        lists = record.lists
        if record.said is Said.CONFIGURED:
            bare = replace(_ABSENT, unindexable=False)
            active = lists["initial active partitions"]
            passive = lists["initial passive partitions"]
            cleanup = unindexable = _NO_IDS
        else:
            bare = _State()  # what is pending is not recorded
            active, passive = lists["active partitions"], lists["passive partitions"]
            cleanup, unindexable = lists["cleanup partitions"], lists["unindexable partitions"]
        for p in sorted(active | passive | cleanup):
            state = replace(
                bare,
                abit=p in active,
                pbit=p in passive,
                cbit=p in cleanup,
                unindexable=p in unindexable,
            )
            self._step(part, record, group, p, state, state, "")

    def _updated(self, part: int, record: Record, group: _Group) -> None:
        lists, applying = record.lists, group.applying
        group.applying = None
        applied = _NO_IDS
        unindexable = lists["unindexable partitions"]  # the ones before
        stays = unindexable
        if applying is not None:
            applied = applying.lists["Active partitions"] | applying.lists["Passive partitions"]
            stays = unindexable | applying.lists.get("Unindexable", _NO_IDS)
        before = _partitions(lists, "before", with_pending=applying is None)
        before["unindexable"] = unindexable
        self._stay(part, record, group, record.seqs.get("unindexable partitions", {}))
        group.frozen = {p: seq for p, seq in group.frozen.items() if p in stays}
        after = _partitions(lists, "after", with_pending=True)
        for p in group.concerned(before, {**after, "unindexable": stays}):
            new = _of(after, p)
            action = _APPLY if p in applied else new.request()
            self._step(part, record, group, p, _of(before, p), new, action)
            group.set(p, replace(group.known[p], unindexable=p in stays))

    def _marked(self, part: int, record: Record, group: _Group) -> None:
        lists = record.lists
        marked = record.said is Said.MARKED
        action = step(
            PartitionStates.mark_unindexable if marked else PartitionStates.mark_indexable
        )
        pending_before = lists.get("Previous pending set")  # older versions do not have them
        pending_after = lists.get("New pending set")
        before, after = {"unindexable": lists["Previous set"]}, {"unindexable": lists["New set"]}
        if pending_before is not None and pending_after is not None:
            before["pending_unindexable"] = pending_before
            after["pending_unindexable"] = pending_after
        self._stay(part, record, group, record.seqs.get("Previous set", {}))
        for p in group.concerned(before, after):
            self._step(part, record, group, p, _of(before, p), _of(after, p), action)
        group.frozen = dict(record.seqs.get("New set", {}))

    def _stay(self, part: int, record: Record, group: _Group, seqs: Mapping[int, int]) -> None:
        """Up to where unindexable partitions are indexed: as far as when they were marked."""
        for p, seq in seqs.items():
            if seq != group.frozen.get(p, seq) and p in group.known:
                self._event(part, record, group, p, _State(), step(PartitionStates.index_mutation))
            group.frozen[p] = seq

    def _rolled_back(self, part: int, record: Record, group: _Group) -> None:
        """An index only goes back: what goes on somewhere was not indexed before, or is not lost."""
        for marked in ("indexable", "unindexable"):
            before = record.seqs.get(f"{marked} partitions before", {})
            after = record.seqs.get(f"{marked} partitions after", {})
            for p, seq in after.items():
                most = min(before.get(p, seq), record.seqs.get("rolled back to", {}).get(p, seq))
                if seq > most and p in group.known:
                    wrong = _State(cbit=not group.known[p].cbit)  # nothing gives it these rows
                    self._event(part, record, group, p, wrong, step(PartitionStates.set_active))

    def _cleaned(self, part: int, record: Record, group: _Group) -> None:
        lists = record.lists
        if record.said is Said.CLEANED:
            before = _partitions(lists, "before", with_pending=False)
            after = _partitions(lists, "after", with_pending=False)
        else:
            before = {"cbit": lists["Old set of partitions to cleanup"]}
            after = {"cbit": lists["New set of partitions to cleanup"]}
        for p in group.concerned(before, after):
            self._step(
                part, record, group, p, _of(before, p), _of(after, p), step(PartitionStates.clean)
            )

    def _step(
        self,
        part: int,
        record: Record,
        group: _Group,
        p: int,
        before: _State | None,
        after: _State,
        action: str,
    ) -> None:
        """What a record says of one partition: that the last record left it so, and what it is now."""
        known = group.known.get(p)
        if before is not None:
            if known is None:
                self._event(part, record, group, p, before)
                known = before
            elif not known.agrees(before):
                # Nobody but a worker may have changed it since, and all that it does is to clean up.
                self._event(part, record, group, p, before, step(PartitionStates.clean))
            known = known.updated(before)
        if known is None:
            self._event(part, record, group, p, after)
            known = after
        elif not known.agrees(after):
            self._event(part, record, group, p, after, action)
        group.set(p, known.updated(after))

    def _event(
        self,
        part: int,
        record: Record,
        group: _Group,
        p: int,
        state: _State,
        action: str | None = None,
    ) -> None:
        sequence = group.sequences.get(p, 0)
        group.sequences[p] = sequence + 1
        again = f"#{group.generation}" if group.generation > 1 else ""
        if not sequence:
            action = None
        parameters = {"p": _P} if action and action != _APPLY else {}
        event = Event(
            trace="",
            machine=MACHINE,
            profile=self._profile,
            definition="",
            entity=f"{group.name}/{p}{again}",
            sequence=sequence,
            node=record.group.node,
            action=action,
            parameters=parameters,
            observed=state.observed(),
            line=record.line,
        )
        self.events.append((part, event))


def _partitions(
    lists: Mapping[str, frozenset[int]], when: str, *, with_pending: bool
) -> dict[str, frozenset[int]]:
    """The partitions of which something is so, before or after, by the leaf that says it."""
    data = {
        "abit": lists[f"active partitions {when}"],
        "pbit": lists[f"passive partitions {when}"],
        "cbit": lists[f"cleanup partitions {when}"],
    }
    for state in ("active", "passive", "unindexable"):
        ids = lists.get(f"pending transition {when}/{state}")  # older versions have not all of them
        if with_pending and ids is not None:
            data[f"pending_{state}"] = ids
    return data


def _of(data: Mapping[str, frozenset[int]], p: int) -> _State:
    """What is recorded of one partition."""
    return _State(**{name: p in ids for name, ids in data.items()})
