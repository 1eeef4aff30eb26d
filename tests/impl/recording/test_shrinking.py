"""A scenario that fails is made small: what is not needed is left out, numbers are made less, and runs are counted."""

from __future__ import annotations

from collections.abc import Iterator

from stagewright.impl.recording.failure import Failure
from stagewright.impl.recording.shrinking import Shape, shrink
from stagewright.spec.errors import InputError

FAILS = Failure("rows", "3 and 7 are there")
Numbers = tuple[int, ...]


def failures(numbers: Numbers) -> list[Failure]:
    """Fails with a 3 and a number from 7 on; what has no 3 and a 9 cannot be run."""
    if 3 not in numbers and 9 in numbers:
        raise InputError("9 needs a 3", help="add it")
    return [FAILS] if 3 in numbers and any(n >= 7 for n in numbers) else []


def smaller(numbers: Numbers) -> Iterator[Numbers]:
    """One of them is less by one."""
    for i, number in enumerate(numbers):
        yield (*numbers[:i], number - 1, *numbers[i + 1 :])


SHAPE = Shape[Numbers, int](failures, lambda numbers: numbers, lambda _, kept: tuple(kept), smaller)


def test_what_is_left_is_all_needed_and_as_small_as_it_can_be() -> None:
    found = shrink(SHAPE, (1, 9, 4, 3, 8, 2), FAILS)
    assert sorted(found.scenario) == [3, 7]
    assert found.failure == FAILS


def test_it_ends_when_its_runs_are_spent_with_the_best_so_far() -> None:
    found = shrink(SHAPE, (1, 9, 4, 3, 8, 2), FAILS, most=3)
    assert found.runs == 3
    assert failures(found.scenario) == [FAILS]


def test_a_failure_of_another_sort_does_not_count() -> None:
    found = shrink(SHAPE, (1, 9, 4, 3, 8, 2), Failure("trace", "something else"))
    assert found.scenario == (1, 9, 4, 3, 8, 2)
