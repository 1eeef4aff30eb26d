"""Initial states that nobody lists are the same as those that somebody would list."""

from itertools import product

import pytest
from hypothesis import given, settings, strategies as st
from tests.thorough import examples

from stagewright.spec.errors import ScopeError
from stagewright.spec.grounding.ground import Builder, GroundNode, GroundOp
from stagewright.spec.grounding.ground_eval import evaluate
from stagewright.spec.grounding.initial import Independent, Satisfying

CHOICES = (range(2), range(3, 6), range(7, 8), range(-1, 1))
LISTED = list(product(*CHOICES))


def test_independent_starts_are_the_product_in_its_order() -> None:
    starts = Independent(CHOICES)
    assert list(starts) == LISTED
    assert len(starts) == len(LISTED) == 12
    assert [starts[i] for i in range(-12, 12)] == LISTED * 2
    assert list(starts[3:9:2]) == LISTED[3:9:2]


def test_what_is_listed_is_contained() -> None:
    assert all(state in Independent(CHOICES) for state in LISTED)


@pytest.mark.parametrize("other", [(0, 3, 7), (2, 3, 7, 0), (0, 3, 8, 0), (0, 3, 7, 0, 0), "none"])
def test_what_is_not_listed_is_not_contained(other: object) -> None:
    assert other not in Independent(CHOICES)


@pytest.mark.parametrize("index", [12, -13])
def test_beyond_the_ends_there_is_none(index: int) -> None:
    with pytest.raises(IndexError):
        Independent(CHOICES)[index]


BUILDER = Builder((c.start, c.stop - 1, False) for c in CHOICES)
A, B, C, D = (BUILDER.cell(i) for i in range(4))


@pytest.mark.parametrize(
    "condition",
    [
        BUILDER.true,
        BUILDER.false,
        BUILDER.eq(A, BUILDER.const(1)),
        BUILDER.lt(D, A),
        BUILDER.and_([BUILDER.le(BUILDER.const(4), B), BUILDER.lt(D, A), BUILDER.eq(A, A)]),
        BUILDER.and_([BUILDER.eq(D, BUILDER.const(0)), BUILDER.lt(B, C)]),
        BUILDER.or_([BUILDER.eq(A, BUILDER.const(0)), BUILDER.eq(B, BUILDER.const(5))]),
    ],
    ids=repr,
)
def test_what_satisfies_a_condition_is_found_in_the_order_of_the_product(
    condition: GroundNode,
) -> None:
    kept = [state for state in LISTED if evaluate(condition, state)]
    found = Satisfying("Machine", "Node=2", CHOICES, condition)
    assert [state in found for state in LISTED] == [state in kept for state in LISTED]
    if kept:
        assert list(found) == kept
        assert found[-1] == kept[-1]
        assert found[1:] == kept[1:]
    else:
        with pytest.raises(ScopeError, match=r"Machine: no state satisfies .*Node=2"):
            found.find()


@settings(max_examples=examples(100))
@given(st.data())
def test_the_search_agrees_with_looking_at_every_candidate(data: st.DataObject) -> None:
    ranges = data.draw(
        st.lists(st.tuples(st.integers(-3, 2), st.integers(1, 4)), min_size=1, max_size=5)
    )
    choices = tuple(range(low, low + size) for low, size in ranges)
    builder = Builder((c.start, c.stop - 1, c == range(2)) for c in choices)
    condition = builder.and_(
        data.draw(st.lists(conditions(builder, len(choices)), min_size=1, max_size=4))
    )
    kept = [state for state in product(*choices) if evaluate(condition, state)]
    found = Satisfying("Machine", "", choices, condition)
    if kept:
        assert list(found) == kept
    else:
        with pytest.raises(ScopeError):
            found.find()


NUMERIC = (
    GroundOp.ADD,
    GroundOp.SUB,
    GroundOp.MUL,
    GroundOp.DIV,
    GroundOp.MOD,
    GroundOp.MIN,
    GroundOp.MAX,
)


def conditions(builder: Builder, cells: int) -> st.SearchStrategy[GroundNode]:
    """Random conditions over the cells of a builder, in every operation of the ground form."""

    def numbers() -> st.SearchStrategy[GroundNode]:
        leaves = st.one_of(
            st.integers(0, cells - 1).map(builder.cell), st.integers(-3, 4).map(builder.const)
        )
        return st.recursive(
            leaves,
            lambda inner: st.one_of(
                *(
                    st.tuples(inner, inner).map(lambda t, op=op: builder.operation(op, t))  # type: ignore[misc]
                    for op in NUMERIC
                ),
                st.tuples(comparisons(inner), inner, inner).map(lambda t: builder.if_(*t)),
                inner.filter(lambda n: n.high - n.low < 8).flatmap(tables),
            ),
            max_leaves=5,
        )

    def tables(index: GroundNode) -> st.SearchStrategy[GroundNode]:
        shifted = builder.sub(index, builder.const(index.low))
        values = st.lists(st.integers(-3, 3), min_size=8, max_size=8).map(tuple)
        return values.map(lambda v: builder.table(v, shifted, boolean=False))

    def comparisons(number: st.SearchStrategy[GroundNode]) -> st.SearchStrategy[GroundNode]:
        pair = st.tuples(number, number)
        return st.one_of(
            pair.map(lambda t: builder.eq(*t)),
            pair.map(lambda t: builder.lt(*t)),
            pair.map(lambda t: builder.le(*t)),
        )

    return st.recursive(
        comparisons(numbers()),
        lambda inner: st.one_of(
            inner.map(builder.not_),
            st.lists(inner, min_size=2, max_size=3).map(builder.and_),
            st.lists(inner, min_size=2, max_size=3).map(builder.or_),
        ),
        max_leaves=4,
    )


def test_an_equation_computes_a_cell_instead_of_choosing_it() -> None:
    wide = (range(1000), range(1000), range(2000))
    builder = Builder((c.start, c.stop - 1, False) for c in wide)
    a, b, c = (builder.cell(i) for i in range(3))
    condition = builder.and_([builder.eq(b, builder.const(7)), builder.eq(c, builder.add(a, b))])
    looked_at: list[int] = []
    found = Satisfying("Machine", "", wide, condition)

    def going(candidates: int, _: int) -> bool:
        looked_at.append(candidates)
        return True

    assert found.find(going)
    assert list(found) == [(i, 7, i + 7) for i in range(1000)]
    assert max(looked_at) == 2000


def test_a_condition_prunes_before_all_of_its_cells_are_chosen() -> None:
    builder = Builder((0, 1, True) for _ in range(60))
    total = builder.const(0)
    for i in range(60):
        total = builder.add(total, builder.if_(builder.cell(i), builder.const(1), builder.const(0)))
    one = Satisfying("Machine", "", (range(2),) * 60, builder.eq(total, builder.const(1)))
    assert [state.index(1) for state in one] == list(reversed(range(60)))


def test_a_search_that_is_stopped_keeps_what_it_has_found() -> None:
    wide = (range(1000), range(1000))
    builder = Builder((0, 999, False) for _ in wide)
    some = Satisfying("Machine", "", wide, builder.lt(builder.cell(0), builder.cell(1)))
    assert not some.find(lambda _, found: found < 1000)
    assert 1000 <= len(some) < 499_500


def test_too_many_initial_states_are_refused() -> None:
    wide = (range(100), range(100))
    builder = Builder((0, 99, False) for _ in wide)
    condition = builder.not_(builder.eq(builder.cell(0), builder.cell(1)))
    with pytest.raises(ScopeError, match="Machine: 10,000 candidates for the initial state"):
        Satisfying("Machine", "", wide, condition, most=5_000).find()


def test_conditions_whose_cells_are_all_decided_by_others_are_asked() -> None:
    builder = Builder((0, 1, True) for _ in range(3))
    one, other, _ = (builder.cell(i) for i in range(3))
    decided = [one, other, builder.or_([builder.not_(one), builder.not_(other)])]
    wide = (range(2),) * 3
    assert list(Satisfying("Machine", "", wide, builder.and_(decided[:2]))) == [
        (1, 1, 0),
        (1, 1, 1),
    ]
    with pytest.raises(ScopeError, match="no state satisfies"):
        list(Satisfying("Machine", "", wide, builder.and_(decided)))
    more = builder.and_([*decided[:2], builder.or_([builder.not_(one), other])])
    assert len(list(Satisfying("Machine", "", wide, more))) == 2
