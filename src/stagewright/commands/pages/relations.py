"""How the shipped machines stand to each other: what each is checked to be seen as, and what it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from stagewright.spec.loading import find
from stagewright.spec.machine import Machine, Many, Part, members
from stagewright.spec.refinement import refinements_in


def seen_as(shipped: Mapping[str, str], modules: Iterable[str]) -> dict[str, list[str]]:
    """By machine: those that it refines, as these modules declare."""
    names = _names(shipped)
    found: dict[str, list[str]] = {name: [] for name in shipped}
    for module in modules:
        for refinement in refinements_in(import_module(module)):
            concrete, seen = (_shipped(m, names) for m in (refinement.concrete, refinement.seen))
            if concrete and seen and seen not in found[concrete]:
                found[concrete].append(seen)
    return found


def made_of(shipped: Mapping[str, str]) -> dict[str, list[str]]:
    """By machine: those that it has as parts, and the one that it extends."""
    names = _names(shipped)
    found: dict[str, list[str]] = {}
    for machine, name in names.items():
        parts = [m.machine for m in members(machine).values() if isinstance(m, Part | Many)]
        extends = [base for base in machine.__mro__[1:] if base in names]
        related = [_shipped(one, names) for one in [*parts, *extends[:1]]]
        found[name] = [one for one in dict.fromkeys(related) if one]
    return found


def _names(shipped: Mapping[str, str]) -> dict[type[Machine], str]:
    return {find(name, dict(shipped)): name for name in shipped}


def _shipped(machine: type[Machine], names: Mapping[type[Machine], str]) -> str:
    """The machine itself, or the first one that shares a base with it: what is shipped of a base or a variant."""
    for base in machine.__mro__:
        if base is Machine:
            break
        found = names.get(base) or next((n for m, n in names.items() if base in m.__mro__), "")
        if found:
            return found
    return ""
