"""All edges between known states, with any engine: expanded once more, batch by batch."""

from __future__ import annotations

import numpy as np

from stagewright.checker.explicit.engine import Engine
from stagewright.checker.explicit.graph import Graph, Ints, SmallInts
from stagewright.checker.explicit.packing import Words
from stagewright.checker.explicit.states import StateTable


def graph_of(engine: Engine, states: Words, expanded: int) -> Graph:
    """The edges of the first so many states; `states` are distinct and hold every successor."""
    table = StateTable(states.shape[0])
    columns = np.empty(
        states.shape[1], dtype=np.int32
    )  # by the number that the table gives a state
    for first in range(0, states.shape[1], engine.batch):
        part = states[:, first : first + engine.batch]
        columns[table.add(part)] = np.arange(first, first + part.shape[1], dtype=np.int32)
    parts: list[tuple[SmallInts, SmallInts, SmallInts]] = []
    overflowing: list[Ints] = [np.empty(0, dtype=np.int64)]
    for first in range(0, expanded, engine.batch):
        expansion = engine.expand(states[:, first : min(expanded, first + engine.batch)])
        targets = columns[table.add(expansion.successors)]
        order = np.lexsort((expansion.steps, expansion.sources))
        sources = (expansion.sources[order] + first).astype(np.int32)
        parts.append((sources, targets[order], expansion.steps[order]))
        overflowing.append(np.unique(expansion.overflow_sources) + first)
    assert table.count == states.shape[1], "an edge leads to a state that is not known"
    return Graph.of(states.shape[1], parts, np.concatenate(overflowing))
