"""Whether this run looks for more than the suite's ten minutes allow: `./run test --thorough`."""

import os
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import pytest

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

VARIABLE = "STAGEWRIGHT_TESTS"  # set for all processes of a run, before they import tests
T = TypeVar("T")
THOROUGH = (
    "--thorough" in sys.argv  # pytest imports files of tests before it reads its options
    or os.environ.get(VARIABLE) == "thorough"
    or os.environ.get("HYPOTHESIS_PROFILE") == "thorough"
)


def examples(most: int) -> int:
    """How many examples of a law are tried: `most` in a thorough run, else a third of them."""
    return most if THOROUGH else most // 3


def some_of(
    cases: Iterable[T], *, each: int = 3, quick: Callable[[Any], object] | None = None
) -> list[T]:
    """Which cases are tried: all in a thorough run, else those that are `quick`, by default each third."""
    known = list(cases)
    if THOROUGH:
        return known
    return known[::each] if quick is None else [case for case in known if quick(case)]


def by_turns(
    cases: Iterable[T],
    *,
    ids: Callable[[T], str] | None = None,
    mark: Callable[[T], pytest.MarkDecorator] | None = None,
) -> list["ParameterSet"]:
    """Cases that are alike and take long together: every other one is left to `./run test --long`."""
    found: list[ParameterSet] = []
    for number, case in enumerate(cases):
        marks = [mark(case)] if mark else []
        marks += [pytest.mark.long] if number % 2 else []
        # A named tuple is one value.
        values: tuple[object, ...] = (*case,) if _is_plain_tuple(case) else (case,)
        found.append(pytest.param(*values, id=ids(case) if ids else None, marks=marks))
    return found


def _is_plain_tuple(case: object) -> TypeGuard[tuple[object, ...]]:
    return type(case) is tuple
