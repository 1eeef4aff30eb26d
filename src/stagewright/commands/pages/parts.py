"""What a system's page leaves to the pages of its parts: their steps and promises, named with where they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from stagewright.commands.facts.facts import ActionFacts, PropertyFacts
from stagewright.spec.machine import Machine, Many, Part

Fact = TypeVar("Fact", ActionFacts, PropertyFacts)


def pages_of_parts(machine: type[Machine], shipped: Mapping[str, str]) -> dict[str, str]:
    """By the name of a part: the page of its machine. Parts whose machine is not shipped have none."""
    names = {place: name for name, place in shipped.items()}
    found: dict[str, str] = {}
    for one in reversed(machine.__mro__):
        for name, value in vars(one).items():
            if isinstance(value, Part | Many):
                seen = value.machine
                page = names.get(f"{seen.__module__}:{seen.__name__}")
                if page is not None:
                    found[name] = page
    return found


def own(facts: Sequence[Fact], pages: Mapping[str, str]) -> list[Fact]:
    """Those that a system has beside what its parts bring."""
    return [fact for fact in facts if _part(fact.name) not in pages]


def of_parts(
    facts: Sequence[ActionFacts] | Sequence[PropertyFacts], pages: Mapping[str, str], what: str
) -> Iterator[str]:
    """A paragraph for each part: the names of what it brings, and the page that describes it."""
    for part, page in pages.items():
        names = [fact.name.partition(".")[2] for fact in facts if _part(fact.name) == part]
        if names:
            listed = ", ".join(f"`{name}`" for name in names)
            yield from (f"{what} of the part `{part}`, see [{page}]({page}.md): {listed}.", "")


def _part(name: str) -> str:
    head, dot, _ = name.partition(".")
    return head if dot else ""
