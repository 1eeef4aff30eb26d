"""Initial states that nobody lists are the same as those that somebody would list."""

from itertools import product

import pytest

from stagewright.spec.initial import Independent

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
