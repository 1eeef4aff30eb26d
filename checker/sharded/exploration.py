"""What a search over shards knows in one memory: all counts and notes, and the states of shortest runs.

Verdicts are found from it as from any other exploration; only ids mean less: they number the states of
the shortest runs to what was noted, by depth and words, and no others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np

from stagewright.checker.explicit.engine import Engine
from stagewright.checker.explicit.exploration import Exploration, Noted, Tally

States = set[tuple[int, ...]]
FindParents = Callable[[int, list[tuple[int, ...]]], list[Noted]]
"""At a depth, the least state and its first step that lead to each of some states one deeper."""


@dataclass
class ShardedExploration(Exploration):
    """A finished search over shards; `levels` and all ids are those of the kept states."""

    complete: bool = False
    ends: tuple[int, ...] = (0,)  # kept states before each depth, and in the end

    @property
    def exhausted(self) -> bool:
        """Whether every reachable state was expanded."""
        return self.complete

    @property
    def depth(self) -> int:
        """The greatest depth of which all states are known and were looked at."""
        return self.tally.within_depth if self.tally.beyond else len(self.tally.levels) - 1

    @property
    def levels(self) -> list[int]:
        """The first id of each depth."""
        return list(self.ends[:-1])

    def level(self, depth: int) -> tuple[int, int]:
        """The first id of a depth, and the one after its last."""
        return self.ends[depth], self.ends[depth + 1]

    def depth_of(self, state: int) -> int:
        """How many steps the nearest initial state is away."""
        return bisect_right(self.ends, state) - 1

    def segments(self) -> list[tuple[int, int]]:
        """Where states are in one order."""
        return list(pairwise(self.ends))


def explored(
    engine: Engine,
    tally: Tally,
    noted: dict[int, States],
    find_parents: FindParents,
    *,
    complete: bool,
) -> ShardedExploration:
    """An exploration with the states of the least shortest runs to what was noted, by its depth."""
    depths: list[States] = [set() for _ in range(max(noted, default=0) + 2)]
    for depth, states in noted.items():
        depths[depth] |= states
    for depth in range(len(depths) - 2, 0, -1):
        wanted = sorted(depths[depth])
        if wanted:
            depths[depth - 1] |= {parent.words for parent in find_parents(depth - 1, wanted)}
    _add_ends(engine, tally, depths)
    ordered = [words for states in depths for words in sorted(states)]
    words = np.array(ordered, dtype=np.uint64).reshape(len(ordered), engine.layout.words).T
    ends = tuple(accumulate((len(states) for states in depths), initial=0))
    return ShardedExploration(
        engine, tally, lambda _: words, kept=False, complete=complete, ends=ends
    )


def _add_ends(engine: Engine, tally: Tally, depths: list[States]) -> None:
    """Behind all others, the states that broken step promises end in."""
    known = set().union(*depths)
    for note in tally.step_notes:
        if note is not None:
            source = np.array(note.words, dtype=np.uint64)[:, np.newaxis]
            expansion = engine.expand(source)
            (edge,) = np.flatnonzero(expansion.steps == note.step).tolist()
            end = tuple(expansion.successors[:, edge].tolist())
            depths[-1] |= {end} - known
