"""The code that each engine generates computes what the ground form means, on models made at random."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from tests.checker.explicit.random_models import Maker, model_of
from tests.thorough import examples

from stagewright.checker.explicit.engine import Engine, requirement_keys
from stagewright.checker.explicit.native.engine import NativeEngine
from stagewright.checker.explicit.numpy_engine import numpy_engine
from stagewright.spec.errors import ScopeError
from stagewright.spec.grounding.ground import (
    Builder,
    Cell,
    GroundModel,
)
from stagewright.spec.grounding.ground_eval import evaluate, take
from stagewright.spec.sorts import IntSort

seeds = st.integers(0, 2**32)
engines = pytest.mark.parametrize(
    "engine_of", [numpy_engine, NativeEngine], ids=["numpy", "native"]
)
EngineOf = Callable[[GroundModel], Engine]


@engines
@settings(max_examples=examples(150))
@given(seed=seeds)
def test_expansion_agrees_with_plain_evaluation(engine_of: EngineOf, seed: int) -> None:
    maker = Maker(seed)
    steps = [maker.step(i) for i in range(maker.chance.randint(1, 4))]
    states = [maker.state() for _ in range(maker.chance.randint(1, 9))]
    model = model_of(maker.cells, maker.builder, steps, states[0])
    engine = engine_of(model)
    expansion = engine.expand(engine.layout.pack(states))

    edges, overflows, false = Counter[object](), Counter[object](), Counter[tuple[str, str]]()
    for row, state in enumerate(states):
        for step in steps:
            for requirement in step.requirements:
                key = (step.action.name, requirement.name)
                false[key] += not evaluate(requirement.condition, state)
            if not evaluate(step.guard, state):
                continue
            if evaluate(step.overflows, state):
                overflows[row, step.index] += 1
            else:
                edges[row, step.index, take(step, state)] += 1
    successors = [
        engine.layout.unpack(expansion.successors, i) for i in range(expansion.steps.size)
    ]
    rows, indices = expansion.sources.tolist(), expansion.steps.tolist()
    assert Counter[object](zip(rows, indices, successors, strict=True)) == edges
    overflowing = zip(
        expansion.overflow_sources.tolist(), expansion.overflow_steps.tolist(), strict=True
    )
    assert Counter[object](overflowing) == overflows
    counts = expansion.false_counts.tolist()
    assert dict(zip(requirement_keys(model), counts, strict=True)) == dict(false)


@engines
@settings(max_examples=examples(150))
@given(seed=seeds)
def test_conditions_agree_with_plain_evaluation(engine_of: EngineOf, seed: int) -> None:
    maker = Maker(seed)
    nodes = [maker.condition(3) for _ in range(3)]
    over_steps = [maker.condition(3, new=True) for _ in range(3)]
    old = [maker.state() for _ in range(6)]
    new = [maker.state() for _ in range(6)]
    engine = engine_of(model_of(maker.cells, maker.builder, [], old[0]))
    packed_old, packed_new = engine.layout.pack(old), engine.layout.pack(new)
    for node, values in zip(nodes, engine.state_conditions(nodes)(packed_old), strict=True):
        assert values.tolist() == [bool(evaluate(node, state)) for state in old]
    found = engine.step_conditions(over_steps)(packed_old, packed_new)
    for node, values in zip(over_steps, found, strict=True):
        expected = [bool(evaluate(node, a, b)) for a, b in zip(old, new, strict=True)]
        assert values.tolist() == expected


@given(seeds)
def test_a_packed_state_unpacks_to_itself(seed: int) -> None:
    maker = Maker(seed)
    states = [maker.state() for _ in range(4)]
    engine = numpy_engine(model_of(maker.cells, maker.builder, [], states[0]))
    packed = engine.layout.pack(states)
    assert packed.dtype == np.uint64
    assert [engine.layout.unpack(packed, i) for i in range(4)] == states


@engines
def test_a_variable_too_wide_for_a_word_is_refused_by_name(engine_of: EngineOf) -> None:
    cell = Cell(0, "balance", "balance", (), IntSort(0, 2**70), 0, 2**70 + 1)
    builder = Builder([(cell.low, cell.high, False)])
    with pytest.raises(ScopeError, match=r"balance ranges over .* too wide for the search"):
        engine_of(model_of([cell], builder, [], (0,)))
