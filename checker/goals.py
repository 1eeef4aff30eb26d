"""Decides reachable goals: from every reachable state, the goal can still be reached."""

from __future__ import annotations

import numpy as np

from stagewright.checker.explicit.arrays import Bools
from stagewright.checker.explicit.graph import Graph


def nearest_hopeless(graph: Graph, goal: Bools, expanded: int) -> int | None:
    """The first state from which no goal state can be reached; None if there is none.

    States with ids from `expanded` on have not been expanded: whatever lies beyond them might be a
    goal, so that an answer is right even for an unfinished search.
    """
    hopeful = goal.copy()
    hopeful[expanded:] = True
    reached = graph.closure(graph.into, hopeful)
    hopeless = np.flatnonzero(~reached)
    return int(hopeless[0]) if hopeless.size else None
