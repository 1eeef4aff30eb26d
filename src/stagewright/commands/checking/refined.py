"""The refinements that a check decides: those of its machine, and those in which others are seen as it."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

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
    declared = list(dict.fromkeys(_declared(machine, module)))
    own = set(_among([module], machine))
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
            left.append(f"{one.name} of {one.concrete.__name__}")
    if seen:
        found = [one.mapped(p) for one in seen for p, as_ in one.covered.items() if as_ == profile]
        if not found:
            others = ", ".join(dict.fromkeys(one.concrete.__name__ for one in seen))
            under = f" under {profile}" if profile else ""
            uncovered.append(f"no profile of {others} is seen as {machine.__name__}{under}")
        mapped += found
    return Asked(tuple(mapped), tuple(uncovered), tuple(left))


def _declared(machine: type[Machine], module: ModuleType) -> Iterator[Refinement]:
    """What the machine's own module declares, and what is declared of the shipped machines."""
    from stagewright.machines import REFINEMENTS

    places = [module]
    if machine.__module__.startswith("stagewright."):
        places += [importlib.import_module(place) for place in REFINEMENTS]
    yield from _among(places, machine)


def _among(places: Iterable[ModuleType], machine: type[Machine]) -> Iterator[Refinement]:
    from stagewright.spec.refinement import refinements_in

    for place in places:
        yield from (one for one in refinements_in(place) if machine in one.machines)
