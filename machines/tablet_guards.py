"""Guards with which requests hold a tablet while tablets are split, merged and migrated around them.

Source: ScyllaDB's `tablet_metadata_guard` and its use by lightweight transactions (2025). A guard keeps an
effective replication map, which barriers wait for; as long as its tablet does not change it takes the newest
map instead, so that transitions of other tablets need not wait. How a resize is prepared is in
`tablet_resize.py`, how data moves in `tablet_cluster.py`.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.machines.tablet_resize import Half, Layout
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
    action,
    budget,
    choose,
    every,
    final,
    flag,
    initially,
    invariant,
    leads_to,
    liveness,
    one_of,
    optional,
    per,
    record,
    require,
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


class TabletGuards(Machine):
    """Requests under guards, while the tablets of their table change."""

    resizes = budget(2, doc="splits and merges")
    migrations = budget(1, doc="migrations")

    layout: OneVar[Layout] = one_of(Layout)
    migrating: OptionalVar[TabletId] = optional(TabletId)
    drained: FlagVar = flag()  # the barrier of the migration has passed
    view = per(Node, record(View))
    guard = per(Node, record(Guard))

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

    @action(fair=WEAK)
    def end(self, n: Term[Node]) -> None:
        """The request is done, or aborted, and lets go of its guard."""
        require(self.guard[n].key.is_some(), "a request is going on")
        self.guard[n].key = None
        self.guard[n].tablet = None
        self.guard[n].layout = Layout.one_tablet
        self.guard[n].outdated = False
        self.guard[n].transition = False

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """A node applies what is committed."""
        require(~self._is_current(n), "the node is behind")
        self.view[n].layout = self.layout
        self.view[n].migrating = self.migrating

    # -- the topology coordinator ------------------------------------------------------------------------------

    @layout.step(Layout.one_tablet, Layout.two_tablets, by=COORDINATOR, spends=resizes)
    def split(self) -> None:
        """The table gets two tablets: what was tablet 0 is now the ranges of two."""
        self._resize()

    @layout.step(Layout.two_tablets, Layout.one_tablet, by=COORDINATOR, spends=resizes)
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
        require(self.migrating.is_some() & ~self.drained, "a migration waits for its barrier")
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

    # -- what recurs -------------------------------------------------------------------------------------------

    def _resize(self) -> None:
        require(self.migrating.is_none(), "no tablet migrates")
        self._outdate_guards()

    def _outdate_guards(self) -> None:
        """New token metadata: whoever runs has an older map, and knows of no transition in the new one."""
        for n in Node:
            self.guard[n].outdated = self.guard[n].key.is_some()
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

    def _exists(self, t: Term[TabletId]) -> Bool:
        return (t == TabletId.t0) | (self.layout == Layout.two_tablets)

    # -- promises ----------------------------------------------------------------------------------------------

    @invariant
    def migrations_wait_for_requests_of_their_tablet(self, n: Term[Node]) -> Bool:
        """Once the barrier of a migration has passed, no request uses the replicas of before alone: two
        transactions on one key would not meet (scylladb #26437).
        """
        guard = self.guard[n]
        affected = self.migrating == self._tablet_of(guard.key, self.layout)
        running = guard.key.is_some() & self.drained
        return (running & affected).implies(guard.transition)

    @invariant
    def a_tablet_that_migrates_exists(self) -> Bool:
        """A migration and a resize exclude each other: the id of the tablet keeps its meaning."""
        second = self.migrating == TabletId.t1
        return second.implies(self.layout == Layout.two_tablets)

    @invariant
    def nothing_is_remembered_of_a_request(self, n: Term[Node]) -> Bool:
        """A node that coordinates nothing holds no guard."""
        guard = self.guard[n]
        held = guard.tablet.is_some() | guard.outdated | guard.transition
        return guard.key.is_none().implies(~held & (guard.layout == Layout.one_tablet))

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
