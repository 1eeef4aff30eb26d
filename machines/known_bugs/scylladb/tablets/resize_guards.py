"""Mistakes put back into `ResizeGuards`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets import resize_guards
from stagewright.machines.scylladb.tablets.resize_guards import (
    CLIENT,
    COORDINATOR,
    Node,
    ResizeGuards,
    TabletId,
)
from stagewright.machines.scylladb.tablets.resize_layout import Half, Layout
from stagewright.spec import Bool, Fairness, Term, action, choose, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

NOBODY_WAITS = (
    'design document 001, write_both_read_old: "Writes are going to both new and old replicas"'
)
INDEPENDENTLY = 'design document 001: "Tablets are migrated in parallel and independently"'
WEAK = Fairness.WEAK


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "001-249",
    "design document 001: requests use the replicas that the stage names",
    breaks=ResizeGuards.tablets_change_under_requests,
    budgets={ResizeGuards.migrations: 0},
)
class ResizesAreGivenUpUnderRequests(ResizeGuards):
    """A split that found a guard in use was given up without a word: of a busy table no tablet was ever split."""

    @action(by=COORDINATOR, spends=ResizeGuards.resizes)
    def split(self) -> None:
        """The table gets two tablets, if no request runs."""
        require(self.layout == Layout.one_tablet, "the table has one tablet")
        self._resize()
        busy = some(self.guard[n].key.is_some() for n in Node)
        self.layout = choose(busy, Layout.one_tablet, Layout.two_tablets)


@known_bug(
    "001-364",
    INDEPENDENTLY,
    breaks=ResizeGuards.requests_are_aborted_for_their_own_tablet,
)
class EveryOlderRequestIsAborted(ResizeGuards):
    """A barrier had every request aborted whose map was not the newest, whichever tablet it was for."""

    def _its_tablet_changes(self, n: Term[resize_guards.Node]) -> None:
        require(self._is_current(n), "the node has learned of the newest")


@known_bug(
    "T21",
    "scylladb #26437",
    breaks=(
        ResizeGuards.migrations_wait_for_requests_of_their_tablet,
        ResizeGuards.the_newest_map_has_the_tablet_of_a_guard,
    ),
    sizes={Node: 1},
    budgets={ResizeGuards.resizes: 1},
)
class GuardOutlivesItsTabletMap(ResizeGuards):
    """A guard goes on to take the newest map after a split or merge, by a tablet id of the old one.

    The id then names another tablet, and a migration of the right one does not wait for the request.
    """

    def _names_the_same_tablet(self, n: Term[Node]) -> Bool:
        return super()._names_the_same_tablet(n) | True


@known_bug(
    "001-509",
    'design document 001: "make sure that no reads that started before this point exist"',
    breaks=ResizeGuards.requests_go_on_while_tablets_change,
)
class WhoLearnsDropsItsRequest(ResizeGuards):
    """A node that applied a commit dropped what it coordinated, so that no barrier had anything to wait for."""

    @action(fair=WEAK)
    def learn(self, n: Term[Node]) -> None:
        """A node applies what is committed, and ends its request."""
        super().learn(n)
        self._release(n)


@known_bug(
    "001-510",
    INDEPENDENTLY,
    breaks=ResizeGuards.requests_go_on_while_tablets_change,
)
class TheEndOfAMigrationEndsItsRequests(ResizeGuards):
    """A request that knew of a migration, and used both replica sets, was ended with it, and its client told of an
    error.
    """

    @action(by=COORDINATOR, fair=WEAK)
    def finish_migration(self) -> None:
        """The tablet has new replicas: whoever used the old ones too is cut off."""
        require(self.drained, "the barrier has passed")
        self.migrating = None
        self.drained = False
        for n in Node:
            guard = self.guard[n]
            knows = guard.transition
            guard.outdated = guard.key.is_some() & ~knows
            guard.key = choose(knows, None, guard.key)
            guard.tablet = choose(knows, None, guard.tablet)
            guard.layout = choose(knows, Layout.one_tablet, guard.layout)
            guard.transition = False


@known_bug(
    "001-712",
    "design document 001: the stage says which replicas are used by the coordinator for reads and writes",
    breaks=ResizeGuards.requests_are_aborted_for_their_own_tablet,
)
class WhoUsesBothReplicaSetsIsAborted(ResizeGuards):
    """A request was aborted because its tablet migrates, also one that had begun under the migration and knew of it."""

    @action(fair=WEAK)
    def abort(self, n: Term[Node]) -> None:
        """A request whose tablet migrates, or is resized, is aborted."""
        guard = self.guard[n]
        changes = guard.outdated | (self.migrating == guard.tablet)
        require(guard.key.is_some() & changes, "its tablet changes")
        self._its_tablet_changes(n)
        self._end_with_an_error(n)


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "001-187",
    NOBODY_WAITS,
    breaks=ResizeGuards.requests_are_taken_while_tablets_change,
)
class RequestsWaitForMigrations(ResizeGuards):
    """No request began while its tablet migrated."""

    @action(by=CLIENT)
    def begin(self, n: Term[Node], key: Term[Half]) -> None:
        """A node begins a request, unless a tablet migrates."""
        super().begin(n, key)
        require(self.migrating.is_none(), "no tablet migrates")


@known_bug(
    "001-188",
    "design document 001, in the releases: a resize waits for no request; its guard is refreshed or aborted",
    breaks=ResizeGuards.only_barriers_wait_for_requests,
)
class ResizesWaitForRequests(ResizeGuards):
    """A table was split or merged when nobody used it."""

    def _resize(self) -> None:
        super()._resize()
        require(every(self.guard[n].key.is_none() for n in Node), "nobody uses it")


@known_bug(
    "001-189",
    "design document 001: a migration begins, and its barriers wait for what is older",
    breaks=ResizeGuards.only_barriers_wait_for_requests,
)
class MigrationsWaitForRequests(ResizeGuards):
    """A tablet began to migrate when no request was under way, of any tablet."""

    @action(by=COORDINATOR, spends=ResizeGuards.migrations)
    def start_migration(self, t: Term[TabletId]) -> None:
        """A tablet that nobody uses begins to migrate."""
        require(every(self.guard[n].key.is_none() for n in Node), "nobody uses it")
        super().start_migration(t)


@known_bug("001-333", INDEPENDENTLY, breaks=ResizeGuards.requests_outlive_changes_of_other_tablets)
class GuardsAreOfOneMap(ResizeGuards):
    """A guard was as good as its map: when any tablet of the table changed, all requests began anew, and no guard was refreshed."""

    @action(fair=WEAK)
    def refresh(self, n: Term[Node]) -> None:
        """No guard takes another map."""
        require(self.guard[n].outdated & self.guard[n].key.is_none(), "nobody holds it")

    @action(fair=WEAK)
    def begin_anew(self, n: Term[Node]) -> None:
        """A request whose map is not the newest lets go of its guard."""
        require(self.guard[n].outdated, "its map is not the newest")
        require(self._is_current(n), "the node has learned of the newest")
        self._release(n)


@known_bug(
    "001-690",
    'design document 001: "make sure that no reads that started before this point exist"',
    breaks=ResizeGuards.requests_go_on_while_tablets_change,
)
class ATabletHasOneGuard(ResizeGuards):
    """The requests of a tablet shared one guard: the first that ended let go of it for all, and nothing waited for the rest."""

    @action(by=CLIENT)
    def end(self, n: Term[Node]) -> None:
        """The request is done, and the guard of its tablet is gone."""
        require(self.guard[n].key.is_some(), "a request is going on")
        tablet = self.guard[n].tablet
        for m in Node:
            guard = self.guard[m]
            shared = guard.tablet == tablet
            guard.key = choose(shared, None, guard.key)
            guard.tablet = choose(shared, None, guard.tablet)
            guard.layout = choose(shared, Layout.one_tablet, guard.layout)
            guard.outdated = guard.outdated & ~shared
            guard.transition = guard.transition & ~shared


@known_bug(
    "001-707",
    'design document 001: a plan is persisted "by moving tablets into transitional states"',
    breaks=ResizeGuards.migrations_begin_whatever_nodes_know,
)
class MigrationsWaitUntilAllKnowTheResize(ResizeGuards):
    """After a split no tablet began to migrate before every node had learned of it: one that was slow held up the balancer."""

    @action(by=COORDINATOR, spends=ResizeGuards.migrations)
    def start_migration(self, t: Term[TabletId]) -> None:
        """A tablet begins to migrate that all nodes know."""
        require(every(self._is_current(n) for n in Node), "every node has learned of the tablets")
        super().start_migration(t)


BUGS = known_bugs_in(globals())
