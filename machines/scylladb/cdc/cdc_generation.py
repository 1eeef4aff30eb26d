"""One CDC generation, as the topology coordinator's log and `system.topology` tell of it.

Source: design document 001 (topology-over-raft, 2023-07), `commit_cdc_generation` and
`publish_cdc_generation`; ScyllaDB's publisher. `cdc_publication.py` has several generations, the topology
changes that they are made for, and the tables for CDC clients.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    accepts,
    action,
    equivalent_disabled,
    equivalents,
    final,
    flag,
    independent,
    invariant,
    leads_to,
    liveness,
    one_of,
    require,
    sometimes,
    step_property,
)

COORDINATOR = Actor("topology coordinator")
PUBLISHER = Actor("CDC generation publisher")
WEAK = Fairness.WEAK


class Life(Enum):
    """How far a generation has come."""

    absent = auto()
    written = auto()  # its data is in group0, it has no timestamp yet
    committed = auto()  # it has one; it waits in unpublished_cdc_generations
    published = auto()  # CDC clients can see it
    cleared = auto()  # its data is deleted
    abandoned = auto()  # it was never committed: the join for which it was made was rolled back


L = Life


class CdcGeneration(Machine):
    """One generation, by its id: its data is written, then it is committed, published, and one day cleared."""

    life: OneVar[Life] = one_of(Life, init=L.absent)
    superseded: FlagVar = flag()  # a newer one is committed
    overtaken: FlagVar = flag()  # a newer one is published
    used: FlagVar = flag()  # some node has begun to use it

    @life.step(L.absent, L.written, by=COORDINATOR)
    def write_data(self) -> None:
        """The log says "insert CDC generation data": for a node that bootstraps, or on request."""

    @life.step(L.written, L.committed, by=COORDINATOR)
    def commit(self) -> None:
        """The log says "committed new CDC generation": every node has the data; in the same command it is queued."""

    @life.step(L.absent, L.committed, by=COORDINATOR)
    def upgrade(self) -> None:
        """The generation that was gossiped when the topology moved to group0."""

    @life.step(L.written, L.abandoned, by=COORDINATOR)
    def abandon(self) -> None:
        """The barrier failed: the join is rolled back."""

    @life.step(L.committed, L.published, by=PUBLISHER, fair=WEAK)
    def publish(self) -> None:
        """The log says "published CDC generation": the oldest of the queue first."""

    @life.step(L.published, L.cleared, by=PUBLISHER)
    def clear(self) -> None:
        """The log says "deleted data of CDC generations": a newer one has operated for long enough."""
        require(self.superseded, "a newer generation is committed")

    @action(by=COORDINATOR)
    def supersede(self) -> None:
        """A newer generation is committed."""
        require(self.life.any_of(L.committed, L.published), "it is committed, and not cleared")
        require(~self.superseded, "it is the newest")
        self.superseded = True

    @action(by=PUBLISHER)
    def overtake(self) -> None:
        """A newer generation is published: this one was before it."""
        require(self.superseded & ~self.overtaken, "the next one waits")
        require(self.life.any_of(L.published, L.cleared), "it is published")
        self.overtaken = True

    @action
    def start_using(self) -> None:
        """The log says "Started using generation": a node has learned of it with the command that commits it."""
        require(self.life.any_of(L.committed, L.published), "it is committed, and not cleared")
        require(~self.used, "no node uses it yet")
        self.used = True

    @step_property
    def generations_go_one_way(self, after: Self) -> Bool:
        """001: a generation is written, committed, published; its id is used once."""
        old, new = self.life, after.life
        back = (old == L.cleared) | (old == L.abandoned)
        skips = (old == L.written) & new.any_of(L.published, L.cleared)
        skips = skips | ((old == L.committed) & new.any_of(L.written, L.cleared, L.abandoned))
        skips = skips | ((old == L.published) & new.any_of(L.written, L.committed))
        skips = skips | ((old == L.absent) & new.any_of(L.published, L.cleared, L.abandoned))
        return (back.implies(old == new)) & ~skips & (new == L.absent).implies(old == new)

    @step_property
    def each_step_shows(self, after: Self) -> Bool:
        """Every step changes what a log or a dump reports."""
        moves = (self.life != after.life) | (self.used != after.used)
        newer = (self.superseded != after.superseded) | (self.overtaken != after.overtaken)
        return moves | newer

    @invariant
    def generations_are_published_in_their_order(self) -> Bool:
        """A client that has seen a generation misses none before it (scylladb PR #15281)."""
        published = self.life.any_of(L.published, L.cleared)
        return self.overtaken.implies(published & self.superseded)

    @invariant
    def the_newest_generation_is_kept(self) -> Bool:
        """Writes need the generation that operates, so only superseded ones are cleared."""
        return (self.life == L.cleared).implies(self.superseded)

    @invariant
    def only_committed_generations_have_successors(self) -> Bool:
        """A generation gets its timestamp in the order of commits."""
        committed = self.life.any_of(L.committed, L.published, L.cleared)
        return (self.superseded | self.overtaken).implies(committed)

    @invariant
    def generations_are_used_with_their_timestamp(self) -> Bool:
        """003: a generation has "a timestamp which denotes when the generation starts operating"; until
        it is committed it has none.
        """
        return self.used.implies(self.life.any_of(L.committed, L.published, L.cleared))

    @sometimes
    def data_is_written_before_the_commit(self, after: Self) -> Bool:
        """001, commit_cdc_generation: "a new CDC generation data was written to internal tables earlier and now we need to
        commit the generation".
        """
        return (self.life == L.written) & (after.life == L.committed)

    @sometimes
    def generations_are_used_before_they_are_published(self) -> Bool:
        """003, the same: from then on nodes use it, whether CDC clients can see it or not."""
        return self.used & (self.life == L.committed)

    @accepts(supersede)
    def generations_are_committed_whatever_clients_can_see(self) -> Bool:
        """001: a newer one has its data written, and is committed, whether this one is published or not (scylladb #15194)."""
        committed = self.life.any_of(L.committed, L.published)
        return committed & ~self.superseded

    @independent(start_using, of=(superseded, overtaken))
    def generations_are_used_until_the_next_one_operates(self) -> None:
        """003: a generation operates until "the following generation's timestamp", some time after that is committed: a node that
        learns of it in between begins to use it.
        """

    @independent(clear, of=used)
    def generations_are_cleared_whoever_used_them(self) -> None:
        """Obsolete generations go from group0 (scylladb #15163), though no node says of one that it has begun to use it: those
        that started later had no need to.
        """

    @liveness
    def committed_generations_are_published(self) -> LeadsTo:
        """001: "a new CDC generation was committed and now we need to publish it" (scylladb #15194)."""
        return leads_to(self.life == L.committed, self.life != L.committed)

    @final
    def may_rest(self) -> Bool:
        """A generation may operate for ever; what waits for a barrier may wait, too."""
        return self.life != L.committed

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_disabled(
            because="what is seen here `cdc-generations` and `cdc-publication` do, whose steps would be none without it",
        ),
    )
