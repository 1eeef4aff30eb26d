"""The models that every explicit checker is given, and how many distinct states each has exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Size = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A model by its name; what the numbers of its size mean; its exact count."""

    name: str
    title: str
    parts: tuple[str, ...]
    states: Callable[[Size], int]
    smallest: Size  # a run of it is all start-up
    orbits: Mapping[Size, int] = field(default_factory=dict[Size, int])  # of states, where known

    def shown(self, size: Size) -> str:
        """The size in words."""
        return ", ".join(f"{n} {part}" for n, part in zip(size, self.parts, strict=True))

    def slug(self, size: Size) -> str:
        """The model and its size as a file name."""
        return "-".join([self.name, *map(str, size)])


_TWO_PHASE = {
    3: 288,
    5: 8_832,
    6: 50_816,
    7: 296_448,
    8: 1_745_408,
    9: 10_340_352,
    10: 61_515_776,
}
_EWD840 = {3: 302, 6: 36_990, 7: 172_286, 8: 786_942, 9: 3_539_966, 10: 15_730_686}


def tablet_barrier_states(size: Size) -> int:
    """The closed form: k nodes of N are up; a live node knows a tablet's stage or the one before."""
    tablets, nodes = size
    return sum(math.comb(nodes, k) * (6 * 2**k + 1) ** tablets for k in range(nodes + 1))


CASES = (
    Case(
        "two_phase_commit",
        "two-phase commit",
        ("resource managers",),
        lambda size: _TWO_PHASE[size[0]],
        (3,),
        {(7,): 920, (8,): 1_461, (10,): 3_300},
    ),
    Case("ewd840", "EWD840", ("nodes",), lambda size: _EWD840[size[0]], (3,)),
    Case(
        "tablet_barrier",
        "tablet barriers",
        ("tablets", "nodes"),
        tablet_barrier_states,
        (1, 1),
    ),
)
