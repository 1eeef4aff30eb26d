"""Where a state's values live: one cell for every scalar, set member, map value and record field."""

from __future__ import annotations

from typing import Any

from stagewright.spec.definition import AnyValue, Definition
from stagewright.spec.domains import values_of
from stagewright.spec.encoding import encode_scalar
from stagewright.spec.ground import Cell
from stagewright.spec.interpreter import path_name
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import (
    BoolSort,
    IntSort,
    MapSort,
    RecordSort,
    ScalarSort,
    SetSort,
    Sort,
)
from stagewright.spec.values import Value

# Where a value lives: a scalar's cell, or the places of a set, map or record by key.
Place = int | dict[Value, "Place"]


class Layout:
    """The cells of a definition's variables at a scope.

    `starts` holds the initial value of each cell, None for any; `places` says where each variable lives.
    """

    def __init__(self, definition: Definition, scope: Scope) -> None:
        self.scope = scope
        self.cells: list[Cell] = []
        self.starts: list[int | None] = []
        self.places: dict[str, Place] = {}
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
            case _:
                return self._cell(variable, sort, initial, path)

    def _cell(self, variable: str, sort: ScalarSort, initial: Any, path: tuple[Value, ...]) -> int:
        index = len(self.cells)
        if isinstance(sort, IntSort):
            low, size = sort.low, sort.high - sort.low + 1
        else:
            low, size = 0, len(values_of(sort, self.scope))
        name = path_name((variable, *path))
        self.cells.append(Cell(index, name, variable, path, sort, low, size))
        start = None if initial is AnyValue.ANY else encode_scalar(initial, sort, self.scope)
        self.starts.append(start)
        return index
