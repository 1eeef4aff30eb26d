"""The code that each engine generates computes what the ground form means, on models made at random."""

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from stagewright.checker.explicit.engine import Engine, requirement_keys
from stagewright.checker.explicit.native.engine import NativeEngine
from stagewright.checker.explicit.numpy_engine import numpy_engine
from stagewright.spec.definition import Action, Definition
from stagewright.spec.errors import ScopeError
from stagewright.spec.ground import (
    Builder,
    Cell,
    GroundModel,
    GroundNode,
    GroundRequirement,
    GroundStep,
)
from stagewright.spec.ground_eval import evaluate, take
from stagewright.spec.nodes import TRUE
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import BoolSort, IntSort
from stagewright.spec.values import FrozenMap

seeds = st.integers(0, 2**32)
engines = pytest.mark.parametrize(
    "engine_of", [numpy_engine, NativeEngine], ids=["numpy", "native"]
)
EngineOf = Callable[[GroundModel], Engine]
SIZES = (1, 2, 3, 5, 130, 300, 1 << 20, 1 << 40)


def model_of(
    cells: list[Cell], builder: Builder, steps: list[GroundStep], state: tuple[int, ...]
) -> GroundModel:
    actions = tuple(dict.fromkeys(step.action for step in steps))
    definition = Definition("Random", "", "", (), (), (), actions, (), TRUE, ())
    scope = Scope(FrozenMap({}), FrozenMap({}))
    return GroundModel(
        definition,
        scope,
        tuple(cells),
        (state,),
        tuple(steps),
        (),
        (),
        (),
        (),
        builder.true,
        builder,
    )


class Maker:
    """Makes a model by chance: from a seed, since drawing each node by itself is slow."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.cells = [self.cell(i) for i in range(self.chance.randint(1, 7))]
        self.builder = Builder((c.low, c.high, isinstance(c.sort, BoolSort)) for c in self.cells)

    def cell(self, index: int) -> Cell:
        if self.chance.random() < 0.5:
            return Cell(index, f"c{index}", f"c{index}", (), BoolSort(), 0, 2)
        size = self.chance.choice(SIZES)
        low = self.chance.randint(-200, 5)
        sort = IntSort(low, low + size - 1)
        return Cell(index, f"c{index}", f"c{index}", (), sort, low, size)

    def some_cells(self) -> list[int]:
        every = range(len(self.cells))
        return self.chance.sample(every, self.chance.randint(0, len(self.cells)))

    def state(self) -> tuple[int, ...]:
        return tuple(self.chance.randint(c.low, c.high) for c in self.cells)

    def leaf(self, *, boolean: bool, new: bool) -> GroundNode:
        fitting = [c for c in self.cells if isinstance(c.sort, BoolSort) is boolean]
        if fitting and self.chance.randint(0, 3):
            chosen = self.chance.choice(fitting)
            return self.builder.cell(chosen.index, new=new and self.chance.random() < 0.5)
        value = self.chance.randint(0, 1) if boolean else self.chance.randint(-5, 300)
        return self.builder.const(value, boolean=boolean)

    def number(self, depth: int, *, new: bool = False) -> GroundNode:
        b, pick = self.builder, self.chance.randint(0, 5) if depth else 0
        match pick:
            case 1:
                return b.add(self.number(depth - 1, new=new), self.number(depth - 1, new=new))
            case 2:
                return b.sub(self.number(depth - 1, new=new), self.number(depth - 1, new=new))
            case 3:
                condition = self.condition(depth - 1, new=new)
                then, otherwise = self.number(depth - 1, new=new), self.number(depth - 1, new=new)
                return b.if_(condition, then, otherwise)
            case 4:
                values = (self.chance.randint(-9, 999), self.chance.randint(-9, 999))
                return b.table(values, self.condition(depth - 1, new=new), boolean=False)
            case 5:  # a flag is a number, too
                return b.add(self.condition(depth - 1, new=new), self.number(depth - 1, new=new))
            case _:
                return self.leaf(boolean=False, new=new)

    def condition(self, depth: int, *, new: bool = False) -> GroundNode:
        b, pick = self.builder, self.chance.randint(0, 7) if depth else 0
        match pick:
            case 1:
                return b.not_(self.condition(depth - 1, new=new))
            case 2:
                return b.and_([self.condition(depth - 1, new=new) for _ in range(3)])
            case 3:
                return b.or_([self.condition(depth - 1, new=new) for _ in range(3)])
            case 4:
                return b.eq(self.number(depth - 1, new=new), self.number(depth - 1, new=new))
            case 5:
                return b.lt(self.number(depth - 1, new=new), self.number(depth - 1, new=new))
            case 6:
                return b.le(self.number(depth - 1, new=new), self.number(depth - 1, new=new))
            case 7:
                index = [c for c in self.cells if c.low >= 0 and c.size <= 5]
                if not index:
                    return self.leaf(boolean=True, new=new)
                cell = self.chance.choice(index)
                values = tuple(self.chance.randint(0, 1) for _ in range(cell.high + 1))
                return b.table(values, b.cell(cell.index), boolean=True)
            case _:
                return self.leaf(boolean=True, new=new)

    def step(self, index: int) -> GroundStep:
        b = self.builder
        needs = [self.condition(2) for _ in range(self.chance.randint(0, 3))]
        updates: dict[int, GroundNode] = {}
        overflows: list[GroundNode] = []
        for cell in self.some_cells():
            kept = self.cells[cell]
            node = self.condition(2) if isinstance(kept.sort, BoolSort) else self.number(2)
            updates[cell] = node
            if node.low < kept.low or node.high > kept.high:
                above, below = b.lt(b.const(kept.high), node), b.lt(node, b.const(kept.low))
                overflows.append(b.or_((above, below)))
        named = tuple(GroundRequirement(f"need {i}", n) for i, n in enumerate(needs))
        action = Action(f"act{self.chance.randint(0, 1)}", (), (), ())
        return GroundStep(index, action, (), named, b.and_(needs), updates, b.or_(overflows))


@engines
@settings(max_examples=150)
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
    told = zip(expansion.overflow_sources.tolist(), expansion.overflow_steps.tolist(), strict=True)
    assert Counter[object](told) == overflows
    counts = expansion.false_counts.tolist()
    assert dict(zip(requirement_keys(model), counts, strict=True)) == dict(false)


@engines
@settings(max_examples=150)
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
