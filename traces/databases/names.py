"""What traces call the variables and steps of machines, from the machines' own members.

A reader names `leaf(BackfillJob.job, INDEX)`, not `"job[index0]"`: a member that is not there is an error of the
type checker, and of the import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any

from stagewright.spec.declarations.variables import Var
from stagewright.spec.entities import Entity
from stagewright.spec.machine import Machine, Many, Part

Inside = Part[Any] | Many[Any, Any]


def leaf(
    variable: Var[Any, Any],
    key: Entity | None = None,
    *fields: Var[Any, Any],
    of: Inside | None = None,
) -> str:
    """A variable, or what it holds at a key, or a field of that: `main.group[partition0].content.cbit`."""
    at_key = "" if key is None else f"[{key.name}]"
    within = "".join(f".{field.name}" for field in fields)
    return f"{_prefix(of)}{variable.name}{at_key}{within}"


def step(action: Callable[..., object], of: Inside | None = None) -> str:
    """An action: `take_over`, or of a part of a system `main.clean`."""
    return f"{_prefix(of)}{action.__name__}"


def states(members: Iterable[Enum]) -> frozenset[object]:
    """The names of states, as events have them."""
    return frozenset(member.name for member in members)


def sizes(of: Mapping[type[Entity], int]) -> dict[str, int]:
    """How many of an entity there are, as recordings have it."""
    return {entity.__name__: number for entity, number in of.items()}


def called(machine: type[Machine]) -> str:
    """What events call their machine."""
    return machine.__name__


def _prefix(of: Inside | None) -> str:
    return "" if of is None else f"{of.name}."
