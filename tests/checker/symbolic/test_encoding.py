"""Z3's terms of ground expressions have the values that the expressions have."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings, strategies as st
from tests.thorough import examples

from stagewright.checker.symbolic.encoding import Encoding, Frame
from stagewright.checker.symbolic.z3_terms import Answer, Clock, Shape, Solver, Terms
from stagewright.spec.grounding.ground import Builder, Cell, GroundModel, GroundNode, GroundOp
from stagewright.spec.grounding.ground_eval import evaluate
from stagewright.spec.sorts import BoolSort, IntSort

CELLS = (
    Cell(0, "flag", "flag", (), BoolSort(), 0, 2),
    Cell(1, "other", "other", (), BoolSort(), 0, 2),
    Cell(2, "signed", "signed", (), IntSort(-3, 4), -3, 8),
    Cell(3, "small", "small", (), IntSort(0, 2), 0, 3),
    Cell(4, "single", "single", (), IntSort(7, 7), 7, 1),
)
MODEL = cast("GroundModel", SimpleNamespace(cells=CELLS))  # frames read nothing else

TWO = (
    GroundOp.EQ,
    GroundOp.LT,
    GroundOp.LE,
    GroundOp.ADD,
    GroundOp.SUB,
    GroundOp.MUL,
    GroundOp.DIV,
    GroundOp.MOD,
    GroundOp.MIN,
    GroundOp.MAX,
)


@dataclass
class Grown:
    """A random expression: the last of some nodes, each made of earlier ones."""

    builder: Builder
    node: GroundNode


@st.composite
def expressions(draw: st.DrawFn) -> Grown:
    build = Builder([(c.low, c.high, isinstance(c.sort, BoolSort)) for c in CELLS])
    nodes = [build.cell(c.index, new=draw(st.booleans())) for c in CELLS]
    nodes += [build.const(draw(st.integers(-5, 9))), build.true]
    for _ in range(draw(st.integers(1, 12))):
        nodes.append(_grow(draw, build, nodes))
    return Grown(build, nodes[-1])


def _grow(draw: st.DrawFn, build: Builder, nodes: list[GroundNode]) -> GroundNode:
    booleans = [n for n in nodes if n.boolean]
    some = st.sampled_from
    match draw(st.integers(0, 14)):
        case 0:
            return build.not_(draw(some(booleans)))
        case 1:
            return build.and_(draw(st.lists(some(booleans), max_size=3)))
        case 2:
            return build.or_(draw(st.lists(some(booleans), max_size=3)))
        case n if n < 13:
            op = TWO[n - 3]
            return build.operation(op, (draw(some(nodes)), draw(some(nodes))))
        case 13:
            return build.if_(draw(some(booleans)), draw(some(nodes)), draw(some(nodes)))
        case _:
            index = draw(some([n for n in nodes if n.low >= 0 and n.high < 20]))
            size = index.high + 1
            if draw(st.booleans()):
                entries = draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
                return build.table(tuple(entries), index, boolean=True)
            entries = draw(st.lists(st.integers(-9, 9), min_size=size, max_size=size))
            return build.table(tuple(entries), index, boolean=False)


STATES = st.tuples(*(st.integers(c.low, c.high) for c in CELLS))
TERMS = Terms()


@settings(max_examples=examples(200))
@given(expressions(), STATES, STATES)
def test_a_term_has_the_value_of_its_expression_in_every_state(
    grown: Grown, old: Any, new: Any
) -> None:
    now, then = Frame(TERMS, MODEL, "now"), Frame(TERMS, MODEL, "next")
    encoding, build, node = Encoding(TERMS, now, then), grown.builder, grown.node
    value = evaluate(node, old, new)
    claim = encoding.same(node, build.const(value, boolean=node.boolean))
    fixed = [
        encoding.same(build.cell(i, new=frame is then), _constant(build, i, number))
        for frame, state in ((now, old), (then, new))
        for i, number in enumerate(state)
    ]
    solver = Solver(TERMS, Clock())
    solver.add(*fixed, TERMS.not_(claim))
    assert solver.check() is Answer.UNSAT
    solver = Solver(TERMS, Clock())  # the state itself is possible: the answer above is not vacuous
    solver.add(*fixed)
    assert solver.check() is Answer.SAT
    assert now.read(solver) == old


def _constant(build: Builder, cell: int, value: int) -> GroundNode:
    return build.const(value, boolean=isinstance(CELLS[cell].sort, BoolSort))


@pytest.mark.parametrize(
    ("low", "high", "shape"),
    [
        (0, 0, Shape(1, signed=False)),
        (0, 1, Shape(1, signed=False)),
        (0, 7, Shape(3, signed=False)),
        (5, 8, Shape(4, signed=False)),
        (-1, 0, Shape(1, signed=True)),
        (-4, 3, Shape(3, signed=True)),
        (-4, 4, Shape(4, signed=True)),
        (-5, 0, Shape(4, signed=True)),
    ],
)
def test_a_shape_is_just_wide_enough(low: int, high: int, shape: Shape) -> None:
    assert Shape.of(low, high) == shape
