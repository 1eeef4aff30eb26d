"""The heavy work on graphs: compiled where code can be compiled, else by NumPy and SciPy (extra `numpy-engine`)."""

from __future__ import annotations

import numpy as np

from stagewright.checker.explicit.arrays import Bools, Ints, SmallInts
from stagewright.spec.errors import StagewrightError


def grouped(keys: SmallInts, count: int) -> tuple[Ints, Ints]:
    """Where each key's positions begin, and all positions in the order of their keys."""
    if _compiles():
        from stagewright.checker.explicit.native.code import graph_functions

        return graph_functions.grouped(keys, count)
    return grouped_by_numpy(keys, count)


def closure(offsets: Ints, ends: SmallInts, starts: Bools, within: Bools | None) -> Bools:
    """The states that `starts` lead to by the edges, never leaving `within`."""
    if _compiles():
        from stagewright.checker.explicit.native.code import graph_functions

        return graph_functions.closure(offsets, ends, starts, within)
    return closure_by_numpy(offsets, ends, starts, within)


def components(offsets: Ints, ends: SmallInts, alive: Bools) -> tuple[Ints, int]:
    """The strongly connected parts of the living states: a label for each state, or -1; how many."""
    if _compiles():
        from stagewright.checker.explicit.native.code import graph_functions

        return graph_functions.components(offsets, ends, alive)
    return components_by_scipy(offsets, ends, alive)


def grouped_by_numpy(keys: SmallInts, count: int) -> tuple[Ints, Ints]:
    """A stable sort; of small integers NumPy's is a radix sort."""
    return offsets_of(keys, count), np.argsort(keys, kind="stable").astype(np.int64)


def closure_by_numpy(offsets: Ints, ends: SmallInts, starts: Bools, within: Bools | None) -> Bools:
    """The closure, one layer of states after the other."""
    reached = starts.copy()
    frontier = np.flatnonzero(starts)
    while frontier.size:
        found = ends[edges_at(offsets, frontier)]
        found = found[~reached[found]]
        if within is not None:
            found = found[within[found]]
        reached[found] = True
        frontier = np.unique(found).astype(np.int64)
    return reached


def components_by_scipy(offsets: Ints, ends: SmallInts, alive: Bools) -> tuple[Ints, int]:
    """The strongly connected parts of the matrix of edges between living states."""
    try:
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import connected_components
    except ModuleNotFoundError:
        raise StagewrightError(
            "without llvmlite, liveness and goals are decided by SciPy, which is not installed",
            help="pip install 'stagewright[numpy-engine]'",
        ) from None
    states = np.flatnonzero(alive)
    labels = np.full(alive.size, -1, dtype=np.int64)
    if not states.size:
        return labels, 0
    renumbered = np.cumsum(alive, dtype=np.int64) - 1
    sources = np.repeat(np.arange(alive.size), np.diff(offsets))
    inner = alive[sources] & alive[ends]
    starts = offsets_of(renumbered[sources[inner]], states.size)
    shape = (states.size, states.size)
    matrix = csr_matrix((np.ones(int(starts[-1])), renumbered[ends[inner]], starts), shape=shape)
    matrix.sum_duplicates()  # SciPy loops for ever over parallel edges
    count, found = connected_components(matrix, connection="strong")
    labels[states] = found
    return labels, int(count)


def edges_at(offsets: Ints, states: Ints) -> Ints:
    """The positions of all edges at the given states, state by state."""
    first, after = offsets[states], offsets[states + 1]
    counts = after - first
    before = np.cumsum(counts) - counts
    return np.repeat(first - before, counts) + np.arange(counts.sum(), dtype=np.int64)


def offsets_of(keys: SmallInts | Ints, count: int) -> Ints:
    """Where each key's positions begin, in an order by key."""
    counts = np.bincount(keys, minlength=count)
    return np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts, dtype=np.int64)))


def _compiles() -> bool:
    from stagewright.checker.explicit.native.code.jit import available

    return available()
