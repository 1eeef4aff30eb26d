"""Initial states that nobody lists are the same as those that somebody would list."""

from itertools import product

import pytest

from stagewright.spec.ground import Builder, GroundNode
from stagewright.spec.ground_eval import evaluate
from stagewright.spec.initial import Independent, sifted

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
def test_sifting_keeps_what_satisfies_the_condition_in_the_order_of_the_product(
    condition: GroundNode,
) -> None:
    kept = [state for state in LISTED if evaluate(condition, state)]
    assert list(sifted(CHOICES, condition, 100) or ()) == kept
