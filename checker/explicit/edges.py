"""All edges between known states, with any engine: expanded once more, batch by batch."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from stagewright.checker.explicit.arrays import Ints, SmallInts
from stagewright.checker.explicit.engine import Engine, Expansion
from stagewright.checker.explicit.graph import Graph
from stagewright.checker.explicit.packing import Layout, Words
from stagewright.checker.explicit.states import StateTable

_BATCH = 1 << 15
_Finder = Callable[[Words], SmallInts]


def graph_of(engine: Engine, states: Words, expanded: int) -> Graph:
    """The edges of the first so many states; `states` are distinct and hold every successor."""
    from stagewright.checker.explicit.native.code.jit import available

    finder = compiled_finder if available() else plain_finder
    number_of = finder(engine.layout, states)
    parts: list[tuple[SmallInts, SmallInts, SmallInts]] = []
    overflowing: list[Ints] = [np.empty(0, dtype=np.int64)]
    for first in range(0, expanded, engine.batch):
        expansion = engine.expand(states[:, first : min(expanded, first + engine.batch)])
        order = _in_order(expansion)
        targets = number_of(expansion.successors)[order]
        sources = (expansion.sources[order] + first).astype(np.int32)
        parts.append((sources, targets, expansion.steps[order]))
        overflowing.append(np.unique(expansion.overflow_sources) + first)
    graph = Graph.of(states.shape[1], parts, np.concatenate(overflowing))
    assert not (graph.targets < 0).any(), "an edge leads to a state that is not known"
    return graph


def _in_order(expansion: Expansion) -> Ints | slice:
    """Which edges come first: by source, those of one source by step, as some engines give them."""
    steps = int(expansion.steps.max(initial=0)) + 1
    place = expansion.sources * steps + expansion.steps
    if (place[1:] > place[:-1]).all():
        return slice(None)
    return np.argsort(place, kind="stable")


def compiled_finder(layout: Layout, states: Words) -> _Finder:
    """Which of the states each of some others is, by a compiled table; -1: none."""
    from stagewright.checker.explicit.native.visited_set.visited import Visited

    return Visited.of_states(layout, states).places


def plain_finder(layout: Layout, states: Words) -> _Finder:
    """The same by a table made with NumPy; the states looked for must be among them."""
    table = StateTable(layout.words)
    # by the number that the table gives a state
    columns = np.empty(states.shape[1], dtype=np.int32)
    for first in range(0, states.shape[1], _BATCH):
        part = states[:, first : first + _BATCH]
        columns[table.add(part)] = np.arange(first, first + part.shape[1], dtype=np.int32)

    def number_of(others: Words) -> SmallInts:
        found = table.add(others)
        assert table.count == columns.size, "an edge leads to a state that is not known"
        return columns[found]

    return number_of
