"""Counts again what entities exercised of which something was wrong, so that the counts are of what was evaluated.

A task counts what it replays before anyone knows that the entity went wrong in another file, or that another file
repeats its events. So the second pass replays those entities as the first one did, and takes back what was counted
of events that were not evaluated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stagewright.traces.automaton.possible_states import PossibleStates
from stagewright.traces.events.event_block import Block, Ints, chosen
from stagewright.traces.replay.rows import Rows
from stagewright.traces.replay.segments import Segments
from stagewright.traces.replay.transition_table import Steps

# How often a symbol was read in a set; of a difference also how much less.
Taken = Counter[tuple[PossibleStates, str]]


@dataclass(frozen=True)
class Wrong:
    """Rows of entities of which something is wrong: what they did before is yet to be counted."""

    rows: Rows

    @property
    def nbytes(self) -> int:
        """About how much memory they take."""
        return self.rows.nbytes


class Recount:
    """Replays the miscounted entities of one task.

    `breaks` are the places in which the first pass closed all segments, for it held many more entities.
    """

    def __init__(self, steps: Steps, breaks: Sequence[int]) -> None:
        self.rows: list[Rows] = []
        self._steps = steps
        self._segments = Segments(steps, self.rows.append, closes=True)
        self._breaks = list(breaks)

    def take(self, block: Block, evaluated: Ints) -> None:
        """Replay events, of which the entities have so many that were evaluated."""
        while self._breaks and len(block) and block.place[-1] >= self._breaks[0]:
            late = block.place >= self._breaks.pop(0)
            early = chosen(block, np.flatnonzero(~late))
            self._segments.take(early, evaluated[np.unique(block.entity[~late])])
            self._segments.flush()
            evaluated = evaluated[np.unique(block.entity[late])]
            block = chosen(block, np.flatnonzero(late))
        self._segments.take(block, evaluated)

    def end(self) -> Taken:
        """How much more often than it was evaluated each symbol was read in each set by the first pass."""
        self._segments.flush()
        return taken(self._steps)


def taken(steps: Steps) -> Taken:
    """How often each symbol was read in each set."""
    found: Taken = Counter()
    for possible, symbol, count in steps.taken():
        found[_in_order(possible), symbol] += count
    return found


def _in_order(possible: PossibleStates) -> PossibleStates:
    """The same set as any process lists it."""
    parts = tuple(c._replace(states=tuple(sorted(c.states))) for c in possible.candidates)
    return possible._replace(states=tuple(sorted(possible.states)), candidates=parts)
