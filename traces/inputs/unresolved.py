"""Events of machines that are not at hand: they are set aside where they are read, counted and named."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from stagewright.spec.errors import InputError, StagewrightError
from stagewright.spec.text.counting import counted
from stagewright.traces.events.event_block import Block, chosen, place_of
from stagewright.traces.replay.exact_verdicts import (
    DETAILS_MAX,
    Evaluated,
    MachineKey,
    NotUnderstood,
)

KINDS_MAX = 10_000  # different machines, profiles and definitions
_NAMED_MAX = 1_000  # events of one kind that a task names
_NOTED_MAX = 10  # kinds that a report has a note of


@dataclass
class Aside:
    """How many events of each kind were set aside, and the first of them."""

    counts: dict[MachineKey, int] = field(default_factory=dict[MachineKey, int])
    first: dict[MachineKey, list[NotUnderstood]] = field(
        default_factory=dict[MachineKey, list[NotUnderstood]]
    )

    def known_part(self, block: Block, known: Collection[MachineKey]) -> Block:
        """The events of known machines; the others are set aside."""
        strange = np.array([stream[1:] not in known for stream in block.streams], bool)
        if not strange.any():
            return block
        aside = strange[block.stream][block.entity]
        kind = block.stream[block.entity]
        for number in np.flatnonzero(strange).tolist():
            self._count(block, block.streams[number][1:], np.flatnonzero(kind == number).tolist())
        return chosen(block, np.flatnonzero(~aside))

    def _count(self, block: Block, kind: MachineKey, rows: list[int]) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + len(rows)
        named = self.first.setdefault(kind, []) if len(self.first) < KINDS_MAX else []
        for row in rows[: _NAMED_MAX - len(named)]:
            place = place_of(int(block.place[row]))
            named.append(NotUnderstood(place, block.key(int(block.entity[row])), ""))


def all_of(parts: Iterable[Aside]) -> Aside:
    """What several tasks have set aside.

    Raises:
        InputError: these are so many different machines that the input must be something else.
    """
    whole = Aside()
    for part in parts:
        for kind, count in part.counts.items():
            whole.counts[kind] = whole.counts.get(kind, 0) + count
        for kind, named in part.first.items():
            whole.first.setdefault(kind, []).extend(named)
        if len(whole.counts) > KINDS_MAX:
            raise InputError(
                f"the events name more than {KINDS_MAX:,} different machines that are not at hand",
                help="is what stands in their `machine`, `profile` or `definition` meant to be that?",
            )
    for named in whole.first.values():
        named.sort(key=lambda one: one.place)
    return whole


def as_evaluated(aside: Aside, why: Mapping[MachineKey, StagewrightError]) -> Evaluated:
    """The events as what they are: none of a machine that could evaluate them."""
    found = Evaluated(events_not_understood=sum(aside.counts.values()))
    for kind, named in aside.first.items():
        found.not_understood += [NotUnderstood(n.place, n.key, why[kind].problem) for n in named]
    found.not_understood.sort(key=lambda one: one.place)
    del found.not_understood[DETAILS_MAX:]
    return found


def notes(aside: Aside, why: Mapping[MachineKey, StagewrightError]) -> list[str]:
    """What is to be noted of them, the most frequent kinds first."""
    kinds = sorted(aside.counts, key=lambda kind: (-aside.counts[kind], kind))
    parts = [
        f"{counted(aside.counts[kind], 'event')} not checked: {why[kind].problem}"
        + (f"; {why[kind].help}" if why[kind].help else "")
        for kind in kinds[:_NOTED_MAX]
    ]
    more = len(kinds) - len(parts)
    rest = sum(aside.counts[kind] for kind in kinds[_NOTED_MAX:])
    return [*parts, *([f"{rest:,} more events are of {more:,} more such machines"] if more else [])]
