"""Tablet maps: a table's tokens in `2 ** n` ranges of one size, the replicas of each, and what splits and merges.

A replica is a shard of a host. While a tablet moves, its stage's selectors say who is read and written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stagewright.impl.ring.partitioner import LAST_TOKEN
from stagewright.impl.ring.vnodes import Chosen
from stagewright.machines.scylladb.tablets.tablet_stages import Replicas, Stage
from stagewright.spec.errors import InputError


@dataclass(frozen=True, order=True)
class TabletReplica:
    """Where a tablet lies."""

    host: str
    shard: int = 0


@dataclass(frozen=True)
class Tablet:
    """A tablet's replicas and, while it moves, its stage and the replicas after that."""

    replicas: tuple[TabletReplica, ...]
    stage: Stage = Stage.none
    next: tuple[TabletReplica, ...] | None = None
    reordered: bool = False  # replicas of one that it was merged from had other places

    @property
    def moves(self) -> bool:
        """Whether it is in transition."""
        return self.stage is not Stage.none

    def hosts(self, which: Replicas) -> tuple[str, ...]:
        """The hosts that a selector stands for; both shards of one that it moves within are one host."""
        now = [r.host for r in self.replicas]
        then = now if self.next is None else [r.host for r in self.next]
        found = {Replicas.previous: now, Replicas.both: [*now, *then], Replicas.next: then}
        return tuple(dict.fromkeys(found[which]))

    def chosen(self) -> Chosen:
        """The replicas that requests use in its stage."""
        before = self.hosts(Replicas.previous)
        writes = self.hosts(self.stage.writes)
        both = self.stage.writes is Replicas.both
        pending = tuple(h for h in writes if h not in before) if both else ()
        then = self.hosts(Replicas.next)
        fewer = then if both and len(then) < len(before) else ()
        return Chosen(self.hosts(self.stage.reads), writes, pending, fewer)


def together(left: Tablet, right: Tablet) -> Tablet:
    """The tablet that two are which lie on the same replicas: these have the places that they had in the first."""
    same = left.hosts(Replicas.previous) == right.hosts(Replicas.previous)
    return Tablet(left.replicas, reordered=left.reordered or right.reordered or not same)


@dataclass(frozen=True)
class TabletMap:
    """The tablets of a table, in the order of their tokens.

    Raises:
        InputError: their number is no power of two.
    """

    tablets: tuple[Tablet, ...]

    def __post_init__(self) -> None:
        count = len(self.tablets)
        if count == 0 or count & (count - 1):
            raise InputError(f"{count} tablets are no power of two", help="use 1, 2, 4, 8, …")

    @property
    def bits(self) -> int:
        """How many of a token's leading bits name its tablet."""
        return len(self.tablets).bit_length() - 1

    def tablet_of(self, token: int) -> int:
        """The number of the tablet that has a token."""
        return (token + (1 << 63)) >> (64 - self.bits)

    def last_token(self, tablet: int) -> int:
        """The last token of a tablet, by which `system.tablets` knows it."""
        if tablet == len(self.tablets) - 1:
            return LAST_TOKEN
        return ((tablet + 1) << (64 - self.bits)) - (1 << 63) - 1

    def tablet_that_ends(self, last_token: int) -> int:
        """The inverse of `last_token`.

        Raises:
            InputError: no tablet ends there.
        """
        tablet = self.tablet_of(last_token)
        if self.last_token(tablet) != last_token:
            raise InputError(
                f"no tablet of {len(self.tablets)} ends with token {last_token}",
                help=f"tablet {tablet} ends with {self.last_token(tablet)}",
            )
        return tablet

    def with_tablet(self, tablet: int, now: Tablet) -> TabletMap:
        """The map in which one tablet is another."""
        return replace(self, tablets=(*self.tablets[:tablet], now, *self.tablets[tablet + 1 :]))

    def split(self) -> TabletMap:
        """The map with twice as many tablets: `2i` and `2i + 1` have what `i` had.

        Raises:
            InputError: (as of `merged`) a tablet is in transition.
        """
        self._refuse_moving()
        return TabletMap(tuple(t for one in self.tablets for t in (one, one)))

    def merged(self) -> TabletMap:
        """The map with half as many tablets.

        Raises:
            InputError: there is one tablet only, or two that would be one lie on different replicas.
        """
        self._refuse_moving()
        if len(self.tablets) == 1:
            raise InputError("one tablet cannot be merged", help="there is none beside it")
        found: list[Tablet] = []
        for i in range(0, len(self.tablets), 2):
            left, right = self.tablets[i : i + 2]
            if sorted(left.replicas) != sorted(right.replicas):
                raise InputError(
                    f"tablets {i} and {i + 1} lie on different replicas",
                    help="move one of them to the other's replicas first",
                )
            found.append(together(left, right))
        return TabletMap(tuple(found))

    def _refuse_moving(self) -> None:
        for number, tablet in enumerate(self.tablets):
            if tablet.moves:
                raise InputError(
                    f"tablet {number} is in transition ({tablet.stage.name})",
                    help="resize a table when none of its tablets moves",
                )
