"""Initial states: those that satisfy a condition, or every choice of one value a cell where there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, ClassVar, TypeAlias, cast, overload

from stagewright.spec.errors import InitialStatesError
from stagewright.spec.grounding.ground import GroundNode
from stagewright.spec.grounding.ground_eval import evaluate

if TYPE_CHECKING:
    from stagewright.spec.grounding.initial_search import Column

Cells: TypeAlias = tuple[object, ...]
Going: TypeAlias = Callable[[int, int], bool]
"""Called with how many candidates were looked at and how many states found; False to stop."""

MAX_INITIAL_STATES = 1 << 24
_ROWS = 1 << 12  # states unpacked at once


@dataclass(frozen=True)
class Independent(Sequence[tuple[int, ...]]):
    """Every choice of one value a cell, in the order of `itertools.product`: the last cell first.

    `choices` has, by cell, the values that it may start with.
    """

    choices: tuple[range, ...]
    listed: ClassVar[bool] = False

    def __len__(self) -> int:
        return math.prod(map(len, self.choices))

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return product(*self.choices)

    def __contains__(self, state: object) -> bool:
        if not isinstance(state, tuple) or len(cells := cast("Cells", state)) != len(self.choices):
            return False
        return all(value in values for value, values in zip(cells, self.choices, strict=True))

    @overload
    def __getitem__(self, index: int) -> tuple[int, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[int, ...]]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, ...] | Sequence[tuple[int, ...]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        rest = range(len(self))[index]
        state: list[int] = []
        for values in reversed(self.choices):
            rest, digit = divmod(rest, len(values))
            state.append(values[digit])
        return tuple(reversed(state))


class Satisfying(Sequence[tuple[int, ...]]):
    """The choices of one value a cell that satisfy a condition, in the order of `itertools.product`.

    They are searched for when they are first needed; whether a state is one of them needs no search.
    """

    def __init__(
        self,
        machine: str,
        scope: str,
        choices: tuple[range, ...],
        condition: GroundNode,
        most: int = MAX_INITIAL_STATES,
    ) -> None:
        """`machine`, `scope`: for the text of errors; `most`: of so many states, a search gives up."""
        self.choices = choices
        self.condition = condition
        self._machine, self._scope, self._most = machine, scope, most
        self._columns: tuple[Column, ...] | None = None
        self._number = 0

    def find(self, going: Going | None = None) -> bool:
        """Search for all of them, if that is not done; False if `going` stopped it, with those found kept.

        Raises:
            ScopeError: there is none, or there are too many to list.
        """
        from stagewright.spec.grounding.initial_search import InitialSearch, TooManyError

        if self._columns is not None:
            return True
        search = InitialSearch(self.choices, self.condition, self._most)
        try:
            complete = search.run(going)
        except TooManyError:
            raise too_many_starts(self._machine, math.prod(map(len, self.choices))) from None
        if complete and not search.found:
            raise no_initial_state(self._machine, self._scope)
        self._columns, self._number = search.columns(), search.found
        return complete

    @property
    def listed(self) -> bool:
        """Whether they have been found already."""
        return self._columns is not None

    @property
    def columns(self) -> tuple[Column, ...]:
        """By cell, its value in each of the states; one value alone if it is the same in all."""
        self.find()
        assert self._columns is not None
        return self._columns

    def __len__(self) -> int:
        self.find()
        return self._number

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        for first in range(0, len(self), _ROWS):
            yield from self._rows(first, min(first + _ROWS, len(self)))

    def __contains__(self, state: object) -> bool:
        if state not in Independent(self.choices):
            return False
        return bool(evaluate(self.condition, cast("tuple[int, ...]", state)))

    @overload
    def __getitem__(self, index: int) -> tuple[int, ...]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[int, ...]]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, ...] | Sequence[tuple[int, ...]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        row = range(len(self))[index]
        return next(self._rows(row, row + 1))

    def _rows(self, first: int, after: int) -> Iterator[tuple[int, ...]]:
        parts = [
            [column] * (after - first) if isinstance(column, int) else column[first:after].tolist()
            for column in self.columns
        ]
        return zip(*parts, strict=True)


def no_initial_state(machine: str, scope: str) -> InitialStatesError:
    """The error for initial conditions that cannot be satisfied at a scope."""
    return InitialStatesError(
        f"{machine}: no state satisfies its initial conditions at this scope ({scope})",
        help="choose a larger scope, or weaken the @initially conditions",
    )


def too_many_starts(machine: str, candidates: int) -> InitialStatesError:
    """The error for a definition that leaves too many initial states to list, or to look through."""
    return InitialStatesError(
        f"{machine}: {candidates:,} candidates for the initial state at this scope",
        help="give more variables an `init`, or choose a smaller scope",
    )
