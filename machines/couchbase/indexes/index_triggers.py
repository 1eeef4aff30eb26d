"""When an index is updated, cleaned and compacted by itself: the triggers of the cluster manager.

004: "ns server is responsible for triggering updates by time duration or number of changes threshold", and "for
triggering compaction jobs on index structures by fragmentation threshold"; the cleanup "is run periodically".
"""

from __future__ import annotations

from typing import Self

from stagewright.spec import (
    Actor,
    Bool,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    NumberVar,
    accepts,
    action,
    bounded,
    budget,
    choose,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalents,
    final,
    flag,
    history,
    independent,
    invariant,
    leads_to,
    least,
    liveness,
    number,
    require,
    scopes,
    step_property,
)

WEAK = Fairness.WEAK
CLIENT = Actor("client")
MANAGER = Actor("cluster manager")
TIME = Actor("time")
DURATION = 2  # ticks after which an update is triggered (5 s)
CHANGES = 3  # changes from which on one is triggered (5,000)
FRAGMENTATION = 2  # updates and cleanups from which on a file is compacted (30 %)
MOST = 4  # changes that are waiting


class IndexTriggers(Machine):
    """One index, whose jobs nobody asks for.

    There is no profile. The server looks at an index every 5 seconds and updates it if there are 5,000 changes;
    here it is as the document says: after the time, *or* from so many changes on.
    """

    writes = budget(4, doc="changes of documents")
    moves = budget(1, doc="partitions that are to be removed")

    exercised_at = scopes({}, {writes: 3, moves: 2})

    waiting: NumberVar = number(0, MOST)  # changes that are not indexed
    loaded: NumberVar = number(0, MOST)  # by the update that runs
    came: NumberVar = history(number(0, MOST))  # changes since the last update began
    elapsed: NumberVar = number(0, DURATION)  # since the last update
    since_start: NumberVar = history(number(0, DURATION))  # of the last update
    # how long changes have waited since then, or since the first of them came
    waited: NumberVar = history(number(0, DURATION))
    fragmentation: NumberVar = number(0, FRAGMENTATION)
    to_clean: FlagVar = flag()  # a partition is in cleanup
    all_known: FlagVar = history(flag())  # and was so when the cleaner, or the compactor, started
    updater: FlagVar = flag()
    cleaner: FlagVar = flag()
    compactor: FlagVar = flag()

    @action(by=CLIENT, spends=writes)
    def write(self) -> None:
        """A document changes."""
        bounded(self.waiting < MOST, "there is room for a change")
        self.waited = choose(self.waiting == 0, 0, self.waited)
        self.waiting = self.waiting + 1
        self.came = self.came + 1

    @action(by=TIME, fair=WEAK)
    def tick(self) -> None:
        """Time goes by."""
        require(self.elapsed < DURATION, "the duration is not over")
        self.elapsed = self.elapsed + 1
        self.since_start = least(self.since_start + 1, DURATION)
        self.waited = least(self.waited + 1, DURATION)

    @action(by=MANAGER, spends=moves)
    def remove_partition(self) -> None:
        """A partition has moved to another node: it is in cleanup here, and who knows it otherwise is stopped."""
        self.to_clean = True
        self.all_known = False
        self._stop_workers()

    # -- triggers ----------------------------------------------------------------------------------------

    @action(by=MANAGER, fair=WEAK)
    def trigger_update(self) -> None:
        """There are many changes, or some for long: the updater starts, the cleaner is stopped."""
        require(~self.updater, "updater does not run")
        require(self._has_many_changes() | self._has_old_changes(), "an update is due")
        self.updater = True
        self.cleaner = False
        self.loaded = self.waiting
        self.came = 0
        self.elapsed = 0
        self.since_start = 0

    @action(by=MANAGER, fair=WEAK)
    def trigger_compaction(self) -> None:
        """The fragmentation of the file exceeds the threshold: the compactor starts, the cleaner is stopped."""
        require(~self.compactor, "compactor does not run")
        require(self._is_fragmented(), "the file is fragmented")
        self.compactor = True
        self.cleaner = False
        self.all_known = True

    @action(by=MANAGER, fair=WEAK)
    def trigger_cleanup(self) -> None:
        """The cleanup cycle finds a partition in cleanup; the cleaner works alone."""
        require(self.to_clean, "a partition is in cleanup")
        require(~self.updater & ~self.compactor & ~self.cleaner, "no worker runs")
        self.cleaner = True
        self.all_known = True

    # -- the workers -------------------------------------------------------------------------------------

    @action(fair=WEAK)
    def finish_update(self) -> None:
        """What was there when the updater started is indexed; the file has grown."""
        require(self.updater, "updater runs")
        self.updater = False
        self.waiting = self.waiting - self.loaded
        self.loaded = 0
        self.waited = 0
        self._append()

    @action(fair=WEAK)
    def finish_compaction(self) -> None:
        """The index has a new file, without the rows of partitions in cleanup."""
        require(self.compactor, "compactor runs")
        self.compactor = False
        self.to_clean = False
        self.fragmentation = 0

    @action(fair=WEAK)
    def finish_cleanup(self) -> None:
        """The rows of the partition are removed; the file has grown."""
        require(self.cleaner, "cleaner runs")
        self.cleaner = False
        self.to_clean = False
        self._append()

    # -- helpers -----------------------------------------------------------------------------------------

    def _has_many_changes(self) -> Bool:
        return self.waiting >= CHANGES

    def _has_old_changes(self) -> Bool:
        return (self.waiting > 0) & (self.elapsed >= DURATION)

    def _is_fragmented(self) -> Bool:
        return self.fragmentation >= FRAGMENTATION

    def _stop_workers(self) -> None:
        """What the cleaner removes, or the compactor leaves out, would be less than there is to be removed now."""
        self.cleaner = False
        self.compactor = False

    def _append(self) -> None:
        self.fragmentation = least(self.fragmentation + 1, FRAGMENTATION)

    # -- promises ----------------------------------------------------------------------------------------

    @accepts(write)
    def documents_change_while_workers_run(self) -> Bool:
        """004: "updates can happen to the index file anytime": no document waits for an update, or for a compaction."""
        return self.waiting < MOST

    @accepts(remove_partition)
    def partitions_move_away_while_workers_run(self) -> Bool:
        """004: the view engine "just performs such requests" of the cluster manager: whoever works is stopped for it, also
        if another partition is to be removed already.
        """
        return self.updater | self.cleaner | self.compactor | self.to_clean

    @accepts(trigger_update)
    def many_changes_trigger_an_update(self) -> Bool:
        """004: updates are triggered by the "number of changes threshold", from the threshold on, at once."""
        return (self.waiting >= CHANGES) & ~self.updater

    @accepts(trigger_update)
    def time_triggers_an_update(self) -> Bool:
        """004: updates are triggered "by time duration", however few the changes are, and whether more come meanwhile: at the
        latest when the first of them has waited, and the last update has ended, so long ago.
        """
        return (self.waiting > 0) & (self.waited == DURATION) & ~self.updater

    @accepts(trigger_compaction)
    def fragmentation_triggers_a_compaction(self) -> Bool:
        """004: "triggering compaction jobs … by fragmentation threshold", whatever else goes on."""
        return (self.fragmentation == FRAGMENTATION) & ~self.compactor

    @accepts(finish_compaction)
    def compactions_end_while_it_is_updated(self) -> Bool:
        """004: "We cannot stop the view engine updates from happening": no compaction waits for their end."""
        return self.compactor

    @accepts(finish_update)
    def updates_end_while_it_is_compacted(self) -> Bool:
        """004: "While doing the compaction, new changes would be happening to the current index file": queries see them when they
        are indexed, not when that is over.
        """
        return self.updater

    @accepts(trigger_cleanup)
    def cleanups_wait_only_for_other_workers(self) -> Bool:
        """004: the cleanup is "a job that is run periodically": also where changes come faster than they are indexed."""
        return self.to_clean & ~self.updater & ~self.compactor & ~self.cleaner

    @accepts(finish_cleanup)
    def cleanups_end_while_documents_change(self) -> Bool:
        """The same of its end: what has come to be indexed meanwhile, which may be always, is left to the updater."""
        return self.cleaner

    @independent(tick, of=(cleaner, compactor, fragmentation, to_clean))
    def time_goes_by_during_cleanups_and_compactions(self) -> None:
        """004: updates are triggered "by time duration", and compactions "by fragmentation threshold": the time until the next
        update is no longer while another job of the index is due, or runs.
        """

    @step_property
    def updates_stop_no_compaction(self, after: Self) -> Bool:
        """004: "While doing the compaction, new changes would be happening to the current index file": the compactor goes on
        when an update begins, or ends, for it may be that there is always one; unless both are stopped for a partition that
        moves away.
        """
        begins, ends = ~self.updater & after.updater, self.updater & ~after.updater
        updates = begins | (ends & ~self._stops_workers(after))
        return (updates & self.compactor).implies(after.compactor)

    @step_property
    def what_comes_to_be_indexed_stops_no_cleaner(self, after: Self) -> Bool:
        """004: the cleanup is "a job that is run periodically": a cleaner ends when it has removed all, and is stopped when another
        worker starts, or a partition moves away: not by each document that changes, as some always may.
        """
        stopped = self.cleaner & ~after.cleaner & after.to_clean
        starts = (~self.updater & after.updater) | (~self.compactor & after.compactor)
        return stopped.implies(starts | self._stops_workers(after))

    @step_property
    def no_update_comes_too_early(self, after: Self) -> Bool:
        """004: "time duration or number of changes": a few changes wait for the time, since the last update began, or
        longer.
        """
        starts = ~self.updater & after.updater
        due = (self.waiting >= CHANGES) | (self.since_start == DURATION)
        return starts.implies(due)

    @step_property
    def what_is_not_loaded_waits(self, after: Self) -> Bool:
        """004: the updater "requests all the updates that happened since the last time the updater ran": those that it
        has not loaded are left for the next one.
        """
        return after.waiting >= self.waiting - self.loaded

    @step_property
    def an_update_loads_all_that_waits(self, after: Self) -> Bool:
        """004: the updater "requests all the updates that happened since the last time the updater ran", and not as many as
        trigger it: when it is done only what came since it began is left. One that is stopped, for a partition that moves
        away, may leave all.
        """
        ends = self.updater & ~after.updater
        may_be_stopped = after.to_clean & ~after.all_known
        return (ends & ~may_be_stopped).implies(after.waiting <= self.came)

    @step_property
    def what_is_to_be_removed_waits(self, after: Self) -> Bool:
        """004: "cleaner jobs" remove the data of a partition in cleanup, and a compaction leaves it out; an update, or a
        cleaner that is stopped, does not end that.
        """
        cleaned = self.cleaner & ~after.cleaner & (after.updater == self.updater)
        compacted = self.compactor & ~after.compactor
        return (self.to_clean & ~after.to_clean).implies(cleaned | compacted)

    @step_property
    def a_cleanup_removes_all_that_is_to_be_removed(self, after: Self) -> Bool:
        """004: after the cleanup "a partition will not be part of the index any more": one that moves away while the cleaner
        runs, or the compactor has copied its rows, is left for the next.
        """
        removed = (self.cleaner & ~after.cleaner) | (self.compactor & ~after.compactor)
        return (removed & self.to_clean & ~after.to_clean).implies(self.all_known)

    @step_property
    def fragmentation_grows_until_a_compaction(self, after: Self) -> Bool:
        """004: "every update to the btree results in copy-on-write": each batch that is indexed, and each cleanup, adds to
        the file what only a compaction takes away; what is written meanwhile may be left in the new file, too.
        """
        indexed = after.waiting < self.waiting
        cleaned = self.cleaner & ~after.cleaner & ~after.to_clean
        compacted = self.compactor & ~after.compactor & ~self._stops_workers(after)
        starts = (~self.updater & after.updater) | (~self.compactor & after.compactor)
        stopped = self.cleaner & ~after.cleaner & (starts | self._stops_workers(after))
        ends = cleaned | stopped | (self.updater & ~after.updater)
        grown = after.fragmentation == least(self.fragmentation + 1, FRAGMENTATION)
        same = (after.fragmentation == self.fragmentation) & ~indexed & ~cleaned
        written = same | (grown & (indexed | ends))
        return choose(compacted, after.fragmentation < FRAGMENTATION, written)

    def _stops_workers(self, after: Self) -> Bool:
        """A partition is to be removed that cleaner and compactor did not know of."""
        return self.all_known & ~after.all_known

    @invariant
    def a_cleanup_has_something_to_do(self) -> Bool:
        """004: a partition in cleanup "will be removed during the next cleanup cycle"; else there is none."""
        return self.cleaner.implies(self.to_clean)

    @step_property
    def an_update_has_something_to_do(self, after: Self) -> Bool:
        """004: "it's easy to find out whether an update it needed or not": none begins where nothing waits."""
        return (~self.updater & after.updater).implies(self.waiting > 0)

    @invariant
    def a_compaction_has_something_to_do(self) -> Bool:
        """A file that is not fragmented is left alone."""
        return self.compactor.implies(self.fragmentation == FRAGMENTATION)

    @invariant
    def the_cleaner_works_alone(self) -> Bool:
        """No other worker writes to the trees that the cleaner purges, or copies them."""
        return ~(self.cleaner & (self.updater | self.compactor))

    @final
    def nothing_is_due(self) -> Bool:
        """An index may stay as it is when it is up to date, clean, and not fragmented."""
        return (self.waiting == 0) & ~self.to_clean & (self.fragmentation < FRAGMENTATION)

    @liveness
    def changes_are_indexed(self) -> LeadsTo:
        """Every change is indexed, also if no query asks for it."""
        return leads_to(self.waiting > 0, self.waiting == 0)

    @liveness
    def partitions_are_cleaned_up(self) -> LeadsTo:
        """004: the cleanup is "run periodically", also while updates and compactions stop it."""
        return leads_to(self.to_clean, ~self.to_clean)

    @liveness
    def fragmented_files_are_compacted(self) -> LeadsTo:
        """004: the structures need "frequent housekeeping to reduce the fragmentation"."""
        fragmented = self.fragmentation == FRAGMENTATION
        return leads_to(fragmented, ~fragmented)

    # -- harmless changes --------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_loss(write, waiting, because="what clients write is theirs"),
        equivalent_replacement(
            write, "waiting becomes: 0 for 1", because="what clients write is theirs"
        ),
        equivalent_loss(remove_partition, to_clean, because="what does not move is not removed"),
        equivalent_replacement(
            remove_partition, "to_clean becomes", because="what does not move is not removed"
        ),
        equivalent_drop(
            trigger_update, "updater does not run", because="it is told to load what came since"
        ),
        equivalent_weakening(
            trigger_cleanup, "no worker runs", because="a cleaner that starts again goes on"
        ),
        equivalent_drop(
            trigger_compaction, "compactor does not run", because="it starts once more"
        ),
        equivalent_loss(
            trigger_update,
            came,
            since_start,
            because="what is noted for a promise alone: where it is noted too late, less is promised",
        ),
        equivalent_loss(
            tick,
            waited,
            because="what is noted for a promise alone: where no time is noted, less is promised",
        ),
        equivalent_replacement(
            trigger_update,
            "came becomes",
            "since_start becomes",
            because="what is noted for a promise alone: where more is noted, less is promised",
        ),
        equivalent_loss(
            write,
            waited,
            because="what is noted for a promise alone: here the time is that since the last update, however new a change is",
        ),
        equivalent_replacement(
            write,
            "waited becomes",
            because="what is noted for a promise alone: here the time is that since the last update, however new a change is",
        ),
        equivalent_replacement(
            finish_compaction,
            "fragmentation becomes",
            because="what is applied to the copy leaves some fragmentation there",
        ),
        equivalent_replacement(
            tick,
            "since_start becomes",
            "waited becomes",
            because="what is noted for a promise alone: where the clock errs, less is promised",
        ),
        equivalent_replacement(
            finish_update, "loaded becomes", because="the next update has its own"
        ),
        equivalent_loss(finish_update, loaded, because="the next update has its own"),
        equivalent_loss(
            finish_compaction, to_clean, because="the cleaner finds what is clean already"
        ),
        equivalent_replacement(
            finish_compaction, "to_clean becomes", because="the cleaner finds what is clean already"
        ),
    )
