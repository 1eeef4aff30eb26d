"""Compiled graph searches find what SciPy's and NumPy's find."""

import numpy as np
from hypothesis import given, strategies as st

from stagewright.checker.explicit import graph_work
from stagewright.checker.explicit.arrays import Bools, Ints, SmallInts
from stagewright.checker.explicit.graph_work import offsets_of
from stagewright.checker.explicit.native.code import graph_functions


def some_graph(seed: int) -> tuple[Ints, SmallInts, Bools, Bools]:
    """Offsets, ends, and two sets of states, all by chance; also without states or edges."""
    chance = np.random.default_rng(seed)
    states = int(chance.integers(0, 40))
    edges = int(chance.integers(0, 4 * states + 1)) if states else 0
    sources = np.sort(chance.integers(0, max(states, 1), edges))
    ends = chance.integers(0, max(states, 1), edges).astype(np.int32)
    few, most = chance.random(states) < 0.1, chance.random(states) < 0.9
    return offsets_of(sources, states), ends, few, most


seeds = st.integers(0, 2**32)


@given(seeds)
def test_positions_are_grouped_by_key(seed: int) -> None:
    _, ends, few, _ = some_graph(seed)
    if not few.size:
        return
    offsets, positions = graph_functions.grouped(ends, few.size)
    by_numpy = graph_work.grouped_by_numpy(ends, few.size)
    assert offsets.tolist() == by_numpy[0].tolist()
    assert positions.tolist() == by_numpy[1].tolist()


@given(seeds)
def test_closures_are_the_same(seed: int) -> None:
    offsets, ends, starts, within = some_graph(seed)
    for inside in (None, within):
        compiled = graph_functions.closure(offsets, ends, starts, inside)
        assert (
            compiled.tolist() == graph_work.closure_by_numpy(offsets, ends, starts, inside).tolist()
        )


@given(seeds)
def test_strongly_connected_parts_are_the_same_but_for_their_numbers(seed: int) -> None:
    offsets, ends, _, alive = some_graph(seed)
    labels, count = graph_functions.components(offsets, ends, alive)
    others, other_count = graph_work.components_by_scipy(offsets, ends, alive)
    assert count == other_count
    assert (labels < 0).tolist() == (~alive).tolist() == (others < 0).tolist()
    assert len(set(zip(labels.tolist(), others.tolist(), strict=True))) == len(set(labels.tolist()))
    assert set(labels[alive].tolist()) == set(range(count))


def test_a_path_as_long_as_the_graph_needs_no_stack() -> None:
    states = 300_000
    ends = np.append(np.arange(1, states), 0).astype(np.int32)
    offsets = np.arange(states + 1)
    _, count = graph_functions.components(offsets, ends, np.ones(states, dtype=np.bool_))
    assert count == 1
