"""Counts what each candidate is to the entities of a partition, by trace."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled
from stagewright.traces.automaton.subset_automaton import DEAD
from stagewright.traces.events.event_block import Stream
from stagewright.traces.events.string_pool import Interner
from stagewright.traces.replay.exact_verdicts import Stands, added
from stagewright.traces.replay.join_loop import CONFLICT, GAP, HOW, LAST, OVERLAP, SET
from stagewright.traces.replay.transition_table import Steps

Ints = NDArray[Any]


def standings_of(
    streams: tuple[Stream, ...], interner: Interner, found: Ints, ok: Ints, steps: Steps
) -> dict[Stands, tuple[int, str]]:
    """Of how many of the settled entities each is true, with the first of them by name; `ok`: which are."""
    settled = np.flatnonzero(found[:, HOW] != OVERLAP)
    how, whose = found[settled, HOW], interner.groups[settled]
    dead = np.array([steps.number(s[1:], DEAD) for s in streams], np.int64)[whose]
    number = np.where(how == GAP, found[settled, SET], found[settled, LAST])
    # events that contradict each other: no run has both
    number = np.where(how == CONFLICT, dead, number)
    kinds, kind = np.unique(np.stack([whose, number, ok[settled]]), axis=1, return_inverse=True)
    counts = np.bincount(kind.ravel(), minlength=kinds.shape[1])
    names = interner.names
    first = np.full(kinds.shape[1], -1, np.int64)
    _first_names(names.data, names.begin, names.end, settled, kind.ravel(), first)
    data: dict[Stands, tuple[int, str]] = {}
    for (group, tuple_, is_ok), count, entity in zip(
        kinds.T.tolist(), counts.tolist(), first.tolist(), strict=True
    ):
        if standings := steps.standings(tuple_):
            stream = streams[group]
            stands = Stands(stream.trace, stream[1:], bool(is_ok), standings)
            data[stands] = added(data.get(stands), (count, names.text(entity)))
    return data


@compiled
def _first_names(
    data: Ints, begin: Ints, end: Ints, entities: Ints, kind: Ints, first: Ints
) -> None:
    """Find the entity of each kind whose name comes first, byte by byte."""
    for i in range(len(entities)):
        one, other = entities[i], first[kind[i]]
        if other < 0:
            first[kind[i]] = one
            continue
        a, b = begin[one], begin[other]
        while a < end[one] and b < end[other] and data[a] == data[b]:
            a += 1
            b += 1
        if b < end[other] and (a == end[one] or data[a] < data[b]):
            first[kind[i]] = one
