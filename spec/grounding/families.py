"""Steps that differ in their arguments alone: one template stands for all of them.

A check looks at every step by itself. Whoever follows what has happened asks of few of them, and need not list
a million: `Families` has them in their order, and makes one when it is asked for.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, product
from typing import Any, Generic, Protocol, TypeVar, cast, overload

WIDE = 1_000  # choices of one action, from which on its numbers are not listed
TRIED_MAX = (
    10_000  # steps in all, up to which each may be tried, if they differ in members of entities
)


@dataclass(frozen=True)
class Input:
    """What a template leaves open: an argument, with what stands for its code in the expressions."""

    name: str
    low: int
    high: int
    cell: int  # beyond those of the state
    members: tuple[
        object, ...
    ] = ()  # of an entity, whose codes are `low` to `high`; none: a number

    def value(self, code: int) -> object:
        """The argument that has this code."""
        return self.members[code - self.low] if self.members else code


class Template(Protocol):
    """A step, or all steps that differ in its inputs."""

    @property
    def arguments(self) -> tuple[tuple[str, object], ...]: ...
    @property
    def inputs(self) -> tuple[Input, ...]: ...


T = TypeVar("T", bound=Template)


@dataclass(frozen=True)
class Families(Sequence[T], Generic[T]):
    """All steps of some templates, in their order; the last input changes first."""

    templates: tuple[T, ...]
    _first: list[int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        sizes = (_size(one.inputs) for one in self.templates)
        object.__setattr__(self, "_first", list(accumulate(sizes, initial=0)))

    def __len__(self) -> int:
        return self._first[-1]

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number, values = self.located(range(len(self))[index])
        template = self.templates[number]
        if not values:
            return template
        given = {i.name: i.value(v) for i, v in zip(template.inputs, values, strict=True)}
        arguments = tuple((name, given.get(name, value)) for name, value in template.arguments)
        return cast("T", replace(cast("Any", template), arguments=arguments, inputs=()))

    def __iter__(self) -> Iterator[T]:
        return (self[i] for i in range(len(self)))

    @cached_property
    def wide(self) -> tuple[int, ...]:
        """The templates that stand for very many steps, as they leave a number open, or too many members."""
        many = len(self) > TRIED_MAX
        return tuple(
            number
            for number, one in enumerate(self.templates)
            if any(many or not i.members for i in one.inputs)
        )

    def of(self, template: int) -> range:
        """The indices of the steps of a template."""
        return range(self._first[template], self._first[template + 1])

    def first(self, template: int) -> int:
        """The index of the first step of a template."""
        return self._first[template]

    def located(self, index: int) -> tuple[int, tuple[int, ...]]:
        """The template of a step, and its inputs."""
        number = bisect_right(self._first, index) - 1
        inputs, rest = self.templates[number].inputs, index - self._first[number]
        values: list[int] = []
        for one in reversed(inputs):
            rest, value = divmod(rest, one.high - one.low + 1)
            values.append(one.low + value)
        return number, tuple(reversed(values))

    def index(self, template: int, inputs: Sequence[int]) -> int:  # type: ignore[override]
        """The index of the step of a template with these inputs; they must lie within their bounds."""
        found = 0
        for one, value in zip(self.templates[template].inputs, inputs, strict=True):
            found = found * (one.high - one.low + 1) + value - one.low
        return self._first[template] + found

    def having(self, template: int, given: Mapping[str, int]) -> tuple[int, Iterator[int]]:
        """How many steps of a template have these inputs, and which ones."""
        ranges = [
            range(given[one.name], given[one.name] + 1)
            if one.name in given
            else range(one.low, one.high + 1)
            for one in self.templates[template].inputs
        ]
        return math.prod(map(len, ranges)), (self.index(template, c) for c in product(*ranges))


def _size(inputs: Sequence[Input]) -> int:
    return math.prod(one.high - one.low + 1 for one in inputs)
