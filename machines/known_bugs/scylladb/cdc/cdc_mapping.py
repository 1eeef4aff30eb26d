"""Mistakes put back into `CdcMapping`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.cdc.cdc_mapping import (
    COORDINATOR,
    CdcMapping,
    Ends,
    Node,
    Shard,
    Token,
)
from stagewright.spec import Bool, Fairness, Term, action, choose, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "003-5",
    "design document 003, Generation switching",
    breaks=CdcMapping.base_and_log_rows_are_in_one_vnode,
)
class GenerationRefinesTheOldVnodes(CdcMapping):
    """The joining node makes its generation for the vnodes that there are, without its own tokens."""

    def _vnodes_with(self, _t: Term[Token], /) -> Ends:
        return {end: self.ring[end].is_some() for end in Token}


@known_bug(
    "003-20",
    "design document 003: a stream whose token falls into the same vnode",
    breaks=CdcMapping.base_and_log_rows_are_in_one_vnode,
)
class StreamsAreOfTheShardAlone(CdcMapping):
    """The token of a stream was the next one of its shard, whatever vnode that is in."""

    def _first_token(
        self, _ends: Ends, end: Token, shard: Shard, two_shards: Bool, /
    ) -> Term[Token]:
        first = Term.of(end)
        for token in reversed(end.around()[1:]):
            owns_of_two = two_shards & (token.shard(2) is shard)
            first = choose(owns_of_two | (~two_shards & (token.shard(1) is shard)), token, first)
        return first


@known_bug(
    "003-21",
    "design document 003: log table entries are also written to the jth shard",
    breaks=CdcMapping.base_and_log_rows_are_on_one_shard,
)
class StreamsAreOfTheVnodeAlone(CdcMapping):
    """Each stream of a range had the token at which the range ends, whatever shard that is of."""

    def _first_token(
        self, _ends: Ends, end: Token, _shard: Shard, _two_shards: Bool, /
    ) -> Term[Token]:
        return Term.of(end)


@known_bug(
    "003-22",
    "design document 003: before that, it will introduce a new CDC generation",
    breaks=CdcMapping.ranges_refine_the_vnodes,
)
class TheGenerationFollowsTheToken(CdcMapping):
    """A generation was made in the command that inserted the token of the node that joins, and not before: there was none
    for writes that went to that node already.
    """

    @action(by=COORDINATOR, spends=CdcMapping.joins)
    def make_generation(self, n: Term[Node], t: Term[Token]) -> None:
        """A node is to join with a token."""
        require(self.joining.is_none(), "nobody joins")
        require(self.ring[t].is_none(), "the token is free")
        self.joining = t
        self.joining_node = n

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def insert_token(self, n: Term[Node], t: Term[Token]) -> None:
        """The token becomes part of the ring, and a generation is made for it."""
        self._make(n, t)
        super().insert_token(n, t)


@known_bug(
    "003-60",
    'design document 003: streams "have their tokens in the ith range"',
    breaks=CdcMapping.streams_lie_in_their_range,
)
class TheNextTokenOfTheShard(CdcMapping):
    """Where a range had no token of the shard, its stream got the next one that the shard owns, in another range: rows of
    this one never went there, and clients that asked for the streams of a range looked elsewhere.
    """

    def _first_token(
        self, ends: Ends, end: Token, shard: Shard, two_shards: Bool, /
    ) -> Term[Token]:
        first = Term.of(end)
        if end.shard(2) is not shard:
            following = next(token for token in end.around() if token.shard(2) is shard)
            first = choose(two_shards, following, Term.of(end))
        for token in reversed(end.around()[1:]):
            in_range = ~some(ends[other] for other in token.until(end))
            is_owned = two_shards.implies(token.shard(2) is shard)
            first = choose(in_range & is_owned, token, first)
        return first


@known_bug(
    "C06",
    "scylladb #7961 #7993 #7985",
    breaks=CdcMapping.base_and_log_rows_are_on_one_shard,
)
class NumberOfStreamsIsLimited(CdcMapping):
    """A generation that would be too large gets fewer streams for a range than its owner has shards."""

    def _has_stream(self, shard: Shard, two_shards: Bool) -> Bool:
        return super()._has_stream(shard, two_shards) & (shard is Shard.first)


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "003-50",
    'design document 003: the joining node "chooses tokens which will split them into smaller vnodes"',
    breaks=CdcMapping.nodes_join_with_any_token,
)
class NodesHaveOneToken(CdcMapping):
    """A node that had a token got no other one: its vnode could not be split by itself."""

    @action(by=COORDINATOR, spends=CdcMapping.joins)
    def make_generation(self, n: Term[Node], t: Term[Token]) -> None:
        """A node that has no token yet is to join with one."""
        super().make_generation(n, t)
        require(every(~(self.ring[other] == n) for other in Token), "the node has no token")


@known_bug(
    "003-131",
    "design document 003: it modifies the token ring by refining existing vnodes",
    breaks=CdcMapping.joins_only_add_tokens,
)
class TheSecondTokenReplacesTheFirst(CdcMapping):
    """A node that joined with another token had one, as before: its first vnode went back to the next node."""

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def insert_token(self, n: Term[Node], t: Term[Token]) -> None:
        """The token becomes the node's only one."""
        require((self.joining == t) & (self.joining_node == n), "the node joins with the token")
        for end in Token:
            old = (self.ring[end] == n) & (t != end)
            owner = choose(old, None, self.ring[end])
            self.ring[end] = choose(t == end, n, owner)
        self.joining = None
        self.joining_node = None


@known_bug(
    "003-132",
    "design document 003: the joining node chooses tokens which will split them into smaller vnodes",
    breaks=CdcMapping.vnodes_are_split,
)
class LaterJoinsAreGivenUp(CdcMapping):
    """A join was given up when its generation was not the first one, as nodes still used that."""

    @action(by=COORDINATOR, fair=Fairness.WEAK)
    def insert_token(self, n: Term[Node], t: Term[Token]) -> None:
        """The token becomes part of the ring, if that has none, or the join is given up."""
        require((self.joining == t) & (self.joining_node == n), "the node joins with the token")
        used = some(self.ring[end].is_some() for end in Token)
        self.ring[t] = choose(used, None, n)
        self.joining = None
        self.joining_node = None


BUGS = known_bugs_in(globals())
