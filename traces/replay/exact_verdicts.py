"""Evaluates the entities of one partition: from their events to what was found, and the counts of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

import numpy as np

from stagewright.spec.trace import TraceVerdict
from stagewright.traces.automaton.automaton_cache import of_this_thread
from stagewright.traces.automaton.possible_states import PossibleStates
from stagewright.traces.automaton.product_automaton import Running, Source, Standing
from stagewright.traces.automaton.subset_automaton import (
    ANY,
    DEAD,
    LIVE,
    START,
    UNDECIDED,
    UNKNOWN,
)
from stagewright.traces.events.event_block import (
    NO_TIME,
    Block,
    EntityKey,
    Ints,
    Place,
    Stream,
    merge,
    place_of,
)
from stagewright.traces.events.observability import Doubt
from stagewright.traces.replay.exact_replay import Ordered, Replay, order, replay

DETAILS_MAX = 400_000  # of one kind in all partitions; the counts know all
PREFIX_MAX = 1_000_000  # events of a violating trace that are kept for its explanation

MachineKey = tuple[str, str, str]  # machine, profile and definition, as a stream names them


class Cause(Enum):
    """Why an entity's trace is not ok."""

    STEP = "no run of the definition explains the event"
    AFTER_END = "an event after the end marker"
    CONFLICT = "different events have the same sequence number"
    MISSING = "events are missing"
    NO_END = "the end marker is missing"
    NOT_UNDERSTOOD = "an event is not one of this machine"
    BUDGET = "more possible states than --max-states, or a number beyond its bounds"
    ORDER = "the order of its events of equal time is not known, and the verdict depends on it"
    SEVERAL = "its events are of several nodes, and nothing says which one is of which"
    LEFT_OUT = "a part of what was recorded is damaged and was left out"


VERDICTS = {
    Cause.STEP: TraceVerdict.VIOLATION,
    Cause.AFTER_END: TraceVerdict.VIOLATION,
    Cause.CONFLICT: TraceVerdict.VIOLATION,
    Cause.MISSING: TraceVerdict.GAP,
    Cause.NO_END: TraceVerdict.GAP,
    Cause.NOT_UNDERSTOOD: TraceVerdict.UNPARSED,
    Cause.BUDGET: TraceVerdict.UNDECIDED,
    Cause.ORDER: TraceVerdict.UNDECIDED,
    Cause.SEVERAL: TraceVerdict.UNDECIDED,
    Cause.LEFT_OUT: TraceVerdict.UNDECIDED,
}


@dataclass(frozen=True)
class Rival:
    """An event that has the sequence number of another, different one."""

    place: Place
    symbol: str


@dataclass(frozen=True)
class Finding:
    """What was found about one entity. `sequence` is that of the event where it was found.

    `symbols` are those of its events up to and including that one; none when there are too many.
    """

    key: EntityKey
    cause: Cause | None  # None: ok
    sequence: int
    duplicates: int
    place: Place | None = None
    last_good: Place | None = None
    symbols: tuple[str, ...] = ()
    before: PossibleStates | None = None  # the set in which that event was read, where it is known
    looks: Cause | None = None  # what it would be if nothing had been left out; None: ok
    following: int | None = None  # of missing events: the first sequence number after them
    rival: Rival | None = (
        None  # of different events of one number the second, if all were looked at
    )
    time: int | None = field(default=None, compare=False)  # of the event, if all were looked at

    @property
    def verdict(self) -> TraceVerdict:
        """Which of the five verdicts the cause means."""
        return TraceVerdict.OK if self.cause is None else VERDICTS[self.cause]


@dataclass(frozen=True)
class NotUnderstood:
    """One line that is an event, but none of its machine."""

    place: Place
    key: EntityKey
    reason: str


class Stands(NamedTuple):
    """What the candidates are to entities of one trace, which are `ok` by those that explain them or not at all."""

    trace: str
    machine: MachineKey
    ok: bool
    standings: tuple[Standing, ...]


def added(one: tuple[int, str] | None, other: tuple[int, str]) -> tuple[int, str]:
    """Both counts together, and the first of both names."""
    return other if one is None else (one[0] + other[0], min(one[1], other[1]))


@dataclass
class Evaluated:
    """What one partition found. The four counts of events add up to all that came in."""

    verdicts: dict[tuple[MachineKey, TraceVerdict], int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    not_understood: list[NotUnderstood] = field(default_factory=list)
    events_evaluated: int = 0
    events_not_evaluated: int = 0  # after a violation, a gap or an event that was not understood
    events_duplicate: int = 0
    events_not_understood: int = 0
    findings_left_out: int = 0
    # Of how many entities each is true, and the first of them by name; only where candidates are compared.
    standings: dict[Stands, tuple[int, str]] = field(default_factory=dict[Stands, tuple[int, str]])

    def add(self, other: Evaluated, details: int) -> None:
        """Take what was found of other entities of the partition; so much of it is kept."""
        for which, count in other.verdicts.items():
            self.verdicts[which] = self.verdicts.get(which, 0) + count
        self.findings += other.findings
        self.findings_left_out += other.findings_left_out + len(self.findings[details:])
        del self.findings[details:]
        for stands, counted in other.standings.items():
            self.standings[stands] = added(self.standings.get(stands), counted)
        self.not_understood += other.not_understood
        del self.not_understood[details:]
        self.events_evaluated += other.events_evaluated
        self.events_not_evaluated += other.events_not_evaluated
        self.events_duplicate += other.events_duplicate
        self.events_not_understood += other.events_not_understood

    def count(self, stream: Stream, verdict: TraceVerdict, many: int = 1) -> None:
        """Count so many more entities of the stream's machine that have the verdict."""
        key = stream[1:], verdict
        self.verdicts[key] = self.verdicts.get(key, 0) + many

    def count_ok(self, streams: Sequence[Stream], which: Ints) -> None:
        """Count entities that are ok; `which` is the number of each one's stream."""
        for stream, many in zip(
            streams, np.bincount(which, minlength=len(streams)).tolist(), strict=True
        ):
            self.count(stream, TraceVerdict.OK, many)


def evaluate(
    blocks: Sequence[Block], automata: Mapping[MachineKey, Source], *, every: bool = False
) -> Evaluated:
    """Evaluate all entities of the blocks; with `every`, the result lists also those that are ok."""
    result = Evaluated()
    if not blocks:
        return result
    block = merge(blocks)
    machines = sorted({stream[1:] for stream in block.streams})
    number = {machine: i for i, machine in enumerate(machines)}
    machine = np.array([number[s[1:]] for s in block.streams], np.int32)[block.stream]
    machines_running = [of_this_thread(automata[m]) for m in machines]
    ordered = order(block.entity, block.sequence, block.symbol, len(block.names))
    unknown = _not_understood(block, ordered, machine, machines_running)
    result.events_not_understood = len(unknown)
    result.not_understood = unknown[:DETAILS_MAX]
    replayed = replay(ordered, machine, machines_running, block.symbols)
    end_marked = np.array([m.source.recording.end_marked for m in machines_running], bool)[machine]
    ended = _ended(replayed.last, machine, machines_running)
    ok = ended | (~end_marked & (replayed.last >= LIVE))
    ok &= ~ordered.gap & ~ordered.conflict
    _count_events(result, ordered, replayed, len(unknown))
    result.count_ok(block.streams, block.stream[ok])
    rivals = _rivals(block, ordered)
    listed = range(len(block.names)) if every else np.flatnonzero(~ok).tolist()
    for entity in listed:
        finding = _finding(block, ordered, replayed, entity, rivals, ok=bool(ok[entity]))
        if not ok[entity]:
            result.count(finding.key.stream, finding.verdict)
        if every or len(result.findings) < DETAILS_MAX:
            result.findings.append(finding)
        else:
            result.findings_left_out += 1
    return result


def _ended(last: Ints, machine: Ints, machines: Sequence[Running]) -> Ints:
    """Which entities' last sets say that their end markers were read."""
    pairs, which = np.unique(np.stack([machine, last]), axis=1, return_inverse=True)
    ended = [machines[of].ended(number) for of, number in pairs.T.tolist()]
    return np.array(ended, bool)[which.ravel()]


def _count_events(result: Evaluated, ordered: Ordered, replayed: Replay, unknown: int) -> None:
    # The event at which a replay stopped was evaluated, unless it could not be understood.
    stopped = replayed.stopped
    evaluated = np.where(stopped >= 0, stopped + (replayed.last != UNKNOWN), ordered.run)
    result.events_evaluated = int(evaluated.sum())
    result.events_duplicate = int(ordered.duplicates.sum())
    result.events_not_evaluated = len(ordered.distinct) - result.events_evaluated - unknown


def _not_understood(
    block: Block, ordered: Ordered, machine: Ints, machines: Sequence[Running]
) -> list[NotUnderstood]:
    """The events that are none of their machine's, whether or not they come to be evaluated."""
    events = np.sort(ordered.distinct)
    entity, size = block.entity[events], len(block.symbols)
    first = block.sequence[events] == 0
    pair = (machine[entity].astype(np.int64) * size + block.symbol[events]) * 2 + first
    distinct, which = np.unique(pair, return_inverse=True)
    reasons = [
        _reason(machines[k // 2 // size], block.symbols[k // 2 % size], k % 2) for k in distinct
    ]
    bad = np.array([reason is not None for reason in reasons], bool)
    rows = np.flatnonzero(bad[which])
    found: list[NotUnderstood] = []
    for row in rows.tolist():
        reason = reasons[which[row]]
        assert reason is not None
        key = block.key(int(entity[row]))
        found.append(NotUnderstood(_place(block, int(events[row])), key, reason))
    return found


def _reason(machine: Running, symbol: str, first: int) -> str | None:
    return machine.refusal(START if first else ANY, symbol)


def _rivals(block: Block, ordered: Ordered) -> dict[int, Rival]:
    """For each entity with different events of the number where it breaks off, the second of them."""
    if not ordered.conflict.any():
        return {}
    rows = ordered.distinct
    whose = block.entity[rows]
    rows = rows[ordered.conflict[whose] & (block.sequence[rows] == ordered.run[whose])]
    kept = np.isin(rows, ordered.row)
    found: dict[int, Rival] = {}
    for row in np.sort(rows[~kept]).tolist():
        symbol = block.symbols[block.symbol[row]]
        found.setdefault(int(block.entity[row]), Rival(_place(block, row), symbol))
    return found


def _finding(
    block: Block,
    ordered: Ordered,
    replayed: Replay,
    entity: int,
    rivals: Mapping[int, Rival],
    *,
    ok: bool,
) -> Finding:
    start, run = int(ordered.start[entity]), int(ordered.run[entity])
    key, duplicates = block.key(entity), int(ordered.duplicates[entity])
    if ok:
        return Finding(key, None, run, duplicates)
    stopped, last = int(replayed.stopped[entity]), int(replayed.last[entity])
    at = stopped if stopped >= 0 else run
    cause = _cause(ordered, entity, last)
    here = stopped >= 0 or cause is Cause.CONFLICT
    # Of a gap the first event after it is shown; of a missing end marker there is none.
    shown = at if here or at < int(ordered.length[entity]) else None
    row = None if shown is None else int(ordered.row[start + shown])
    time = NO_TIME if row is None else int(block.time[row])
    keep = here and at < PREFIX_MAX
    symbols = [block.symbols[s] for s in ordered.symbol[start : start + at + 1]] if keep else []
    if cause is Cause.STEP and len(symbols) > 1 and _has_end(symbols[:-1]):
        cause = Cause.AFTER_END
    return Finding(
        key,
        cause,
        at,
        duplicates,
        None if row is None else _place(block, row),
        _place(block, int(ordered.row[start + at - 1])) if at > 0 else None,
        tuple(symbols),
        following=int(ordered.sequence[start + at]) if cause is Cause.MISSING else None,
        rival=rivals.get(entity) if cause is Cause.CONFLICT else None,
        time=None if time == NO_TIME else time,
    )


def doubted(finding: Finding, doubt: Doubt, *, good: bool) -> Finding:
    """The finding as far as it can be relied on; `good`: it would be ok if nothing had been left out."""
    if doubt is Doubt.NOTHING or (doubt is Doubt.ENDS and not good):
        return finding
    looks = None if good else finding.cause
    return replace(finding, cause=Cause.LEFT_OUT, looks=looks, symbols=(), before=None)


def _has_end(symbols: Sequence[str]) -> bool:
    return symbols[-1].endswith(",true]")


def _cause(ordered: Ordered, entity: int, last: int) -> Cause:
    if last == DEAD:
        return Cause.STEP
    if last == UNDECIDED:
        return Cause.BUDGET
    if last == UNKNOWN:
        return Cause.NOT_UNDERSTOOD
    if ordered.conflict[entity]:
        return Cause.CONFLICT
    return Cause.MISSING if ordered.gap[entity] else Cause.NO_END


def _place(block: Block, row: int) -> Place:
    return place_of(int(block.place[row]))
