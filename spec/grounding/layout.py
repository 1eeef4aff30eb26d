"""Where a state's values live: one cell for every scalar, set member, map value and record field."""

from __future__ import annotations

from typing import Any

from stagewright.spec.definition import AnyValue, Definition
from stagewright.spec.derived.open_ended import LARGEST, open_ended
from stagewright.spec.grounding.domains import values_of
from stagewright.spec.grounding.encoding import LENGTH, encode_scalar, held_as
from stagewright.spec.grounding.ground import Cell
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import (
    BasicSort,
    BoolSort,
    IntSort,
    MapSort,
    RecordSort,
    ScalarSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.values import FrozenMap, Value, path_name

# Where a value lives: a scalar's cell, or the places of a set, map or record by key.
Place = int | dict[Value, "Place"]


class Layout:
    """The cells of a definition's variables at a scope.

    `starts` holds the initial values of each cell; `places` says where each variable lives. Without bounds (not
    `bounded`) a number that a check alone bounds may become larger than declared; none starts beyond that.
    """

    def __init__(self, definition: Definition, scope: Scope, *, bounded: bool = True) -> None:
        self.scope = scope
        self.cells: list[Cell] = []
        self.starts: list[range] = []
        self._open = frozenset[str]() if bounded else open_ended(definition)
        self.places: dict[str, Place] = {}
        self.has_any_sequence = False  # some sequence may start as any
        for v in definition.variables:
            self.places[v.name] = self._allocate(v.name, v.sort, v.initial, ())

    def _allocate(self, variable: str, sort: Sort, initial: Any, path: tuple[Value, ...]) -> Place:
        anything = initial is AnyValue.ANY
        match sort:
            case MapSort(key, value):
                return {
                    k: self._allocate(variable, value, initial, (*path, k))
                    for k in values_of(key, self.scope)
                }
            case SetSort(element):
                return {
                    k: self._allocate(
                        variable, BoolSort(), initial if anything else k in initial, (*path, k)
                    )
                    for k in values_of(element, self.scope)
                }
            case RecordSort(_, fields):
                return {
                    name: self._allocate(
                        variable, s, initial if anything else initial[name], (*path, name)
                    )
                    for name, s in fields
                }
            case SeqSort():
                return self._sequence(variable, sort, initial, path)
            case _:
                return self._cell(variable, sort, initial, path)

    def _sequence(
        self, variable: str, sort: SeqSort, initial: Any, path: tuple[Value, ...]
    ) -> Place:
        """The length, then an element each up to the capacity; of those beyond the end the codes are fixed."""
        self.has_any_sequence |= initial is AnyValue.ANY
        length = IntSort(0, sort.capacity)
        start = initial if initial is AnyValue.ANY else len(initial)
        where = self._cell(variable, length, start, (*path, LENGTH), has_room=False)
        place: dict[Value, Place] = {LENGTH: where}
        for i in range(sort.capacity):
            one = initial if initial is AnyValue.ANY else next(iter(initial[i : i + 1]), ())
            place[i] = self._element(variable, sort.element, one, (*path, i))
        return place

    def _element(
        self, variable: str, sort: BasicSort | RecordSort, initial: Any, path: tuple[Value, ...]
    ) -> Place:
        if isinstance(sort, RecordSort):
            return {
                name: self._held(
                    variable,
                    field,
                    initial[name] if isinstance(initial, FrozenMap) else initial,
                    (*path, name),
                )
                for name, field in sort.fields
            }
        return self._held(variable, sort, initial, path)

    def _held(self, variable: str, sort: Sort, initial: Any, path: tuple[Value, ...]) -> int:
        assert not isinstance(sort, MapSort | SetSort | RecordSort | SeqSort)
        cell_sort = held_as(sort)
        if initial == ():  # beyond the end
            initial = values_of(cell_sort, self.scope)[0]
        return self._cell(variable, cell_sort, initial, path)

    def _cell(
        self,
        variable: str,
        sort: ScalarSort,
        initial: Any,
        path: tuple[Value, ...],
        *,
        has_room: bool = True,
    ) -> int:
        """The next cell; `has_room`: what is longer, or larger, than declared has a place, too."""
        index = len(self.cells)
        if isinstance(sort, IntSort):
            declared = range(sort.low, sort.high + 1)
        else:
            declared = range(len(values_of(sort, self.scope)))
        size = len(declared)
        if isinstance(sort, IntSort) and variable in self._open and has_room:
            size = max(sort.high, LARGEST) - sort.low + 1
        name = path_name((variable, *path))
        self.cells.append(Cell(index, name, variable, path, sort, declared.start, size))
        if initial is not AnyValue.ANY:
            code = encode_scalar(initial, sort, self.scope)
            declared = range(code, code + 1)
        self.starts.append(declared)
        return index
