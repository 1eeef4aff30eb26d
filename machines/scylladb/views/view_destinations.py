"""Where a streamed or repaired sstable goes: the destination decision of tablet-based tables.

Source: design document 000 (view-building-coordinator, 2025-12), "Staging sstables", the list under "for
tablet-based sstables the logic is", as a table. Around it: one base replica, one view that is built
meanwhile, and sstables with a row each, which must be in the view in the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from stagewright.machines.scylladb.views.view_task import COORDINATOR, TOPOLOGY, WORKER
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    OneVar,
    Profile,
    SetVar,
    States,
    Term,
    action,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_value,
    equivalents,
    final,
    flag,
    initially,
    invariant,
    leads_to,
    liveness,
    one_of,
    only_when,
    per,
    profiles,
    require,
    set_of,
    some,
    step_property,
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
    """An sstable that streaming or repair writes, with one row."""


class Place(Enum):
    """Where an sstable is."""

    nowhere = auto()
    base = auto()
    with_generator = auto()  # in the staging directory, known to the generator
    with_task = auto()  # in the staging directory, with a process_staging task


@dataclass(frozen=True)
class DestinationRelease(Profile):
    """What a version does with repaired sstables when all views are built."""

    follows_the_text: bool


SEED = DestinationRelease("seed", follows_the_text=True)
SCYLLA_2025_4 = DestinationRelease("scylla-2025.4", follows_the_text=False)


class ViewDestinations(Machine):
    """A base replica that gets sstables while a view of its table is built.

    Every promise holds under both profiles: the way of the text, and that of the code, bring every row
    to the view.
    """

    release = profiles(SEED, SCYLLA_2025_4)

    views: OneVar[Views] = one_of(Views)
    paired: FlagVar = flag(init=ANY)  # the replica is one for good; if not, it is pending
    place = per(Sstable, one_of(Place, init=Place.nowhere))
    view: SetVar[Sstable] = set_of(Sstable)  # sstables whose rows are in the view
    scanned: FlagVar = flag(
        init=ANY
    )  # the replica's build_range task is done, or its predecessor's

    @initially
    def may_be_half_built(self) -> Bool:
        """A migration, or a repair, may find the views as far as they are."""
        begun = self.views.any_of(Views.started, Views.built)
        done = self.views == Views.built
        return self.scanned.implies(begun) & done.implies(self.scanned)

    @action(by=TOPOLOGY)
    def stream(self, s: Term[Sstable], known: Bool) -> None:
        """A migration brings an sstable; the replica that leaves may have given its rows to the view."""
        require(~self.paired, "the replica is pending")
        require(known.implies(self.scanned), "it has given them if its task is done")
        require((self.views == Views.built).implies(known), "it has no staging sstable left")
        self._write(s, self.views.column(lambda views: views.other))
        self.view.put(s, known)

    @action(by=TOPOLOGY)
    def repair(self, s: Term[Sstable]) -> None:
        """A repair brings rows that this replica did not have, and did not give to its view replica."""
        require(self.paired, "the replica is one for good")
        if self.release.follows_the_text:
            self._write(s, self.views.column(lambda views: views.in_the_text))
        else:
            self._write(s, self.views.column(lambda views: views.repair))

    @action(by=TOPOLOGY, fair=WEAK)
    def end_migration(self) -> None:
        """The replica is one for good."""
        require(~self.paired, "the replica is pending")
        self.paired = True

    @views.step(Views.none, Views.not_started, by=CLIENT)
    def create_view(self) -> None:
        """A view is created."""

    @views.step(Views.not_started, Views.started, by=COORDINATOR, fair=WEAK)
    def start_view(self) -> None:
        """The coordinator starts to build the view."""

    @action(by=WORKER, fair=WEAK)
    def build_range(self) -> None:
        """The replica's task is executed: it reads what the replica has."""
        require(self.views == Views.started, "the view is being built")
        require(~self.scanned, "its task is to be executed")
        require(self.paired, "the tablet is not in transition")
        self.scanned = True
        for s in Sstable:
            there = self.place[s] != Place.nowhere
            self.view.put(s, self.view.has(s) | (there & self.paired))

    @views.step(
        Views.started,
        Views.built,
        by=COORDINATOR,
        fair=WEAK,
    )
    def mark_view_built(self) -> None:
        """No task is left."""
        require(self.scanned, "the range is built")
        require(~some(self.place[s] == Place.with_task for s in Sstable), "no staging task is left")

    @action(by=WORKER, fair=WEAK)
    def process_staging(self, s: Term[Sstable]) -> None:
        """The sstable's task is executed: the view is updated, the sstable moves to the base directory."""
        require(self.place[s] == Place.with_task, "the sstable has a task")
        require(self.paired, "the tablet is not in transition")
        self._process(s)

    @action(by=WORKER, fair=WEAK)
    def generate(self, s: Term[Sstable]) -> None:
        """The generator does the same, and asks nobody."""
        only_when(not self.release.follows_the_text)
        require(self.place[s] == Place.with_generator, "the generator has the sstable")
        self._process(s)

    # -- what recurs -----------------------------------------------------------------------------------

    def _write(self, s: Term[Sstable], destination: Term[Destination]) -> None:
        require(self.place[s] == Place.nowhere, "a new sstable")
        staged = choose(destination == GENERATOR, Place.with_generator, Place.with_task)
        self.place[s] = choose(destination == NORMAL, Place.base, staged)

    def _process(self, s: Term[Sstable]) -> None:
        """A replica that is not paired updates nothing."""
        self.place[s] = Place.base
        self.view.put(s, self.view.has(s) | self.paired)

    def _is_staged(self, s: Term[Sstable]) -> Bool:
        return self.place[s].any_of(Place.with_generator, Place.with_task)

    # -- promises --------------------------------------------------------------------------------------

    @invariant
    def built_views_are_complete(self, s: Term[Sstable]) -> Bool:
        """A built view has every row of the base directory."""
        there = (self.views == Views.built) & (self.place[s] == Place.base)
        return there.implies(self.view.has(s))

    @invariant
    def states_of_views_and_sstables_agree(self, s: Term[Sstable]) -> Bool:
        """Lemma: a range is built while the views are, and before they all are; what is staged needs it."""
        begun = self.views.any_of(Views.started, Views.built)
        built = self.views == Views.built
        there = self.place[s] != Place.nowhere
        return (
            (self.scanned | (self.place[s] == Place.with_task)).implies(begun)
            & built.implies(self.scanned)
            & (self.place[s] == Place.with_generator).implies(built & self.paired)
            & self.view.has(s).implies(there)
            & ((self.place[s] == Place.base) & self.scanned).implies(self.view.has(s))
        )

    @step_property
    def views_are_built_when_everything_is(self, after: Self, s: Term[Sstable]) -> Bool:
        """A view is built when no task is left: every row that is there has reached it."""
        built = (self.views != Views.built) & (after.views == Views.built)
        return (built & (self.place[s] != Place.nowhere)).implies(self.view.has(s))

    @step_property
    def views_are_built_step_by_step(self, after: Self) -> Bool:
        """A view is created, then started, then built."""
        now, then = self.views, after.views
        return (
            (now == Views.none).implies(then.any_of(Views.none, Views.not_started))
            & (now == Views.not_started).implies(then.any_of(Views.not_started, Views.started))
            & (now == Views.started).implies(then.any_of(Views.started, Views.built))
            & (now == Views.built).implies(then == Views.built)
        )

    @step_property
    def processed_sstables_are_in_the_view(self, after: Self, s: Term[Sstable]) -> Bool:
        """000: view updates are not generated "prematurely, before the writes are directed to the new
        replica" (scylladb #19149).
        """
        processed = self._is_staged(s) & (after.place[s] == Place.base)
        return processed.implies(after.view.has(s))

    @step_property
    def sstables_without_need_are_not_staged(self, after: Self, s: Term[Sstable]) -> Bool:
        """000: "use normal directory" where there are no views, none is started, or all have the rows."""
        staged = (self.place[s] == Place.nowhere) & after._is_staged(s)
        repaired = (self.views == Views.built) & ~after.view.has(s)
        return staged.implies((self.views == Views.started) | repaired)

    @final
    def nothing_is_staged(self) -> Bool:
        """A replica may stay as it is, when no sstable waits."""
        waits = some(self._is_staged(s) for s in Sstable)
        return ~waits & self.views.any_of(Views.none, Views.built)

    @liveness
    def staging_sstables_are_processed(self, s: Term[Sstable]) -> LeadsTo:
        """Every staging sstable is processed in the end."""
        return leads_to(self._is_staged(s), ~self._is_staged(s))

    @liveness
    def views_are_built(self) -> LeadsTo:
        """Every view is built in the end."""
        unbuilt = self.views.any_of(Views.not_started, Views.started)
        return leads_to(unbuilt, self.views == Views.built)

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_value(
            Views.built,
            lambda views: views.repair,
            TASK,
            because="the text has it so: a task brings the rows to the view as the generator does",
        ),
        equivalent_drop(
            stream,
            "the replica is pending",
            because="the decision does not ask whether the replica is pending",
        ),
        equivalent_drop(
            stream,
            "it has given them if its task is done",
            because="where no view is built they were not; where all are, they were",
        ),
        equivalent_drop(
            end_migration, "the replica is pending", because="a replica for good stays one"
        ),
        equivalent_loss(create_view, views, because="a view may as well not be created"),
        equivalent_drop(
            build_range, "its task is to be executed", because="a task may be executed again"
        ),
        equivalent_drop(
            mark_view_built,
            "views is started",
            because="where the range is built, the view is started or built",
        ),
        equivalent_drop(
            process_staging, "the sstable has a task", because="an sstable may be processed again"
        ),
        equivalent_drop(
            _write, "a new sstable", because="an sstable that comes again is decided on again"
        ),
        equivalent_loss(_write, place, because="there may as well be no sstable"),
    )
