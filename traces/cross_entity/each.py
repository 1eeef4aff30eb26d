"""Evaluates properties that say something of each entity by itself: they need no order of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.traces.cross_entity.sweep import DETAILS_MAX, Broken, Group, Member, Swept
from stagewright.traces.events.event_block import place_of
from stagewright.traces.replay.related.classes import Related, Seen
from stagewright.traces.replay.related.counted import BROKEN, HOLDS, OPEN
from stagewright.traces.replay.related.formula import ClassOf, evaluate
from stagewright.traces.replay.related.timeline import NEW, OLD, WHEN, WHERE, WHOSE, Changes

Ints = NDArray[Any]

_NOT_ASKED = -1


def evaluate_each(changes: Changes, properties: Sequence[Related]) -> Swept:
    """Evaluate those of the properties that are local, on every class that an entity was in."""
    swept = Swept()
    table = changes.table
    for number, prop in enumerate(properties):
        if not prop.local or not len(table):
            continue
        verdicts = np.array([*(_verdict(prop, seen) for seen in changes.classes), _NOT_ASKED])
        new, old = verdicts[table[:, NEW]], verdicts[table[:, OLD]]
        counts = swept.of(number)
        counts.evaluated = len(np.unique(table[new != _NOT_ASKED, WHOSE]))
        breaks = np.flatnonzero((new == BROKEN) & (old != BROKEN))
        entities, first, times = np.unique(
            table[breaks, WHOSE], return_index=True, return_counts=True
        )
        counts.broken = len(entities)
        opens = table[new == OPEN]
        opens = opens[~np.isin(opens[:, WHOSE], entities)]
        counts.open = len(np.unique(opens[:, WHOSE]))
        if len(opens):
            counts.first_open = place_of(int(opens[:, WHERE].min()))
        swept.left_out += max(len(entities) - DETAILS_MAX, 0)
        for entity, at, count in list(
            zip(entities.tolist(), first.tolist(), times.tolist(), strict=True)
        )[:DETAILS_MAX]:
            row = table[breaks[at]]
            key, place = changes.key(entity), place_of(int(row[WHERE]))
            group = Group(key.stream.trace, key.entity)
            member = Member(key, place, beginning=bool(row[OLD] < 0))
            swept.broken.append(Broken(number, group, int(row[WHEN]), place, (member,), count))
    return swept


def _verdict(prop: Related, seen: Seen) -> int:
    """What is known of an entity of a class."""
    found: set[int] = set()
    for family, (machine, _) in enumerate(prop.families):
        if machine != seen.machine:
            continue
        options = prop.options(family, seen)
        if not options:
            return OPEN
        holds = {evaluate(prop.formula, {ClassOf(family, values): 1}) for values in options}
        found |= {HOLDS if h else BROKEN for h in holds}
    if not found:
        return _NOT_ASKED
    return found.pop() if len(found) == 1 else OPEN
