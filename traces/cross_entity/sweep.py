"""Evaluates properties over several entities, group by group: `sweep` takes all changes of some groups.

The changes of a group are looked at in order of their time; those of one time count as simultaneous. What
is kept of a group is how many entities of each class there are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled
from stagewright.traces.events.event_block import EntityKey, Place, Stream, place_of
from stagewright.traces.events.string_pool import joined, names_of
from stagewright.traces.replay.related.classes import Related, Seen, families_named
from stagewright.traces.replay.related.counted import BROKEN, LESS, MORE, OPEN, UNASKED, Counting
from stagewright.traces.replay.related.timeline import (
    NEW,
    OLD,
    UNTIMED,
    WHEN,
    WHERE,
    WHOSE,
    Changes,
)
from stagewright.traces.replay.transition_table import slot_of

Ints = NDArray[Any]

DETAILS_MAX = 1_000  # groups of one property that are kept in full by one partition
ENTITIES_MAX = 20  # of them that are named


class Group(NamedTuple):
    """The entities that are looked at together: all of a trace, or those whose names have a part in common."""

    trace: str
    name: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in self if part) or "the trace"


@dataclass(frozen=True)
class Member:
    """An entity that has a part in a violation: since which event it is in the state that breaks the property."""

    key: EntityKey
    place: Place
    beginning: bool = False  # it is in it from the beginning on


@dataclass(frozen=True)
class Broken:
    """A property that a group has broken: first when, where, by whom, and how often."""

    prop: int
    group: Group
    time: int
    place: Place
    members: tuple[Member, ...]
    times: int


@dataclass
class Counts:
    """In how many groups (or of how many entities) a property was looked at, and what was found."""

    evaluated: int = 0
    broken: int = 0
    open: int = 0  # neither broken nor known to hold
    untimed: int = 0  # of the open ones: events have no time
    backwards: int = 0  # of the open ones: the time of an entity's events runs backwards
    first_open: Place | None = None

    def add(self, other: Counts) -> None:
        """Add what another partition has counted."""
        for name in ("evaluated", "broken", "open", "untimed", "backwards"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.first_open and (self.first_open is None or other.first_open < self.first_open):
            self.first_open = other.first_open


@dataclass
class Swept:
    """What the groups (or the single entities) of a partition came to."""

    counts: dict[int, Counts] = field(default_factory=dict)  # by property
    broken: list[Broken] = field(default_factory=list)
    changes: int = 0
    left_out: int = 0  # broken groups that are not in the list
    ungrouped: int = 0  # entities whose names have no group

    def add(self, other: Swept) -> None:
        """Add what another partition has found."""
        for prop, counts in other.counts.items():
            self.of(prop).add(counts)
        self.broken += other.broken
        self.changes += other.changes
        self.left_out += other.left_out
        self.ungrouped += other.ungrouped

    def of(self, prop: int) -> Counts:
        """The counts of a property."""
        return self.counts.setdefault(prop, Counts())


@dataclass(frozen=True)
class Gathered:
    """Changes of some groups: those of `changes`, whose entity i is in the group `groups[group[i]]`."""

    groups: tuple[Group, ...]
    group: Ints
    changes: Changes

    @property
    def nbytes(self) -> int:
        """About how much memory they take."""
        return self.changes.nbytes + int(self.group.nbytes)


def by_group(
    changes: Changes, pattern: str, partitions: int
) -> tuple[list[tuple[int, Gathered]], int]:
    """The changes by the partition that evaluates their groups; and how many entities are of no group."""
    used = np.zeros(len(changes.names), bool)
    used[changes.table[:, WHOSE]] = True
    listed, group = _groups(changes, np.flatnonzero(used), pattern)
    target = np.array([_partition(g, partitions) for g in listed] or [0], np.int64)
    where = np.where(group >= 0, target[group], -1)
    of_row = where[changes.table[:, WHOSE]]
    order = np.argsort(of_row, kind="stable")
    bounds = np.searchsorted(of_row[order], np.arange(partitions + 1))
    found: list[tuple[int, Gathered]] = []
    for partition in np.flatnonzero(bounds[1:] > bounds[:-1]).tolist():
        rows = changes.table[order[bounds[partition] : bounds[partition + 1]]]
        entities, rows[:, WHOSE] = np.unique(rows[:, WHOSE], return_inverse=True)
        some = Changes(
            changes.streams,
            changes.stream[entities],
            changes.names.take(entities),
            changes.wrong[entities],
            changes.classes,
            rows,
        )
        own, numbers = np.unique(group[entities], return_inverse=True)
        groups = tuple(listed[i] for i in own.tolist())
        found.append((partition, Gathered(groups, numbers.astype(np.int32), some)))
    return found, int((used & (group < 0)).sum())


def _groups(changes: Changes, entities: Ints, pattern: str) -> tuple[tuple[Group, ...], Ints]:
    """The groups of some entities, and of every entity the number of its group, or -1."""
    group = np.full(len(changes.names), -1, np.int32)
    numbers: dict[Group, int] = {}
    matcher = re.compile(pattern)
    named = _only_part if matcher.groups == 1 else _all_parts
    for stream, (trace, *_) in enumerate(changes.streams):
        own = entities[changes.stream[entities] == stream]
        if not pattern:
            group[own] = numbers.setdefault(Group(trace), len(numbers))
            continue
        texts = changes.names.take(own).texts()
        names = [named(match) if (match := matcher.search(text)) else None for text in texts]
        of_name = {
            name: numbers.setdefault(Group(trace, name), len(numbers))
            for name in dict.fromkeys(names)
            if name is not None
        }
        group[own] = [-1 if name is None else of_name[name] for name in names]
    return tuple(numbers), group


def _only_part(match: re.Match[str]) -> str:
    return match[1] or ""


def _all_parts(match: re.Match[str]) -> str:
    """What is in the brackets, or all that matched."""
    return ":".join(part or "" for part in match.groups()) if match.re.groups else match[0]


def _partition(group: Group, partitions: int) -> int:
    import zlib

    return zlib.crc32("\0".join(group).encode("utf-8", "surrogatepass")) % partitions


def sweep(gathered: Sequence[Gathered], properties: Sequence[Related]) -> Swept:
    """Evaluate all groups of a partition; `gathered` has all their changes.

    Of `properties` those are evaluated that relate entities.
    """
    swept = Swept()
    asked = [n for n, p in enumerate(properties) if not p.local]
    if not gathered or not asked:
        return swept
    whole = _joined(gathered)
    changes = whole.changes
    swept.changes = len(changes)
    counting = Counting([properties[n] for n in asked])
    groups = _without_order(whole, counting.properties, asked, swept)
    table = changes.table
    group = whole.group[table[:, WHOSE]]
    keep = groups[group]
    table, group = table[keep], group[keep]
    by = np.lexsort((table[:, WHEN], group))
    table, group = np.ascontiguousarray(table[by]), group[by]
    kinds = _kinds(counting, changes.classes)
    run = _Run(len(asked), len(counting.kinds), len(whole.groups))
    while True:
        why, number, step = _sweep(
            table, group, kinds, counting.most, counting.nobody, counting.keys, counting.values,
            counting.verdicts, run.position, run.counts, run.ids, run.state, run.totals, run.found,
        )  # fmt: skip
        if why == _DONE:
            break
        if why == _FILL:
            counting.fill(number, step)
        else:
            counting.decide(number)
    for p, prop in enumerate(asked):
        evaluated, broken, open_ = run.totals[p].tolist()
        counts = swept.of(prop)
        counts.evaluated += evaluated
        counts.broken += broken
        counts.open += open_
    kept = [0] * len(asked)
    for p, row, times, kind in run.found[: int(run.position[_FOUND])].tolist():
        place = place_of(int(table[row, WHERE]))
        if kind == OPEN:
            counts = swept.of(asked[p])
            if counts.first_open is None or place < counts.first_open:
                counts.first_open = place
        elif kept[p] >= DETAILS_MAX:
            swept.left_out += 1
        else:
            kept[p] += 1
            members = _members(counting, p, changes, table, group, kinds, row)
            of_group = whole.groups[int(group[row])]
            time = int(table[row, WHEN])
            swept.broken.append(Broken(asked[p], of_group, time, place, members, times))
    return swept


def _joined(gathered: Sequence[Gathered]) -> Gathered:
    streams = list(dict.fromkeys(s for g in gathered for s in g.changes.streams))
    classes = list(dict.fromkeys(c for g in gathered for c in g.changes.classes))
    groups = list(dict.fromkeys(x for g in gathered for x in g.groups))
    number_of_stream: dict[Stream, int] = {s: i for i, s in enumerate(streams)}
    number_of_class: dict[Seen, int] = {c: i for i, c in enumerate(classes)}
    number_of_group: dict[Group, int] = {x: i for i, x in enumerate(groups)}
    tables: list[Ints] = []
    of_entities: list[Ints] = []
    of_streams: list[Ints] = []
    entities = 0
    for one in gathered:
        changes = one.changes
        numbers = np.array([*(number_of_class[c] for c in changes.classes), -1], np.int64)
        table = changes.table.copy()
        table[:, WHOSE] += entities
        for column in (OLD, NEW):
            table[:, column] = numbers[table[:, column]]  # -1 is the last one: -1
        tables.append(table)
        of_entities.append(np.array([number_of_group[x] for x in one.groups])[one.group])
        of_streams.append(np.array([number_of_stream[s] for s in changes.streams])[changes.stream])
        entities += len(changes.names)
    joined_changes = Changes(
        tuple(streams),
        np.concatenate(of_streams),
        joined([g.changes.names for g in gathered]) if gathered else names_of(()),
        np.concatenate([g.changes.wrong for g in gathered]),
        tuple(classes),
        np.concatenate(tables),
    )
    return Gathered(tuple(groups), np.concatenate(of_entities), joined_changes)


def _without_order(
    whole: Gathered, properties: Sequence[Related], asked: Sequence[int], swept: Swept
) -> Ints:
    """Which groups have an order; those that do not leave the properties of their machines open."""
    ordered = np.ones(len(whole.groups), bool)
    wrong = np.zeros(len(whole.groups), np.int8)
    np.bitwise_or.at(wrong, whole.group, whole.changes.wrong)
    ordered[wrong != 0] = False
    if ordered.all():
        return ordered
    changes = whole.changes
    group = whole.group[changes.table[:, WHOSE]]
    names = sorted({c.machine for c in changes.classes})
    machine = np.array([names.index(c.machine) for c in changes.classes])[changes.table[:, NEW]]
    first: dict[int, Place] = {}
    for row in np.flatnonzero(changes.wrong[changes.table[:, WHOSE]] != 0).tolist():
        first.setdefault(int(group[row]), place_of(int(changes.table[row, WHERE])))
    present: dict[int, set[str]] = {}
    bad = ~ordered[group]
    for pair in np.unique(group[bad] * len(names) + machine[bad]).tolist():
        present.setdefault(pair // len(names), set()).add(names[pair % len(names)])
    for number, machines in present.items():
        untimed = bool(wrong[number] & UNTIMED)
        for prop, related in zip(asked, properties, strict=True):
            if not families_named([related]) & machines:
                continue
            counts = Counts(1, 0, 1, int(untimed), int(not untimed), first[number])
            swept.of(prop).add(counts)
    return ordered


def _kinds(counting: Counting, classes: Sequence[Seen]) -> Ints:
    """The kind of each class as each property sees it, in rows of one a property; the last class is none."""
    found = np.full((len(counting.properties), len(classes) + 1), -1, np.int64)
    for number, seen in enumerate(classes):
        for prop, kinds in enumerate(counting.kinds_of(seen)):
            if kinds:
                found[prop, number] = kinds[0]
    return found


class _Run:
    """Where a sweep is, so that it can go on after what was missing was found."""

    def __init__(self, properties: int, kinds: int, groups: int) -> None:
        self.position = np.zeros(5, np.int64)
        self.counts = np.zeros(max(kinds, 1), np.int64)
        self.ids = np.zeros(properties, np.int64)
        self.state = np.zeros((properties, 6), np.int64)
        self.totals = np.zeros((properties, 3), np.int64)
        self.found = np.zeros((properties * groups + 1, 4), np.int64)


def _members(
    counting: Counting,
    prop: int,
    changes: Changes,
    table: Ints,
    group: Ints,
    kinds: Ints,
    row: int,
) -> tuple[Member, ...]:
    """The entities that break a property right after the change `row`."""
    begin, end = np.searchsorted(group, group[row]), row + 1
    rows = table[begin:end][::-1]
    _, latest = np.unique(rows[:, WHOSE], return_index=True)
    last = rows[np.sort(latest)]  # the last change of each entity, the latest first
    of_kind = kinds[prop, last[:, NEW]]
    last, of_kind = last[of_kind >= 0], of_kind[of_kind >= 0]
    known, times = np.unique(of_kind, return_counts=True)
    most = np.minimum(times, counting.most[known])
    count = dict(zip(known.tolist(), most.tolist(), strict=True))
    core = counting.core(prop, count, int(kinds[prop, table[row, NEW]]))
    found: list[Member] = []
    for one, kind in zip(last.tolist(), of_kind.tolist(), strict=True):
        if core.get(kind, 0) and len(found) < ENTITIES_MAX:
            core[kind] -= 1
            since = _since(prop, changes, rows, kinds, one[WHOSE], kind)
            found.append(since)
        if not any(core.values()):
            break
    return tuple(found)


def _since(
    prop: int,
    changes: Changes,
    rows: Ints,
    kinds: Ints,
    whose: int,
    kind: int,
) -> Member:
    """An entity with the change since which it has been of a kind; `rows` are the latest first."""
    own = rows[rows[:, WHOSE] == whose]
    since = own[0]
    for one in own:
        if kinds[prop, one[NEW]] != kind:
            break
        since = one
    return Member(changes.key(whose), place_of(int(since[WHERE])), bool(since[OLD] < 0))


_DONE, _FILL, _ASK = 0, 1, 2
# Where a sweep is: the row, the property, how far the property is, the property that is asked, what was found.
_ROW, _PROP, _HALF, _ASKED, _FOUND = range(5)
# What is known of a property in the group at hand.
_DIRTY, _LOOKED, _VERDICT, _BREAKS, _FIRST_BROKEN, _FIRST_OPEN = range(6)


@compiled
def _sweep(  # noqa: C901 - one loop, compiled as a whole
    table: Ints, group: Ints, kinds: Any, most: Ints, nobody: Ints, keys: Ints, values: Ints,
    verdicts: Ints, position: Ints, counts: Ints, ids: Any, state: Ints, totals: Ints, found: Ints,
) -> tuple[int, int, int]:  # fmt: skip
    """Go on; returns why it came back, and the count and the step that are not known."""
    properties = len(kinds)
    rows = len(table)
    i = position[_ROW]
    if i == 0 and position[_PROP] == 0 and position[_HALF] == 0 and position[_ASKED] == 0:
        ids[:] = nobody
    while i < rows:
        p = position[_PROP]
        while p < properties:
            one, other = kinds[p, table[i, OLD]], kinds[p, table[i, NEW]]
            if one != other:
                if position[_HALF] == 0:
                    if one >= 0:
                        if counts[one] <= most[one]:
                            slot = slot_of(keys, ids[p], 2 * one + LESS)
                            if keys[slot] == 0:
                                position[_ROW], position[_PROP] = i, p
                                return _FILL, ids[p], 2 * one + LESS
                            ids[p] = values[slot]
                        counts[one] -= 1
                    position[_HALF] = 1
                if other >= 0:
                    if counts[other] < most[other]:
                        slot = slot_of(keys, ids[p], 2 * other + MORE)
                        if keys[slot] == 0:
                            position[_ROW], position[_PROP] = i, p
                            return _FILL, ids[p], 2 * other + MORE
                        ids[p] = values[slot]
                    counts[other] += 1
                position[_HALF] = 0
                state[p, _DIRTY] = 1
            p += 1
        position[_PROP] = p
        ends = i + 1 == rows or group[i + 1] != group[i]
        if ends or table[i + 1, WHEN] != table[i, WHEN]:
            q = position[_ASKED]
            while q < properties:
                if state[q, _DIRTY]:
                    verdict = verdicts[ids[q]]
                    if verdict == UNASKED:
                        position[_ROW], position[_ASKED] = i, q
                        return _ASK, ids[q], 0
                    of = state[q]
                    of[_DIRTY] = 0
                    if verdict == BROKEN and of[_VERDICT] != BROKEN:
                        of[_BREAKS] += 1
                        if of[_BREAKS] == 1:
                            of[_FIRST_BROKEN] = i
                    if verdict == OPEN and of[_FIRST_OPEN] == 0:
                        of[_FIRST_OPEN] = i + 1
                    of[_VERDICT] = verdict
                    of[_LOOKED] = 1
                q += 1
        position[_ASKED] = 0
        if ends:
            for q in range(properties):
                of = state[q]
                if of[_LOOKED]:
                    totals[q, 0] += 1
                    if of[_BREAKS] > 0 or of[_FIRST_OPEN] > 0:
                        at = position[_FOUND]
                        totals[q, 1 if of[_BREAKS] > 0 else 2] += 1
                        found[at, 0] = q
                        found[at, 1] = of[_FIRST_BROKEN] if of[_BREAKS] > 0 else of[_FIRST_OPEN] - 1
                        found[at, 2] = of[_BREAKS]
                        found[at, 3] = BROKEN if of[_BREAKS] > 0 else OPEN
                        position[_FOUND] = at + 1
                of[:] = 0
            counts[:] = 0
            ids[:] = nobody
        position[_PROP] = 0
        i += 1
        position[_ROW] = i
    return _DONE, 0, 0
