"""The refinements that a check decides: those of its machine, and those in which others are seen as it."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from stagewright.commands.checking.declared import declared_in

if TYPE_CHECKING:
    from types import ModuleType

    from stagewright.spec.definition import Definition
    from stagewright.spec.machine import Machine
    from stagewright.spec.refinement import Mapped, Refinement


class Dependents(Enum):
    """Which refinements count in which another machine is seen as the one that is checked."""

    NONE = auto()
    OWN_FILE = auto()  # those that the machine's own file declares
    ALL = auto()


@dataclass(frozen=True)
class Asked:
    """What is to be decided under one profile; `uncovered` says where nothing is declared for it."""

    mapped: tuple[Mapped, ...]
    uncovered: tuple[str, ...]
    left: tuple[str, ...] = ()  # refinements of other machines that are not to be decided


def refinements_of(
    name: str, definition: Definition, dependents: Dependents = Dependents.ALL
) -> Asked:
    """The refinements of the machine that `name` names, under the definition's profile.

    Raises:
        DefinitionError: a mapping cannot mean what it says.
    """
    from stagewright.machines import SHIPPED
    from stagewright.spec.loading import find_in_module

    return refinements_in_module(*find_in_module(name, SHIPPED), definition, dependents)


def refinements_in_module(
    machine: type[Machine], module: ModuleType, definition: Definition, dependents: Dependents
) -> Asked:
    """The same for a machine that is at hand, with the module that was named for it."""
    own = list(_among([module], machine))
    shipped, named = _of_shipped(machine, dependents)
    declared = list(dict.fromkeys([*own, *shipped]))
    profile = definition.profile
    mapped: list[Mapped] = []
    uncovered: list[str] = []
    seen: list[Refinement] = []
    left: list[str] = []
    for one in declared:
        if one.concrete is machine and profile in one.covered:
            mapped.append(one.mapped(profile))
        elif one.concrete is machine:
            uncovered.append(f"`{one.name}` says nothing of {machine.__name__} under {profile}")
        elif dependents is Dependents.ALL or (dependents is Dependents.OWN_FILE and one in own):
            seen.append(one)
        else:
            left.append(_said(one.name, one.concrete.__name__))
    decided = {_said(one.name, one.concrete.__name__) for one in seen}
    left = [said for said in dict.fromkeys([*named, *left]) if said not in decided]
    if seen:
        found = [one.mapped(p) for one in seen for p, as_ in one.covered.items() if as_ == profile]
        if not found:
            others = ", ".join(dict.fromkeys(one.concrete.__name__ for one in seen))
            under = f" under {profile}" if profile else ""
            uncovered.append(f"no profile of {others} is seen as {machine.__name__}{under}")
        mapped += found
    return Asked(tuple(mapped), tuple(uncovered), tuple(left))


def _of_shipped(
    machine: type[Machine], dependents: Dependents
) -> tuple[list[Refinement], list[str]]:
    """What is declared of the shipped machines: imported where it is asked for, else by its names."""
    from stagewright.machines import REFINEMENTS

    found: list[Refinement] = []
    left: list[str] = []
    if not machine.__module__.startswith("stagewright."):
        return found, left
    for place in REFINEMENTS:
        if dependents is not Dependents.ALL:
            declared = list(declared_in(place))
            left += [_said(d.name, d.concrete) for d in declared if d.seen == machine.__name__]
            if all(d.concrete != machine.__name__ for d in declared):
                continue  # to import it takes longer than most checks
        found += _among([importlib.import_module(place)], machine)
    return found, left


def _said(name: str, concrete: str) -> str:
    return f"{name} of {concrete}"


def _among(places: Iterable[ModuleType], machine: type[Machine]) -> Iterator[Refinement]:
    from stagewright.spec.refinement import refinements_in

    for place in places:
        yield from (one for one in refinements_in(place) if machine in one.machines)
