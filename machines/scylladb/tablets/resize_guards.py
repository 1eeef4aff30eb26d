"""Guards with which requests hold a tablet while tablets are split, merged and migrated around them.

Source: ScyllaDB's `tablet_metadata_guard` and its use by lightweight transactions (2025). A guard keeps an
effective replication map, which barriers wait for; as long as its tablet does not change it takes the newest
map instead, so that transitions of other tablets need not wait. How a resize is prepared is in
`tablet_resize.py`, how data moves in `tablet.py`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.tablets.resize_layout import Half, Layout
from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Maybe,
    OneVar,
    OptionalVar,
    Record,
    Term,
    accepts,
    action,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    every,
    final,
    flag,
    independent,
    initially,
    invariant,
    leads_to,
    lemma,
    liveness,
    one_of,
    optional,
    per,
    record,
    require,
    scopes,
    some,
    sometimes,
    step_property,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")
COORDINATOR = Actor("topology coordinator")


class Node(Entity, scope=2):
    """A node that coordinates requests."""


class TabletId(Enum):
    """A tablet's place in the tablet map: what it names depends on how many tablets there are."""

    t0 = auto()
    t1 = auto()


class View(Record):
    """What a node has learned."""

    layout = one_of(Layout)
    migrating = optional(TabletId)


class Guard(Record):
    """The request that a node coordinates, if any, and what its guard knows."""

    key = optional(Half)  # where the request's partition key falls
    tablet = optional(TabletId)
    layout = one_of(Layout, init=Layout.one_tablet)  # when the guard was taken
    outdated = flag()  # its effective replication map is not the newest: barriers wait for it
    transition = flag()  # the request knows that its tablet migrates, and uses both replica sets


class ResizeGuards(Machine):
    """Requests under guards, while the tablets of their table change."""

    resizes = budget(2, doc="splits and merges")
    migrations = budget(1, doc="migrations")

    exercised_at = scopes({}, {migrations: 2, resizes: 1})

    layout: OneVar[Layout] = one_of(Layout)
    migrating: OptionalVar[TabletId] = optional(TabletId)
    drained: FlagVar = flag()  # the barrier of the migration has passed
    view = per(Node, record(View))
    guard = per(Node, record(Guard))
    cut_off: FlagVar = flag()  # a request was aborted whose tablet, or map, is what it was

    @initially
    def nodes_know(self, n: Term[Node]) -> Bool:
        """Every node knows how many tablets there are."""
        return self.view[n].layout == self.layout

    # -- requests ----------------------------------------------------------------------------------------------

    @action(by=CLIENT)
    def begin(self, n: Term[Node], key: Term[Half]) -> None:
        """A node begins a request: it takes a guard for the tablet of the key, by the map that it has."""
        require(self.guard[n].key.is_none(), "the node is free")
        view = self.view[n]
        tablet = self._tablet_of(key, view.layout)
        self.guard[n].key = key
        self.guard[n].tablet = tablet
        self.guard[n].layout = view.layout
        self.guard[n].outdated = ~self._is_current(n)
        self.guard[n].transition = view.migrating == tablet

    @action(fair=WEAK)
    def refresh(self, n: Term[Node]) -> None:
        """The guard takes the newest effective replication map: for its tablet nothing has changed."""
        require(self.guard[n].outdated, "its map is not the newest")
        require(self._is_current(n), "the node has learned of the newest")
        require(self._names_the_same_tablet(n), "its tablet is still the same")
        require(self.view[n].migrating != self.guard[n].tablet, "its tablet does not migrate")
        self.guard[n].outdated = False

    @action(by=CLIENT)
    def end(self, n: Term[Node]) -> None:
        """The request is done, maybe never, and lets go of its guard."""
        require(self.guard[n].key.is_some(), "a request is going on")
        self._release(n)

    @action(fair=WEAK)
    def abort(self, n: Term[Node]) -> None:
        """A request whose tablet changes is aborted: what the change waits for comes to an end."""
        require(self.guard[n].outdated, "its map is not the newest")
        self._its_tablet_changes(n)
        self._end_with_an_error(n)

    def _end_with_an_error(self, n: Term[Node]) -> None:
        view, guard = self.view[n], self.guard[n]
        same = (view.layout == guard.layout) & (view.migrating != guard.tablet)
        self.cut_off = self.cut_off | same | ~guard.outdated
        self._release(n)

    def _its_tablet_changes(self, n: Term[Node]) -> None:
        migrates = self.view[n].migrating == self.guard[n].tablet
        require(migrates | ~self._names_the_same_tablet(n), "its tablet is not the same")

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """A node applies what is committed."""
        require(~self._is_current(n), "the node is behind")
        self.view[n].layout = self.layout
        self.view[n].migrating = self.migrating

    # -- the topology coordinator ------------------------------------------------------------------------------

    @layout.step(
        Layout.one_tablet,
        Layout.two_tablets,
        by=COORDINATOR,
        spends=resizes,
    )
    def split(self) -> None:
        """The table gets two tablets: what was tablet 0 is now the ranges of two."""
        self._resize()

    @layout.step(
        Layout.two_tablets,
        Layout.one_tablet,
        by=COORDINATOR,
        spends=resizes,
    )
    def merge(self) -> None:
        """The table gets one tablet, with the ranges of both."""
        self._resize()

    @action(by=COORDINATOR, spends=migrations)
    def start_migration(self, t: Term[TabletId]) -> None:
        """A tablet begins to migrate."""
        require(self.migrating.is_none(), "no tablet migrates")
        require(self._exists(t), "there is such a tablet")
        self.migrating = t
        self._outdate_guards()

    @action(by=COORDINATOR, fair=WEAK)
    def pass_barrier(self) -> None:
        """Barrier: every node has learned of the migration, and no request has an older map."""
        require(self.migrating.is_some(), "a migration waits for its barrier")
        require(every(self._is_current(n) for n in Node), "every node has learned of it")
        require(every(~self.guard[n].outdated for n in Node), "no guard has an older map")
        self.drained = True

    @action(by=COORDINATOR, fair=WEAK)
    def finish_migration(self) -> None:
        """The tablet has new replicas."""
        require(self.drained, "the barrier has passed")
        self.migrating = None
        self.drained = False
        self._outdate_guards()
        for n in Node:
            self.guard[n].transition = False

    # -- helpers -----------------------------------------------------------------------------------------------

    def _resize(self) -> None:
        require(self.migrating.is_none(), "no tablet migrates")
        self._outdate_guards()

    def _outdate_guards(self) -> None:
        """There is new token metadata: every request that runs has an older map."""
        for n in Node:
            self.guard[n].outdated = self.guard[n].key.is_some()

    def _release(self, n: Term[Node]) -> None:
        self.guard[n].key = None
        self.guard[n].tablet = None
        self.guard[n].layout = Layout.one_tablet
        self.guard[n].outdated = False
        self.guard[n].transition = False

    def _is_current(self, n: Term[Node]) -> Bool:
        view = self.view[n]
        return (view.layout == self.layout) & (view.migrating == self.migrating)

    def _names_the_same_tablet(self, n: Term[Node]) -> Bool:
        """A tablet id is good for maps with as many tablets as that from which it was taken."""
        return self.view[n].layout == self.guard[n].layout

    def _tablet_of(self, key: Term[Half] | Maybe[Half], layout: Term[Layout]) -> Term[TabletId]:
        second = (key == Half.right) & (layout == Layout.two_tablets)
        return choose(second, TabletId.t1, Term.of(TabletId.t0))

    def _is_affected(self, n: Term[Node]) -> Bool:
        """The key of the node's request is in the tablet that migrates."""
        key = self.guard[n].key
        return key.is_some() & (self.migrating == self._tablet_of(key, self.layout))

    def _exists(self, t: Term[TabletId]) -> Bool:
        return (t == TabletId.t0) | (self.layout == Layout.two_tablets)

    # -- promises ----------------------------------------------------------------------------------------------

    @accepts(begin)
    def requests_are_taken_while_tablets_change(self, n: Term[Node]) -> Bool:
        """001: requests use the replicas that the stage names; they wait for no migration, and no resize."""
        return self.guard[n].key.is_none()

    @accepts(end)
    def requests_end_while_tablets_change(self, n: Term[Node]) -> Bool:
        """Nor does one that is done."""
        return self.guard[n].key.is_some()

    @accepts(start_migration)
    def migrations_begin_whatever_nodes_know(self, t: Term[TabletId]) -> Bool:
        """001: a plan is persisted "by moving tablets into transitional states": whichever tablet there is, as soon as none
        migrates; that nodes learn of it, and of what was before, its barrier waits for.
        """
        there = (t == TabletId.t0) | (self.layout == Layout.two_tablets)
        return self.migrating.is_none() & there

    @accepts(refresh)
    def requests_outlive_changes_of_other_tablets(self, n: Term[Node]) -> Bool:
        """001: "Tablets are migrated in parallel and independently": to a request whose own tablet stays as it is nothing
        happens: its guard takes the newest map, and its client hears of no error.
        """
        guard, view = self.guard[n], self.view[n]
        knows = (view.layout == self.layout) & (view.migrating == self.migrating)
        stays = (view.layout == guard.layout) & (view.migrating != guard.tablet)
        return guard.outdated & knows & stays

    @invariant
    def requests_are_aborted_for_their_own_tablet(self) -> Bool:
        """001, "independently", as clients see it: none gets an error because another tablet migrates; nor because its own
        does, once its map says so and it uses both replica sets.
        """
        return ~self.cut_off

    @step_property
    def requests_go_on_while_tablets_change(
        self, after: Self, n: Term[Node], key: Term[Half]
    ) -> Bool:
        """001: "make sure that no reads that started before this point exist": what began before is waited for: no
        commit, no barrier and nothing that a node learns ends it, nor does the end of another node's request.
        """
        commits = (self.layout != after.layout) | (self.migrating != after.migrating)
        learns = some(self.view[m] != after.view[m] for m in Node)
        others = some((m != n) & (self.guard[m].key != after.guard[m].key) for m in Node)
        changes = commits | (self.drained != after.drained) | learns | others
        return (changes & (self.guard[n].key == key)).implies(after.guard[n].key == key)

    @independent(split, merge, start_migration, finish_migration, learn, of=guard)
    def only_barriers_wait_for_requests(self) -> None:
        """001: a migration begins at once, and its barrier waits for requests that began before it; guards that a
        resize makes outdated are refreshed or aborted. No commit waits for one, and no node that learns of it.
        """

    @sometimes(at={resizes: 1, migrations: 0})
    def tablets_change_under_requests(self, after: Self, layout: Term[Layout]) -> Bool:
        """001: requests use the replicas that the stage names: no request that runs holds up a split, nor a merge, of the
        tablets of its table.
        """
        changes = (self.layout == layout) & (after.layout != layout)
        runs = some((self.guard[n].layout == layout) & self.guard[n].key.is_some() for n in Node)
        return changes & runs

    @sometimes
    def tablets_migrate_under_requests(self, n: Term[Node]) -> Bool:
        """001: the stage "affects which replicas are used by the coordinator for reads and writes": a migration waits for what
        began before it, and requests that have begun since go on under it.
        """
        return self.drained & self._is_affected(n)

    @invariant
    def migrations_wait_for_requests_of_their_tablet(self, n: Term[Node]) -> Bool:
        """Once the barrier of a migration has passed, no request uses the replicas of before alone: two
        transactions on one key would not meet (scylladb #26437).
        """
        return (self.drained & self._is_affected(n)).implies(self.guard[n].transition)

    @step_property
    def replicas_change_after_older_requests(self, after: Self, n: Term[Node]) -> Bool:
        """The same when the migration ends: nobody uses the replicas of before alone."""
        ends = self.migrating.is_some() & after.migrating.is_none()
        return (ends & self._is_affected(n)).implies(self.guard[n].transition)

    @invariant
    def the_newest_map_has_the_tablet_of_a_guard(self, n: Term[Node]) -> Bool:
        """A tablet id means something only in maps with as many tablets as the one it is from: a guard whose
        map is the newest is for a tablet of the newest map (scylladb #26437).
        """
        guard = self.guard[n]
        newest = guard.key.is_some() & ~guard.outdated
        return newest.implies(guard.layout == self.layout)

    @invariant
    def a_tablet_that_migrates_exists(self) -> Bool:
        """A migration and a resize exclude each other: the id of the tablet keeps its meaning."""
        second = self.migrating == TabletId.t1
        return second.implies(self.layout == Layout.two_tablets)

    @step_property
    def a_tablet_that_migrates_keeps_its_id(self, after: Self) -> Bool:
        """Resize finalization "does not overlap with tablet transitions" (scylladb PR #22148)."""
        return self.migrating.is_some().implies(after.layout == self.layout)

    @invariant
    def nothing_is_remembered_of_a_request(self, n: Term[Node]) -> Bool:
        """A node that coordinates nothing holds no guard."""
        guard = self.guard[n]
        held = guard.tablet.is_some() | guard.outdated | guard.transition
        return guard.key.is_none().implies(~held & (guard.layout == Layout.one_tablet))

    @lemma
    def who_has_the_newest_map_knows_of_the_migration(self, n: Term[Node]) -> Bool:
        """It also takes the tablet for what the newest map calls so."""
        guard = self.guard[n]
        knows = self._is_affected(n) & ~guard.outdated
        named = guard.tablet == self._tablet_of(guard.key, guard.layout)
        return knows.implies(guard.transition) & guard.key.is_some().implies(named)

    @lemma
    def everybody_has_learned_of_a_drained_migration(self, n: Term[Node]) -> Bool:
        """Until it ends nothing new is committed."""
        return self.drained.implies(self.migrating.is_some() & self._is_current(n))

    @liveness
    def migrations_end(self) -> LeadsTo:
        """Requests do not hold up a migration for ever, however many there are."""
        return leads_to(self.migrating.is_some(), self.migrating.is_none())

    @liveness
    def guards_are_not_held_for_ever(self, n: Term[Node]) -> LeadsTo:
        """What waits for a guard goes on in the end."""
        return leads_to(self.guard[n].outdated, ~self.guard[n].outdated)

    @final
    def nothing_goes_on(self) -> Bool:
        """Tablets may stay as they are."""
        return self.migrating.is_none()

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(_end_with_an_error, cut_off, because="it notes what must not happen"),
        equivalent_drop(
            begin, "the node is free", because="a request that gives way to another one has ended"
        ),
        equivalent_drop(refresh, "its map is not the newest", because="otherwise nothing happens"),
        equivalent_drop(end, "a request is going on", because="otherwise nothing happens"),
        equivalent_drop(learn, "the node is behind", because="otherwise nothing happens"),
        equivalent_drop(
            split, "layout is one_tablet", because="a table that stays as it is does no harm"
        ),
        equivalent_drop(
            merge, "layout is two_tablets", because="a table that stays as it is does no harm"
        ),
        equivalent_loss(
            start_migration, migrating, because="a migration that does not begin does no harm"
        ),
        equivalent_loss(
            finish_migration,
            Guard.outdated,
            Guard.transition,
            because="the next migration is new to all that run when it starts",
        ),
    )
