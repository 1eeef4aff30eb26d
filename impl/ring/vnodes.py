"""Token rings of vnodes: who owns a token, and the replicas of a range, racks apart as far as they go.

The owner of a token is the node of the first vnode from it on; after the last vnode comes the first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from stagewright.machines.scylladb.topology.topology_states import NodeState, Ring, TransitionState
from stagewright.spec.errors import InputError


@dataclass(frozen=True)
class RingNode:
    """A node, as the rings see it."""

    host: str
    state: NodeState
    tokens: frozenset[int] = frozenset()
    datacenter: str = "dc1"
    rack: str = "rack1"
    replaced: str | None = None  # the host whose tokens it takes over


@dataclass(frozen=True)
class TokenRing:
    """One ring: the owner of each vnode, by its token."""

    owners: Mapping[int, RingNode]

    @cached_property
    def tokens(self) -> tuple[int, ...]:
        """The tokens of the vnodes in their order."""
        return tuple(sorted(self.owners))

    def vnode_of(self, token: int) -> int:
        """The token of the vnode whose range has a token: it is the last of that range.

        Raises:
            InputError: the ring is empty.
        """
        if not self.tokens:
            raise InputError("the ring has no tokens", help="let a node join first")
        index = bisect_left(self.tokens, token)
        return self.tokens[index % len(self.tokens)]

    def owner_of(self, token: int) -> RingNode:
        """The node that owns a token."""
        return self.owners[self.vnode_of(token)]

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Each vnode's range (start, end]: without its start, with its end; the first one wraps."""
        for index, end in enumerate(self.tokens):
            yield self.tokens[index - 1], end

    def replicas(self, token: int, factors: Mapping[str, int]) -> tuple[str, ...]:
        """The hosts that store a token: so many of each datacenter, or all where there are fewer.

        Along the ring, a node of a rack that has one already waits until the other racks have one, too.
        """
        start = bisect_left(self.tokens, token)
        count = len(self.tokens)
        around = [self.owners[self.tokens[(start + i) % count]] for i in range(count)]
        chosen: list[str] = []
        for datacenter, factor in factors.items():
            nodes = list({n.host: n for n in around if n.datacenter == datacenter}.values())
            chosen += _racks_apart(nodes, factor)
        order = {n.host: i for i, n in reversed(list(enumerate(around)))}
        return tuple(sorted(chosen, key=order.__getitem__))


def _racks_apart(nodes: list[RingNode], factor: int) -> list[str]:
    racks = {n.rack for n in nodes}
    doubled = max(0, factor - len(racks))  # so many may share a rack with an earlier one
    chosen: list[str] = []
    seen: set[str] = set()
    for node in nodes:
        if len(chosen) == factor:
            break
        if node.rack in seen:
            if doubled == 0:
                continue
            doubled -= 1
        seen.add(node.rack)
        chosen.append(node.host)
    return chosen


@dataclass(frozen=True)
class Chosen:
    """The hosts of a request: to `pending` a write goes too, and each raises the number of answers needed.

    `fewer`: those that stay, where the change leaves fewer replicas than there are: the cluster shrinks below
    the replication factor. A write that only those have who leave, and one who stays, would be lost with him.
    """

    reads: tuple[str, ...]
    writes: tuple[str, ...]
    pending: tuple[str, ...]
    fewer: tuple[str, ...] = ()


@dataclass(frozen=True)
class Rings:
    """The ring as it is, and as it is after the change that goes on."""

    old: TokenRing
    new: TokenRing

    @classmethod
    def of(cls, nodes: Iterable[RingNode]) -> Rings:
        """The rings of these nodes, by the columns of their states; made once as long as they are in use.

        Raises:
            InputError: two nodes own one token.
        """
        return _rings(tuple(nodes))

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Where the replicas of a token may change."""
        return tuple(sorted({*self.old.tokens, *self.new.tokens}))

    @cached_property
    def _chosen(self) -> dict[tuple[int, tuple[tuple[str, int], ...], TransitionState], Chosen]:
        return {}

    def chosen(self, token: int, factors: Mapping[str, int], state: TransitionState) -> Chosen:
        """The replicas of a token that requests use in a transition state."""
        place = self.ends[bisect_left(self.ends, token) % len(self.ends)] if self.ends else token
        key = place, tuple(factors.items()), state
        if key not in self._chosen:
            self._chosen[key] = self._choose(place, factors, state)
        return self._chosen[key]

    def _choose(self, token: int, factors: Mapping[str, int], state: TransitionState) -> Chosen:
        old, new = self.old.replicas(token, factors), self.new.replicas(token, factors)
        pending = tuple(h for h in new if h not in old)
        writes = {Ring.old: old, Ring.both: (*old, *pending), Ring.new: new}[state.writes]
        return Chosen(
            reads=new if state.reads is Ring.new else old,
            writes=writes,
            pending=pending if state.writes is Ring.both else (),
            fewer=new if state.writes is Ring.both and len(new) < len(old) else (),
        )


@lru_cache(maxsize=128)
def _rings(nodes: tuple[RingNode, ...]) -> Rings:
    replaced = {n.replaced for n in nodes if n.state is NodeState.replacing}
    return Rings(
        _ring(n for n in nodes if n.state.owns),
        _ring(n for n in nodes if n.state.will_own and n.host not in replaced),
    )


def _ring(nodes: Iterable[RingNode]) -> TokenRing:
    owners: dict[int, RingNode] = {}
    for node in nodes:
        for token in node.tokens:
            if token in owners:
                raise InputError(
                    f"{owners[token].host} and {node.host} both own token {token}",
                    help="give each node tokens of its own",
                )
            owners[token] = node
    return TokenRing(owners)
