"""What the tasks of one level observed, as one: counts are sums, masks unions, notes minima."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stagewright.checker.explicit.exploration import Noted, Tally
from stagewright.checker.explicit.native.code import observed as block
from stagewright.checker.explicit.native.code.observed import Numbers, Observed
from stagewright.checker.explicit.native.engine import NativeEngine


def joined(place: Observed, blocks: Sequence[Numbers]) -> Numbers:
    """One block that says what all of them say."""
    total = place.block()
    seen = slice(place.seen_states, place.live_steps), slice(place.seen_steps, place.state_notes)
    for part in seen:
        total[part] = np.bitwise_or.reduce([b[part] for b in blocks])
    size = place.words + 2
    for first in range(place.state_notes, place.fired, size):
        noted = [b for b in blocks if place.noted(b, first) is not None]
        if noted:
            best = min(noted, key=lambda b: _note(place, b, first))
            total[first : first + size] = best[first : first + size]
    total[place.fired :] = np.sum([b[place.fired :] for b in blocks], axis=0)
    return total


def _note(place: Observed, numbers: Numbers, first: int) -> Noted:
    found = place.noted(numbers, first)
    assert found is not None
    return found


def settle(
    tally: Tally, engine: NativeEngine, place: Observed, numbers: Numbers, states: int, depth: int
) -> None:
    """Count what was observed in a level of so many states that were expanded, and keep its notes."""
    settle_states(tally, place, numbers, depth)
    for i, note in enumerate(tally.step_notes):
        if note is None:
            tally.step_notes[i] = _settled(tally, place, numbers, place.step_note(i), depth)
    for i in range(len(tally.met_steps)):
        tally.met_steps[i] |= block.is_set(numbers, place.seen_steps, i)
    if tally.deadlock is None:
        tally.deadlock = _settled(tally, place, numbers, place.deadlock, depth)
    if tally.overflow is None:
        tally.overflow = _settled(tally, place, numbers, place.overflow, depth)
    tally.fired += numbers[place.fired : place.false]
    tally.count_beyond(tally.beyond + int(numbers[place.beyond]), depth)
    if tally.watch.coverage:
        tally.false_counts += engine.false_counts(numbers[place.false :], states)


def settle_states(tally: Tally, place: Observed, numbers: Numbers, depth: int) -> None:
    """Keep what was noted of the states themselves."""
    for i, note in enumerate(tally.state_notes):
        if note is None:
            tally.state_notes[i] = _settled(tally, place, numbers, place.state_note(i), depth)
    for i in range(len(tally.met_states)):
        tally.met_states[i] |= block.is_set(numbers, place.seen_states, i)


def _settled(
    tally: Tally, place: Observed, numbers: Numbers, first: int, depth: int
) -> Noted | None:
    if place.noted(numbers, first) is None:
        return None
    tally.noted_depth = depth
    return _note(place, numbers, first)
