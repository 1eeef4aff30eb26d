"""The refinements that a check decides: those that are declared of its machine, and those for it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from stagewright.spec.definition import Definition
    from stagewright.spec.machine import Machine
    from stagewright.spec.refinement import Mapped, Refinement


@dataclass(frozen=True)
class Asked:
    """What is to be decided under one profile; `uncovered` says where nothing is declared for it."""

    mapped: tuple[Mapped, ...]
    uncovered: tuple[str, ...]


def refinements_of(name: str, definition: Definition, *, as_seen: bool = True) -> Asked:
    """The refinements of the machine that `name` names, under the definition's profile.

    `as_seen`: also those in which another machine is seen as this one.

    Raises:
        DefinitionError: a mapping cannot mean what it says.
    """
    from stagewright.machines import SHIPPED
    from stagewright.spec.loading import find_in_module

    machine, module = find_in_module(name, SHIPPED)
    declared = list(dict.fromkeys(_declared(machine, module)))
    profile = definition.profile
    mapped: list[Mapped] = []
    uncovered: list[str] = []
    for one in declared:
        if one.concrete is machine and profile in one.covered:
            mapped.append(one.mapped(profile))
        elif one.concrete is machine:
            uncovered.append(f"`{one.name}` says nothing of {machine.__name__} under {profile}")
    seen = [one for one in declared if one.seen is machine and one.concrete is not machine]
    if as_seen and seen:
        found = [one.mapped(p) for one in seen for p, as_ in one.covered.items() if as_ == profile]
        if not found:
            others = ", ".join(dict.fromkeys(one.concrete.__name__ for one in seen))
            under = f" under {profile}" if profile else ""
            uncovered.append(f"no profile of {others} is seen as {machine.__name__}{under}")
        mapped += found
    return Asked(tuple(mapped), tuple(uncovered))


def _declared(machine: type[Machine], module: ModuleType) -> Iterator[Refinement]:
    """What the machine's own module declares, and what is declared of the shipped machines."""
    from stagewright.machines import REFINEMENTS
    from stagewright.spec.refinement import refinements_in

    places = [module]
    if machine.__module__.startswith("stagewright."):
        places += [importlib.import_module(place) for place in REFINEMENTS]
    for place in places:
        yield from (one for one in refinements_in(place) if machine in one.machines)
