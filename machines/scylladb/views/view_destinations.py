"""Where a streamed or repaired sstable goes: the destination decision of tablet-based tables.

Source: design document 000 (view-building-coordinator, 2025-12), "Staging sstables", the list under "for
tablet-based sstables the logic is", as a table. Around it: the views of a table, which are created, built and dropped
one by one, and a tablet that migrates while repairs bring rows that every built view must have in the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.views.view_coordinator import ViewStatus
from stagewright.machines.scylladb.views.view_task import COORDINATOR, TOPOLOGY, WORKER
from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    LeadsTo,
    Machine,
    OneVar,
    Profile,
    SetVar,
    States,
    Term,
    accepts,
    action,
    budget,
    choose,
    equivalent_drop,
    equivalent_replacement,
    equivalent_value,
    equivalent_weakening,
    equivalents,
    every,
    final,
    independent,
    invariant,
    known_violations,
    leads_to,
    lemma,
    liveness,
    one_of,
    only_when,
    per,
    profiles,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
    violated,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")


class Destination(Enum):
    """`sstable_destination_decision`."""

    normal_directory = auto()
    staging_directly_to_generator = auto()  # the view update generator takes it as it comes
    staging_managed_by_vbc = auto()  # a view building task is created for it


NORMAL = Destination.normal_directory
GENERATOR = Destination.staging_directly_to_generator
TASK = Destination.staging_managed_by_vbc


class Views(States):
    """How far the views of a table are, and where its sstables go, by the reason of streaming.

    A view that was dropped is none of the table's any more.

    The last two columns differ for views that are built: the text says "create view building tasks", the
    code gives the sstable to the generator. (The text also has the comments of the two staging
    decisions swapped.)
    """

    # fmt: off
    #             other   repair     repair, says the text
    none        = NORMAL, NORMAL,    NORMAL
    not_started = NORMAL, NORMAL,    NORMAL  # what builds them will read it
    started     = TASK,   TASK,      TASK    # what builds them may have been here already
    built       = NORMAL, GENERATOR, TASK    # a repair brings rows that this replica did not have
    # fmt: on

    def __init__(self, other: Destination, repair: Destination, in_the_text: Destination) -> None:
        self.other = other
        self.repair = repair
        self.in_the_text = in_the_text


class Sstable(Entity, scope=2):
    """An sstable that repair writes, with one row."""


class View(Entity, scope=2):
    """A view of the table."""


class Replica(Enum):
    """The replica that the migration leaves, and the one that it comes to."""

    leaving = auto()
    pending = auto()


class Migration(Enum):
    """The tablet's only migration."""

    ahead = auto()
    under_way = auto()
    over = auto()


class Place(Enum):
    """Where an sstable is, at a replica."""

    nowhere = auto()
    base = auto()
    with_generator = auto()  # in the staging directory, known to the generator
    with_task = auto()  # in the staging directory, with a process_staging task


@dataclass(frozen=True)
class DestinationRelease(Profile):
    """What a version does with repaired sstables when views are built, and with staging sstables that move."""

    follows_the_text: bool
    keeps_staging: bool  # file streaming leaves a staging sstable one (scylladb PR #25776)


SEED = DestinationRelease("seed", follows_the_text=True, keeps_staging=False)
SEED_KEPT = DestinationRelease("seed-kept", follows_the_text=True, keeps_staging=True)
SCYLLA_2025_4 = DestinationRelease("scylla-2025.4", follows_the_text=False, keeps_staging=True)


class ViewDestinations(Machine):
    """A tablet that gets sstables by repair, and moves, while the views of its table are built.

    Under `seed-kept`, by which the reference database decides, the copy of a staging sstable is one, too.
    """

    release = profiles(SEED, SEED_KEPT, SCYLLA_2025_4)
    drops = budget(1, doc="views that are dropped")

    exercised_at = scopes({}, {drops: 2})

    status = per(View, one_of(ViewStatus, init=ViewStatus.none))
    scanned: SetVar[View] = set_of(View)  # the tablet's build_range task for it is done
    view = per(View, set_of(Sstable))  # sstables whose rows are in it
    migration: OneVar[Migration] = one_of(Migration, init=Migration.ahead)
    place = per(Replica, per(Sstable, one_of(Place, init=Place.nowhere)))

    # -- the decision ------------------------------------------------------------------------------------

    def how_far(self) -> Term[Views]:
        """The questions of 000 in their order: no views? none started or built? any started? Else some are built."""
        none = every(~self._exists(v) for v in View)
        waiting = every(~self._exists(v) | (self.status[v] == ViewStatus.created) for v in View)
        building = some(self.status[v] == ViewStatus.started for v in View)
        begun = choose(
            waiting, Views.not_started, choose(building, Views.started, Term.of(Views.built))
        )
        return choose(none, Views.none, begun)

    def _after_repair(self) -> Term[Destination]:
        if self.release.follows_the_text:
            return self.how_far().column(lambda views: views.in_the_text)
        return self.how_far().column(lambda views: views.repair)

    def _after_migration(self, s: Term[Sstable], /) -> Term[Destination]:
        decided = self.how_far().column(lambda views: views.other)
        if self.release.keeps_staging:
            return choose(self._is_staged(Replica.leaving, s), TASK, decided)
        return decided

    # -- sstables ----------------------------------------------------------------------------------------

    @action(by=TOPOLOGY)
    def repair(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """A repair brings rows that the replica did not have, and did not give to its view replicas."""
        require(self._serves(r), "the tablet is not in transition")
        require(self._is_nowhere(s), "a new sstable")
        self.place[r][s] = self._put(self._after_repair())

    @migration.step(Migration.ahead, Migration.under_way, by=TOPOLOGY)
    def start_migration(self) -> None:
        """The tablet migrates; its tasks are aborted."""

    @action(by=TOPOLOGY, fair=WEAK)
    def stream(self, s: Term[Sstable]) -> None:
        """The pending replica gets a copy of an sstable."""
        require(self.migration == Migration.under_way, "the tablet migrates")
        require(self.place[Replica.leaving][s] != Place.nowhere, "the leaving replica has it")
        require(self.place[Replica.pending][s] == Place.nowhere, "the pending one has not")
        self.place[Replica.pending][s] = self._put(self._after_migration(s))

    @migration.step(Migration.under_way, Migration.over, by=TOPOLOGY, fair=WEAK)
    def end_migration(self) -> None:
        """Everything is streamed: the tablet is the pending replica's, and so are its tasks."""
        require(every(self._is_streamed(s) for s in Sstable), "everything is streamed")
        for s in Sstable:
            self.place[Replica.leaving][s] = Place.nowhere

    # -- views -------------------------------------------------------------------------------------------

    @action(by=CLIENT)
    def create_view(self, v: Term[View]) -> None:
        """A view is created."""
        require(self.status[v] == ViewStatus.none, "there is no such view")
        self.status[v] = ViewStatus.created

    @action(by=CLIENT, spends=drops)
    def drop_view(self, v: Term[View]) -> None:
        """A view is dropped, being built or not: its tasks go with it. Staging sstables are the table's, and so are theirs."""
        require(self._exists(v), "there is such a view")
        self.status[v] = ViewStatus.dropped
        self.scanned.discard(v)
        self.view[v] = frozenset()

    @action(by=COORDINATOR, fair=WEAK)
    def start_view(self, v: Term[View]) -> None:
        """The coordinator starts to build the view."""
        require(self.status[v] == ViewStatus.created, "the view is not started")
        self.status[v] = ViewStatus.started

    @action(by=WORKER, fair=WEAK)
    def build_range(self, r: Term[Replica], v: Term[View]) -> None:
        """The view's task is executed: it reads the replica's base directory."""
        require(self.status[v] == ViewStatus.started, "the view is being built")
        require(~self.scanned.has(v), "its task is to be executed")
        require(self._serves(r), "the tablet is not in transition")
        self.scanned.add(v)
        for s in Sstable:
            self.view[v].put(s, self.view[v].has(s) | (self.place[r][s] == Place.base))

    @action(by=COORDINATOR, fair=WEAK)
    def mark_view_built(self, v: Term[View]) -> None:
        """The view has no task left, and the table no staging task."""
        require(self.status[v] == ViewStatus.started, "the view is being built")
        require(self.scanned.has(v), "the range is built")
        waits = some(self.place[r][s] == Place.with_task for r in Replica for s in Sstable)
        require(~waits, "no staging task is left")
        self.status[v] = ViewStatus.success

    @action(by=WORKER, fair=WEAK)
    def process_staging(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """The sstable's task is executed: the views are updated, the sstable moves to the base directory."""
        require(self.place[r][s] == Place.with_task, "the sstable has a task")
        require(self._serves(r), "the tablet is not in transition")
        self._process(r, s)

    @action(by=WORKER, fair=WEAK)
    def generate(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """The generator does the same, and asks nobody."""
        only_when(not self.release.follows_the_text)
        require(self.place[r][s] == Place.with_generator, "the generator has the sstable")
        self._process(r, s)

    # -- helpers -----------------------------------------------------------------------------------------

    def _serves(self, r: Term[Replica], /) -> Bool:
        """The replica is the tablet's, and paired with view replicas."""
        before = (self.migration == Migration.ahead) & (r == Replica.leaving)
        return before | ((self.migration == Migration.over) & (r == Replica.pending))

    def _put(self, destination: Term[Destination]) -> Term[Place]:
        staged = choose(destination == GENERATOR, Place.with_generator, Term.of(Place.with_task))
        return choose(destination == NORMAL, Place.base, staged)

    def _process(self, r: Term[Replica], s: Term[Sstable]) -> None:
        """The updates of a replica that is not paired with view replicas yet are dropped."""
        self.place[r][s] = Place.base
        paired = (r == Replica.leaving) | (self.migration == Migration.over)
        for v in View:
            updated = paired & self._exists(v)
            self.view[v].put(s, self.view[v].has(s) | updated)

    def _exists(self, v: Term[View], /) -> Bool:
        return ~self.status[v].any_of(ViewStatus.none, ViewStatus.dropped)

    def _is_staged(self, r: Replica, s: Term[Sstable]) -> Bool:
        return self.place[r][s].any_of(Place.with_generator, Place.with_task)

    def _is_nowhere(self, s: Term[Sstable]) -> Bool:
        return every(self.place[r][s] == Place.nowhere for r in Replica)

    def _is_streamed(self, s: Term[Sstable]) -> Bool:
        left = self.place[Replica.leaving][s] == Place.nowhere
        return left | (self.place[Replica.pending][s] != Place.nowhere)

    # -- promises ----------------------------------------------------------------------------------------

    @accepts(repair)
    def tables_are_repaired_while_views_are_built(self, r: Term[Replica], s: Term[Sstable]) -> Bool:
        """000, Staging sstables: "Is any view started but not finished yet?": sstables come all the same."""
        return self._serves(r) & self._is_nowhere(s)

    @accepts(create_view)
    def views_are_created_at_any_time(self, v: Term[View]) -> Bool:
        """000: tasks are created when "a view/index is created", whatever is staged, and though the tablet moves."""
        return self.status[v] == ViewStatus.none

    @accepts(drop_view)
    def views_are_dropped_at_any_time(self, v: Term[View]) -> Bool:
        """000: when a view was dropped "we simply delete relevant view building tasks": nothing that is staged is waited
        for, nor the end of a migration.
        """
        return self.status[v].any_of(ViewStatus.created, ViewStatus.started, ViewStatus.success)

    def _waits(self, r: Replica, s: Term[Sstable]) -> Bool:
        """The sstable is there, and not in the base directory yet."""
        return ~self.place[r][s].any_of(Place.nowhere, Place.base)

    def _waits_anywhere(self, s: Term[Sstable]) -> Bool:
        return some(self._waits(r, s) for r in Replica)

    @invariant
    def built_views_are_complete(self, v: Term[View], s: Term[Sstable]) -> Bool:
        """A built view has every row of the base directory, whichever replica has it."""
        there = some(self.place[r][s] == Place.base for r in Replica)
        return ((self.status[v] == ViewStatus.success) & there).implies(self.view[v].has(s))

    @lemma
    def replicas_and_views_agree(self, v: Term[View], s: Term[Sstable]) -> Bool:
        """A migration's end is where the sstables are; what a scan read is in the view; none is dropped."""
        leaving, pending = self.place[Replica.leaving][s], self.place[Replica.pending][s]
        ahead = (self.migration == Migration.ahead).implies(pending == Place.nowhere)
        over = (self.migration == Migration.over).implies(leaving == Place.nowhere)
        given = (pending == Place.with_generator).implies(self.migration == Migration.over)
        scanned, built = self.scanned.has(v), self.status[v] == ViewStatus.success
        begun = scanned.implies(built | (self.status[v] == ViewStatus.started)) & built.implies(
            scanned
        )
        read = some(self.place[r][s] == Place.base for r in Replica) & scanned
        has = self.view[v].has(s)
        dropped = (self.status[v] == ViewStatus.dropped).implies(~scanned & ~has)
        begun = begun & dropped
        return ahead & over & given & begun & read.implies(has) & has.implies(~self._is_nowhere(s))

    @step_property
    def processed_sstables_are_in_the_views(
        self, after: Self, v: Term[View], s: Term[Sstable]
    ) -> Bool:
        """000, process_staging: "generate view updates and move to base directory": a task leaves neither to the generator.

        A view that is not started has not read the base directory yet: it finds the rows there. One that is dropped
        needs none.
        """
        processed = some(self._waits(r, s) & (after.place[r][s] == Place.base) for r in Replica)
        handed_on = some(
            (self.place[r][s] == Place.with_task) & (after.place[r][s] == Place.with_generator)
            for r in Replica
        )
        begun = after.status[v].any_of(ViewStatus.started, ViewStatus.success)
        updated = (processed & begun).implies(after.view[v].has(s))
        return updated & ~handed_on

    @step_property
    def tasks_wait_for_the_migration(self, after: Self, s: Term[Sstable]) -> Bool:
        """000: no view updates "prematurely, before the writes are directed to the new replica" (#19149).

        Rows need that of the pending replica only; what the leaving one does meanwhile does no harm. With the last
        view, what is staged may go to the base directory at once: there is nothing to update.
        """
        task = some(
            (self.place[r][s] == Place.with_task) & (after.place[r][s] == Place.base)
            for r in Replica
        )
        updated = some(after.status[v].any_of(ViewStatus.started, ViewStatus.success) for v in View)
        return (task & updated).implies(self.migration != Migration.under_way)

    @step_property
    def sstables_without_need_are_not_staged(self, after: Self, s: Term[Sstable]) -> Bool:
        """000: "use normal directory" where there are no views, or none any more, none is started, or all have the rows."""
        staged = ~self._waits_anywhere(s) & after._waits_anywhere(s)
        started = some(self.status[v] == ViewStatus.started for v in View)
        lacking = some((self.status[v] == ViewStatus.success) & ~self.view[v].has(s) for v in View)
        return staged.implies(started | lacking)

    @step_property
    def sstables_have_a_task_while_a_view_is_built(self, after: Self, s: Term[Sstable]) -> Bool:
        """000: "Is any view started but not finished yet? YES: create view building tasks for this sstable", whatever
        other views are. Rows do not need it where a tablet moves: they are the text's words.
        """
        comes = some(
            (self.place[r][s] == Place.nowhere)
            & ~after.place[r][s].any_of(Place.nowhere, Place.with_task)
            for r in Replica
        )
        return comes.implies(every(self.status[v] != ViewStatus.started for v in View))

    @sometimes
    def sstables_are_staged_while_a_view_is_built(self, v: Term[View], s: Term[Sstable]) -> Bool:
        """000, the same: what a repair brings meanwhile waits in staging."""
        building = self.status[v] == ViewStatus.started
        return building & (self.place[Replica.leaving][s] == Place.with_task)

    @accepts(start_migration)
    def tablets_move_at_any_time(self) -> Bool:
        """000, "Tablet operations": tasks are aborted when a tablet moves, which does not wait for them."""
        return self.migration == Migration.ahead

    @accepts(stream)
    def sstables_are_streamed_whatever_waits_for_them(self, s: Term[Sstable]) -> Bool:
        """000, the same: a replica gets its sstables, staged or not, whatever is built of them."""
        there = self.place[Replica.leaving][s] != Place.nowhere
        new = self.place[Replica.pending][s] == Place.nowhere
        return (self.migration == Migration.under_way) & there & new

    @accepts(end_migration)
    def migrations_end_whatever_waits_for_them(self) -> Bool:
        """000, the same: "new tasks are created at the end" of it, which waits for rows, and for no view."""
        streamed = every(
            (self.place[Replica.leaving][s] != Place.nowhere).implies(
                self.place[Replica.pending][s] != Place.nowhere
            )
            for s in Sstable
        )
        return (self.migration == Migration.under_way) & streamed

    @accepts(process_staging)
    def sstables_are_processed_when_their_ranges_are_built(
        self, r: Term[Replica], s: Term[Sstable]
    ) -> Bool:
        """000: "at some point" the coordinator "will decide to process it": after the tablet's ranges at most, and not
        when another view is started.
        """
        ranges = every(
            (self.status[v] == ViewStatus.started).implies(self.scanned.has(v)) for v in View
        )
        return self._serves(r) & (self.place[r][s] == Place.with_task) & ranges

    @accepts(start_view)
    def views_are_started_at_any_time(self, v: Term[View]) -> Bool:
        """000: a task "is stored in group0 state … to be processed in the future", though the tablet moves or rows are staged."""
        return self.status[v] == ViewStatus.created

    @accepts(build_range)
    def ranges_are_built_whatever_is_staged(self, r: Term[Replica], v: Term[View]) -> Bool:
        """000: build_range and process_staging are tasks of their own: no range waits for a staging sstable."""
        building = (self.status[v] == ViewStatus.started) & ~self.scanned.has(v)
        return building & self._serves(r)

    @accepts(mark_view_built)
    def views_are_built_while_the_tablet_moves(self, v: Term[View]) -> Bool:
        """000: "Once the view is built, an entry in system.built_views is created": it waits for tasks alone."""
        building = (self.status[v] == ViewStatus.started) & self.scanned.has(v)
        return building & every(~self._waits_anywhere(s) for s in Sstable)

    @step_property
    def views_are_built_step_by_step(self, after: Self, v: Term[View]) -> Bool:
        """A view is created, then started, then built; when it is, no row waits for a task that it needs. It may be dropped
        at each of them, and is not built after that.
        """
        now, then = self.status[v], after.status[v]
        waits = some(self.place[r][s] == Place.with_task for r in Replica for s in Sstable)
        dropped, none = ViewStatus.dropped, ViewStatus.none
        return (
            (now == none).implies(then.any_of(none, ViewStatus.created))
            & (now == ViewStatus.created).implies(
                then.any_of(ViewStatus.created, ViewStatus.started, dropped)
            )
            & (now == ViewStatus.started).implies(
                then.any_of(ViewStatus.started, ViewStatus.success, dropped)
            )
            & (now == ViewStatus.success).implies(then.any_of(ViewStatus.success, dropped))
            & (now == dropped).implies(then == dropped)
            & ((now != then) & (then == ViewStatus.success)).implies(~waits)
        )

    @step_property
    def ranges_are_built_once(self, after: Self, v: Term[View]) -> Bool:
        """000: build_range tasks are removed, "permanently marking them as finished": where the tablet moves, or another view is
        dropped, a range that was built is not read again.
        """
        goes = (self.status[v] != ViewStatus.dropped) & (after.status[v] == ViewStatus.dropped)
        return self.scanned.has(v).implies(after.scanned.has(v) | goes)

    @lemma
    @sometimes
    def views_are_built_one_by_one(self, after: Self, v: Term[View]) -> Bool:
        """000: "Once the view is built, an entry in system.built_views is created": while another one has a task. A
        lemma: no view waits for another one's.
        """
        built = (self.status[v] == ViewStatus.started) & (after.status[v] == ViewStatus.success)
        waits = some((self.status[u] == ViewStatus.started) & ~self.scanned.has(u) for u in View)
        return built & waits

    @sometimes
    def staging_moves_with_its_tablet(self, v: Term[View], s: Term[Sstable]) -> Bool:
        """A row comes by repair when a view is built, and waits for its task on the replica that it moved to."""
        there = self.place[Replica.pending][s] == Place.with_task
        return (self.migration == Migration.over) & there & (self.status[v] == ViewStatus.success)

    @step_property
    def nothing_is_lost_by_a_migration(self, after: Self, s: Term[Sstable]) -> Bool:
        """001: the new replica has what the old one had."""
        return after._is_nowhere(s).implies(self._is_nowhere(s))

    @independent(generate, of=(status, scanned, view, migration))
    def generators_wait_for_no_view(self) -> None:
        """000, "staging_directly_to_generator": no task is created for the sstable, and so nobody waits until a view is built,
        or the tablet has moved, to have it executed.
        """

    @final
    def nothing_is_staged(self) -> Bool:
        """A tablet may stay as it is, when no sstable waits."""
        waits = some(self._waits_anywhere(s) for s in Sstable)
        ended = (ViewStatus.none, ViewStatus.success, ViewStatus.dropped)
        done = every(self.status[v].any_of(*ended) for v in View)
        return ~waits & done & (self.migration != Migration.under_way)

    @lemma
    @liveness
    def rows_reach_built_views(self, v: Term[View], s: Term[Sstable]) -> LeadsTo:
        """000: view updates are generated from "all staging sstables", though the tablet moves meanwhile. A lemma:
        staging sstables are processed, a migration loses none, and a built view, which stays built unless it is dropped,
        has every row of the base directory.
        """
        lacks = (self.status[v] == ViewStatus.success) & ~self._is_nowhere(s)
        dropped = self.status[v] == ViewStatus.dropped
        return leads_to(lacks, self.view[v].has(s) | dropped)

    @liveness
    def staging_sstables_are_processed(self, s: Term[Sstable]) -> LeadsTo:
        """Every staging sstable is processed in the end, also when the views for which it waits are dropped."""
        return leads_to(self._waits_anywhere(s), ~self._waits_anywhere(s))

    @liveness
    def views_are_built(self, v: Term[View]) -> LeadsTo:
        """Every view is built in the end, unless it is dropped, and whichever other one is."""
        ended = self.status[v].any_of(ViewStatus.success, ViewStatus.dropped)
        return leads_to(self.status[v] != ViewStatus.none, ended)

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            built_views_are_complete,
            rows_reach_built_views,
            replicas_and_views_agree,
            under=SEED,
            because='a repaired sstable waits in staging, the tablet migrates, and as "all views built" and the reason '
            "is not repair its copy goes to the normal directory: the new task on the destination finds nothing, and "
            "the row never reaches the view",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_replacement(
            _process,
            "created for none",
            because="a view that is not started finds those rows in the base directory",
        ),
        equivalent_value(
            Views.built,
            lambda views: views.repair,
            TASK,
            because="the text has it so: a task brings the rows to the view as the generator does",
        ),
        equivalent_replacement(
            repair,
            "with_task for with_generator",
            because="the text has it so: a task brings the rows to the view as the generator does",
        ),
        equivalent_drop(
            end_migration,
            "migration is under_way",
            because="a tablet without sstables may as well move at once",
        ),
        equivalent_drop(
            build_range, "its task is to be executed", because="a task may be executed again"
        ),
        equivalent_drop(
            mark_view_built,
            "the view is being built",
            because="where the range is built, the view is started or built",
        ),
        equivalent_weakening(
            drop_view, "there is such a view", because="what is dropped can be dropped again"
        ),
        equivalent_replacement(
            drop_view,
            "there is such a view: none for dropped",
            because="what is dropped can be dropped again",
        ),
        equivalent_weakening(
            process_staging,
            "the tablet is not in transition",
            because="at rest only the tablet's replica has sstables",
        ),
    )
