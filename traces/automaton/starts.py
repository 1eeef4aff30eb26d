"""The initial states of a machine, of which an entity's first event chooses some: all together may be too many to list."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product

from stagewright.spec.grounding.ground import GroundModel, GroundNode, GroundOp
from stagewright.spec.grounding.initial import Independent, Satisfying
from stagewright.spec.grounding.initial_search import InitialSearch, TooManyError
from stagewright.traces.automaton.step_code import State

# A node without its arguments' nodes: operation, arguments, value, table, lowest and highest value, is boolean.
_Plain = tuple[str, tuple[int, ...], int, tuple[int, ...], int, int, bool]


_MANY = 1 << 12  # choices


class TooManyStartsError(Exception):
    """There are more initial states than are to be looked at."""


@dataclass(frozen=True)
class Starts:
    """The choices of one value a cell that satisfy a condition, without the definition's own classes.

    `highest`: of a cell with several choices, what it may be observed to start with though it is larger than declared.
    """

    choices: tuple[range, ...]
    highest: tuple[int, ...]
    condition: tuple[_Plain, ...]  # the nodes, arguments before their users; of none, it is true

    @cached_property
    def many(self) -> bool:
        """Whether there are so many choices that what a trace observes is to be looked at first."""
        return math.prod(map(len, self.choices)) > _MANY

    def having(self, seen: Mapping[int, int], most: int) -> Iterable[State]:
        """Those in which some cells have the codes that were seen.

        Raises:
            TooManyStartsError: they are more than `most`.
        """
        choices = list(self.choices)
        for cell, code in seen.items():
            some = choices[cell]
            is_one = code in some or (len(some) > 1 and some.stop <= code <= self.highest[cell])
            choices[cell] = range(code, code + 1) if is_one else range(0)
        if not all(map(len, choices)):
            return ()
        if not self.condition:
            if math.prod(map(len, choices)) > most:
                raise TooManyStartsError
            return product(*choices)
        search = InitialSearch(choices, _node(self.condition), most)
        try:
            search.run()
        except TooManyError:
            raise TooManyStartsError from None
        if not search.found:
            return ()
        rows, columns = search.found, search.columns()
        lists = ([c] * rows if isinstance(c, int) else c.tolist() for c in columns)
        return zip(*lists, strict=True)


def starts_of(model: GroundModel) -> Starts:
    """The initial states of a ground model."""
    initial = model.initial
    assert isinstance(initial, Independent | Satisfying)
    condition = initial.condition if isinstance(initial, Satisfying) else None
    return Starts(
        initial.choices,
        tuple(cell.high for cell in model.cells),
        () if condition is None else _plain(condition),
    )


def _plain(condition: GroundNode) -> tuple[_Plain, ...]:
    needed: dict[int, GroundNode] = {}
    waiting = [condition]
    while waiting:
        node = waiting.pop()
        if node.id not in needed:
            needed[node.id] = node
            waiting += node.args
    order = sorted(needed)
    number = {node: place for place, node in enumerate(order)}
    return tuple(
        (n.op.name, tuple(number[a.id] for a in n.args), n.value, n.table, n.low, n.high, n.boolean)
        for n in map(needed.__getitem__, order)
    )


def _node(nodes: Iterable[_Plain]) -> GroundNode:
    made: list[GroundNode] = []
    for op, args, value, table, low, high, boolean in nodes:
        arguments = tuple(made[a] for a in args)
        made.append(
            GroundNode(len(made), GroundOp[op], arguments, value, table, low, high, boolean)
        )
    return made[-1]
