"""Codes of values: a scalar as an integer, a state as the cells of a ground model, and back."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from stagewright.spec.grounding.domains import values_of
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import (
    EntitySort,
    IntSort,
    MapSort,
    OptionalSort,
    RecordSort,
    ScalarSort,
    SeqSort,
    SetSort,
    Sort,
)
from stagewright.spec.values import FrozenMap, State, Value

if TYPE_CHECKING:
    from stagewright.spec.grounding.ground import Cell, GroundModel


LENGTH = "length"  # among the places of a sequence: how many of the others count


def held_as(sort: ScalarSort) -> ScalarSort:
    """The sort of the cell that holds an element of a sequence, or a field of one.

    What is beyond the end has the code of the first value. Of an entity that is none, so that no member
    is told apart by standing for nothing.
    """
    return OptionalSort(sort) if isinstance(sort, EntitySort) else sort


def encode_scalar(value: Any, sort: ScalarSort, scope: Scope) -> int:
    """The integer that codes a scalar value.

    Raises:
        ValueError: the value is not one of the sort at this scope.
    """
    if isinstance(sort, IntSort):
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or not sort.low <= value <= sort.high
        ):
            raise ValueError(f"{value!r} is not in {sort}")
        return value
    code = _codes(sort, scope).get((type(value), value)) if isinstance(value, Hashable) else None
    if code is None:
        raise ValueError(f"{value!r} is not a value of {sort}")
    return code


@lru_cache(maxsize=256)
def _codes(sort: ScalarSort, scope: Scope) -> dict[tuple[type, Any], int]:
    """The code of each value, with its type: true and 1 are equal."""
    return {(type(value), value): code for code, value in enumerate(values_of(sort, scope))}


def decode(model: GroundModel, state: tuple[int, ...]) -> State:
    """The definition's own values of a ground state."""
    decoded: dict[tuple[Value, ...], Value] = {}
    for cell, code in zip(model.cells, state, strict=True):
        number = isinstance(cell.sort, IntSort)  # which may be larger than declared
        value = code if number else values_of(cell.sort, model.scope)[code]
        decoded[cell.variable, *cell.path] = value
    return FrozenMap(
        {
            v.name: _assemble(v.sort, (v.name,), decoded, model.scope)
            for v in model.definition.variables
        }
    )


def _assemble(
    sort: Sort, path: tuple[Value, ...], decoded: Mapping[tuple[Value, ...], Value], scope: Scope
) -> Value:
    match sort:
        case MapSort(key, value):
            keys = values_of(key, scope)
            return FrozenMap({k: _assemble(value, (*path, k), decoded, scope) for k in keys})
        case SetSort(element):
            return frozenset(k for k in values_of(element, scope) if decoded[*path, k])
        case RecordSort(_, fields):
            parts: dict[Value, Value] = {
                n: _assemble(s, (*path, n), decoded, scope) for n, s in fields
            }
            return FrozenMap(parts)
        case SeqSort(element):
            length = decoded[*path, LENGTH]
            assert isinstance(length, int)
            return tuple(_assemble(element, (*path, i), decoded, scope) for i in range(length))
        case _:
            return decoded[path]


def encode(model: GroundModel, state: State) -> tuple[int, ...]:
    """The ground form of a state in the definition's own values."""
    return tuple(_cell_code(model, cell, state) for cell in model.cells)


def _cell_code(model: GroundModel, cell: Cell, state: State) -> int:
    value: Any = state[cell.variable]
    for key in cell.path:
        match value:
            case frozenset():
                value = key in value
            case tuple() if key == LENGTH:
                value = len(cast("tuple[Value, ...]", value))
            case tuple() if isinstance(key, int) and key >= len(cast("tuple[Value, ...]", value)):
                return cell.low  # what is not there
            case _:
                value = value[key]
    sort = IntSort(cell.low, cell.high) if isinstance(cell.sort, IntSort) else cell.sort
    return encode_scalar(value, sort, model.scope)
