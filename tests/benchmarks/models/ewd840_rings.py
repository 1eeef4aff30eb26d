"""EWD840 as in tests/models/ewd840.py, with rings of other sizes: `Ring3`, `Ring6`, `Ring8` ... `Ring10`.

There the ring's size is a profile, and nodes outside the ring stay asleep in every state; a peer does
not carry such nodes. So here each size has a node type and a machine of its own.
"""

from enum import Enum
from typing import TypeVar

from stagewright.spec import (
    Bool,
    FlagVar,
    Machine,
    OneVar,
    Term,
    action,
    every,
    flag,
    invariant,
    one_of,
    per,
    require,
)
from stagewright.spec.declarations.variables import ANY


class Node3(Enum):
    """A node, by its place in the ring; the token travels downwards."""

    N0, N1, N2 = range(3)


class Node6(Enum):
    """A node, by its place in the ring."""

    N0, N1, N2, N3, N4, N5 = range(6)


class Node8(Enum):
    """A node, by its place in the ring."""

    N0, N1, N2, N3, N4, N5, N6, N7 = range(8)


class Node9(Enum):
    """A node, by its place in the ring."""

    N0, N1, N2, N3, N4, N5, N6, N7, N8 = range(9)


class Node10(Enum):
    """A node, by its place in the ring."""

    N0, N1, N2, N3, N4, N5, N6, N7, N8, N9 = range(10)


N = TypeVar("N", bound=Enum)


def ring_of(place: type[N]) -> type[Machine]:
    """The machine on a ring of these nodes. No type checker knows them: hence what is ignored."""
    nodes = tuple(place)
    zero, top = nodes[0], nodes[-1]

    def below(n: N) -> N:
        return nodes[max(nodes.index(n) - 1, 0)]

    class Ewd840(Machine):
        """Node 0 wants to know that all nodes are inactive."""

        active = per(place, flag(ANY))
        black = per(place, flag(ANY))
        token: OneVar[N] = one_of(place)
        token_black: FlagVar = flag(init=True)

        @action
        def initiate_probe(self) -> None:
            """Node 0 sends a white token round."""
            require(self.token == zero, "the token is at node 0")
            require(self.token_black | self.black[zero], "the last round was inconclusive")
            self.token = top
            self.token_black = False
            self.black[zero] = False

        @action
        def pass_token(self, n: Term[place]) -> None:  # type: ignore[valid-type]
            """A node hands on the token, blackened if it is black itself."""
            require(n != zero, "it is not node 0")
            require(self.token == n, "the token is here")
            require(~self.active[n] | self.black[n] | self.token_black, "inactive, or no matter")
            self.token = n.column(below)
            self.token_black = self.token_black | self.black[n]
            self.black[n] = False

        @action
        def send(self, n: Term[place], to: Term[place]) -> None:  # type: ignore[valid-type]
            """An active node activates another one; upwards, it turns black."""
            require(self.active[n], "it is active")
            require(n != to, "the other is another")
            self.active[to] = True
            upwards = [(a, b) for a in nodes for b in nodes if b.value > a.value]
            risen = every(~((n == a) & (to == b)) for a, b in upwards)
            self.black[n] = self.black[n] | ~risen

        @action
        def deactivate(self, n: Term[place]) -> None:  # type: ignore[valid-type]
            """A node falls inactive."""
            require(self.active[n], "it is active")
            self.active[n] = False

        @invariant
        def detection_is_right(self) -> Bool:
            """What node 0 knows is so."""
            quiet = ~self.active[zero] & ~self.black[zero]
            detected = (self.token == zero) & ~self.token_black & quiet
            return detected.implies(every(~self.active[n] for n in place))

    return Ewd840


Ring3 = ring_of(Node3)
Ring6 = ring_of(Node6)
Ring8 = ring_of(Node8)
Ring9 = ring_of(Node9)
Ring10 = ring_of(Node10)
