"""The families of a system: where the machines whose traces there are stand in it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, cast

from stagewright.spec.machine import Machine, Many, Part, members
from stagewright.spec.sorts import EntitySort, EnumSort


@dataclass(frozen=True)
class Family:
    """All machines of one `many`, or the single one of a `part` (`sort` is None).

    The system's variable `prefix + name` holds the machine's variable `name`, for each member of the sort.
    """

    prefix: str
    kind: type[Machine]
    sort: EntitySort | EnumSort | None

    @property
    def machine(self) -> str:
        """The machine's name, as events have it."""
        return self.kind.__name__

    @property
    def name(self) -> str:
        """The system's name for it."""
        return self.prefix.removesuffix(".")


def families_of(system: type[Machine], recorded: Collection[str]) -> list[Family]:
    """The families of a system whose machines were recorded, the outermost where they are nested."""
    return list(_families(system, "", None, recorded))


def _families(
    machine: type[Machine],
    prefix: str,
    sort: EntitySort | EnumSort | None,
    recorded: Collection[str],
) -> Iterator[Family]:
    for name, member in members(machine).items():
        inner = f"{prefix}{name}."
        if isinstance(member, Part):
            part = cast("Part[Machine]", member).machine
            if part.__name__ in recorded:
                yield Family(inner, part, sort)
            else:
                yield from _families(part, inner, sort, recorded)
        elif isinstance(member, Many) and sort is None:
            many = cast("Many[Any, Machine]", member)
            if many.machine.__name__ in recorded:
                yield Family(inner, many.machine, many.sort)
            else:
                yield from _families(many.machine, inner, many.sort, recorded)
