"""CDC: the mapping from tokens to streams on a small token ring that nodes join.

Source: design document 003 (cdc), "The generation's mapping" and "Generation switching". Every ring of a few
tokens is tried; `cdc_streams.py` is the mapping of the real size.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.cdc.cdc_streams import Sharding
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Entity,
    Fairness,
    Machine,
    Maybe,
    OptionalVar,
    SetVar,
    Term,
    accepts,
    action,
    budget,
    choose,
    constant,
    count,
    equivalent_drop,
    equivalent_replacement,
    equivalents,
    every,
    final,
    flag,
    invariant,
    lemma,
    optional,
    per,
    require,
    set_of,
    some,
    sometimes,
    step_property,
)

COORDINATOR = Actor("topology coordinator")
IGNORED_BITS = 1  # so each shard owns several pieces of the ring


class Node(Entity, scope=2):
    """A node that owns tokens."""


class Shard(Enum):
    """A shard of a node; some nodes have the first one only."""

    first = auto()
    second = auto()


class Token(Enum):
    """The tokens of the ring, in order; each stands for the first of a quarter of the real ones."""

    t0 = auto()
    t1 = auto()
    t2 = auto()
    t3 = auto()

    @property
    def place(self) -> int:
        """How many tokens there are before it."""
        return list(Token).index(self)

    def shard(self, shard_count: int) -> Shard:
        """The shard of this token at a node with so many shards, as the real function computes it."""
        real = (self.place << 62) - 2**63
        return list(Shard)[Sharding(shard_count, IGNORED_BITS).shard_of(real)]

    def around(self) -> list[Token]:
        """All tokens from this one on, around the ring."""
        tokens = list(Token)
        return tokens[self.place :] + tokens[: self.place]

    def until(self, end: Token) -> list[Token]:
        """The tokens from this one to the last before `end`, around the ring."""
        return self.around()[: (end.place - self.place) % len(Token)]


Ends = dict[Token, Bool]
"""Of each token whether a vnode, or a range of a generation, ends there."""


class CdcMapping(Machine):
    """Nodes join a token ring, each after a CDC generation for the ring that there will be."""

    joins = budget(4, doc="tokens with which nodes join the ring")

    two_shards = constant(per(Node, flag(init=ANY)))  # the node has two shards, not one
    ring = per(Token, optional(Node))  # the node that owns the vnode which ends there
    joining: OptionalVar[Token] = optional(Token)
    joining_node: OptionalVar[Node] = optional(Node)
    # the generation
    range_ends: SetVar[Token] = set_of(Token)
    streams = per(Token, per(Shard, optional(Token)))  # of a range: the tokens of its stream ids

    @action(by=COORDINATOR, spends=joins)
    def make_generation(self, n: Term[Node], t: Term[Token]) -> None:
        """A node is to join with a token: a generation is made for the vnodes that there will be."""
        require(self.joining.is_none(), "nobody joins")
        require(self.ring[t].is_none(), "the token is free")
        self.joining = t
        self.joining_node = n
        self._make(n, t)

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def insert_token(self, n: Term[Node], t: Term[Token]) -> None:
        """The token becomes part of the ring: it splits a vnode."""
        require((self.joining == t) & (self.joining_node == n), "the node joins with the token")
        self.ring[t] = n
        self.joining = None
        self.joining_node = None

    # -- how a generation is made ------------------------------------------------------------------------

    def _make(self, n: Term[Node], t: Term[Token]) -> None:
        vnodes = self._vnodes_with(t)
        for end in Token:
            two = choose(t == end, self.two_shards[n], self._owner_has_two_shards(end))
            self.range_ends.put(end, vnodes[end])
            for shard in Shard:
                stream = self._first_token(vnodes, end, shard, two)
                exists = vnodes[end] & self._has_stream(shard, two)
                self.streams[end][shard] = choose(exists, stream, None)

    def _vnodes_with(self, t: Term[Token], /) -> Ends:
        """The vnodes that there will be with one token more."""
        return {end: self.ring[end].is_some() | (t == end) for end in Token}

    def _has_stream(self, shard: Shard, two_shards: Bool) -> Bool:
        """A range has a stream for each shard of the node that owns its end."""
        return two_shards | (shard is Shard.first)

    def _first_token(
        self, ends: Ends, end: Token, shard: Shard, two_shards: Bool, /
    ) -> Term[Token]:
        """The first token of the shard in the range that ends at `end`; else that end."""
        first = Term.of(end)
        others = end.around()[1:]
        for token in reversed(others):
            in_range = ~some(ends[other] for other in token.until(end))
            is_owned = two_shards.implies(token.shard(2) is shard)
            first = choose(in_range & is_owned, token, first)
        return first

    # -- how it is used ----------------------------------------------------------------------------------

    def stream_of(self, token: Token) -> Maybe[Token]:
        """The token of the log rows to which changes of a base row with that token go.

        The stream is of the range into which the token falls: the first one that ends at or after it, around.
        """
        first, *others = reversed(token.around())
        stream = self._stream_in(first, token)
        for end in others:
            stream = choose(self.range_ends.has(end), self._stream_in(end, token), stream)
        return stream

    def _end_of_range(self, token: Token, end: Token) -> Bool:
        """The token falls into the range that ends at `end`."""
        before = some(self.range_ends.has(other) for other in token.until(end))
        return self.range_ends.has(end) & ~before

    def _stream_in(self, end: Token, token: Token) -> Maybe[Token]:
        """The stream of a token that falls into the range that ends at `end`."""
        streams = self.streams[end]
        several = streams[Shard.second].is_some()
        return choose(several, streams[token.shard(2)], streams[Shard.first])

    # -- helpers -----------------------------------------------------------------------------------------

    def ends_before(self, token: Token, end: Token) -> Bool:
        """Some vnode ends from the token on, and before `end`."""
        return some(self.ring[other].is_some() for other in token.until(end))

    def _is_or_will_be_a_vnode(self, end: Token) -> Bool:
        """A vnode ends there, or is about to."""
        return self.ring[end].is_some() | (self.joining == end)

    def _is_for_two_shards(self, end: Token) -> Bool:
        """The range that ends there is of a node with two shards, or was made for one."""
        several = self.streams[end][Shard.second].is_some()
        return choose(self._is_or_will_be_a_vnode(end), self._will_have_two_shards(end), several)

    def _will_have_two_shards(self, vnode: Token) -> Bool:
        """Whose vnode ends there, or is about to, has two shards."""
        to_be = some(self.two_shards[node] for node in self.joining_node)
        return choose(self.joining == vnode, to_be, self._owner_has_two_shards(vnode))

    def _owner_has_two_shards(self, end: Token) -> Bool:
        return some(self.two_shards[owner] for owner in self.ring[end])

    def _same_vnode(self, a: Token, b: Token) -> Bool:
        """No vnode ends between the two tokens, one way or the other around the ring."""
        return ~self.ends_before(a, b) | ~self.ends_before(b, a)

    # -- promises ----------------------------------------------------------------------------------------

    @invariant
    def ranges_refine_the_vnodes(self, t: Term[Token]) -> Bool:
        """003: "the token ranges defined by topology_description ... are a refinement of vnodes in the
        token ring at the time when this generation operates", and of those that are to be.
        """
        is_end = self.ring[t].is_some() | (self.joining == t)
        return is_end.implies(self.range_ends.has(t))

    @invariant
    def ranges_have_a_stream_for_each_shard(self) -> Bool:
        """003: "Suppose that the number of shards of A is _entries[i].streams.size()": where a vnode of A's ends, or is about
        to. A range that ends within one, as for a join that was given up, has a stream.
        """
        second = Shard.second
        return every(
            (self.streams[end][Shard.first].is_some() == self.range_ends.has(end))
            & self._is_or_will_be_a_vnode(end).implies(
                self.streams[end][second].is_some()
                == (self.range_ends.has(end) & self._will_have_two_shards(end))
            )
            for end in list(Token)
        )

    @invariant
    def a_join_is_of_a_node_with_a_token(self) -> Bool:
        """003: "The joining node ... chooses tokens which will split" the vnodes."""
        return self.joining.is_none() == self.joining_node.is_none()

    @invariant
    def streams_lie_in_their_range(self) -> Bool:
        """003: "The streams in vector _entries[i].streams have their tokens in the ith range", also one to which no row
        goes, since its shard has no part of the range.
        """
        return every(
            (self.streams[end][shard] == token).implies(self._end_of_range(token, end))
            for end in list(Token)
            for shard in list(Shard)
            for token in list(Token)
        )

    @lemma
    def base_and_log_rows_are_in_one_vnode(self) -> Bool:
        """003: "we map each token tok to a stream whose token falls into the the same vnode as tok"."""
        return every(
            (self.stream_of(token) == stream).implies(self._same_vnode(token, stream))
            for token in list(Token)
            for stream in list(Token)
        )

    @lemma
    def every_token_has_a_stream(self) -> Bool:
        """003: a generation maps "the set of tokens (in the entire token ring) to the set of stream IDs". A lemma: every
        token is in a range, and `ranges_have_a_stream_for_each_shard`.
        """
        return self.range_ends.is_empty() | every(
            self.stream_of(token).is_some() for token in list(Token)
        )

    @invariant
    def base_and_log_rows_are_on_one_shard(self) -> Bool:
        """003: base writes of the jth shard "will have their corresponding log table entries also written
        to the jth shard", at every replica with as many shards as the owner of the range's end; of a range that ends within
        a vnode, with as many as it has streams.
        """
        return every(
            (self._end_of_range(token, end) & self._is_for_two_shards(end)).implies(
                ~(self._stream_in(end, token) == stream)
            )
            for token in list(Token)
            for end in list(Token)
            for stream in list(Token)
            if token.shard(2) is not stream.shard(2)
        )

    @accepts(make_generation)
    def nodes_join_with_any_token(self, n: Term[Node], t: Term[Token]) -> Bool:
        """003: "The joining node learns about the current vnodes, chooses tokens which will split them": any vnode, and with
        as many tokens as it likes.
        """
        return self.joining.is_none() & every(~(self.ring[t] == owner) for owner in Node)

    @step_property
    def joins_only_add_tokens(self, after: Self, t: Term[Token]) -> Bool:
        """003: "When a new node joins the cluster it modifies the token ring by refining existing vnodes"."""
        return self.ring[t].is_none() | (after.ring[t] == self.ring[t])

    @sometimes
    def vnodes_are_split(self) -> Bool:
        """003, the same: a node joins with tokens "which will split them into smaller vnodes", and there are several."""
        return count(self.ring[t].is_some() for t in Token) > 1

    @final
    def nobody_joins(self) -> Bool:
        """A ring may stay as it is."""
        return self.joining.is_none()

    # -- harmless changes --------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            make_generation, "nobody joins", because="a join that is given up makes way for another"
        ),
        equivalent_replacement(
            _make,
            "[first] becomes: t",
            "becomes: no for yes",
            because="of the tokens of a range, a stream may have any that the shard owns",
        ),
    )


def owns(mapping: CdcMapping, n: Term[Node], token: Token) -> Bool:
    """The token falls into a vnode of the node: the first one that ends at or after it, around."""
    return some((mapping.ring[end] == n) & ~mapping.ends_before(token, end) for end in list(Token))


def will_own(mapping: CdcMapping, n: Term[Node], token: Token) -> Bool:
    """The token falls into the vnode with which the node joins."""
    joins = mapping.joining_node == n
    return joins & some(
        (mapping.joining == end) & ~mapping.ends_before(token, end) for end in list(Token)
    )
