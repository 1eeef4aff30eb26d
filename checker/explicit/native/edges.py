"""All edges between known states: an id table over them, and one more expansion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stagewright.checker.explicit.graph import Graph, Ints, SmallInts
from stagewright.checker.explicit.native.visited import Visited
from stagewright.checker.explicit.packing import Words

if TYPE_CHECKING:
    from stagewright.checker.explicit.native.engine import NativeEngine


def graph_of(engine: NativeEngine, states: Words, expanded: int) -> Graph:
    """The edges of the first so many states; `states` are distinct and hold every successor."""
    visited = Visited.of_states(engine.layout, states)
    parts: list[tuple[SmallInts, SmallInts, SmallInts]] = []
    overflowing: list[Ints] = [np.empty(0, dtype=np.int64)]
    for first in range(0, expanded, engine.batch):
        expansion = engine.expand(states[:, first : min(expanded, first + engine.batch)])
        targets = visited.places(expansion.successors)
        assert not (targets < 0).any(), "an edge leads to a state that is not known"
        sources = (expansion.sources + first).astype(np.int32)
        parts.append((sources, targets, expansion.steps.copy()))
        overflowing.append(np.unique(expansion.overflow_sources) + first)
    return Graph.of(states.shape[1], parts, np.concatenate(overflowing))
