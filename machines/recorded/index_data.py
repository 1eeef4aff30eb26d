"""What tablets record of the rows and entries of indexed tables: statements, transactions, entries, keys, splits.

Source: design document 002 (online index backfill), "Detecting constraint violations", "Waiting for pending
transactions to finish" and the states of the index table. The parameters say what was so as it happened.
"""

from __future__ import annotations

from typing import Self

from stagewright.spec import (
    Actor,
    Bool,
    FlagVar,
    Machine,
    action,
    final,
    flag,
    invariant,
    require,
    step_property,
)

CLIENT = Actor("client")
RECORD = Actor("record of the transaction")
MASTER = Actor("master leader")
TABLET = Actor("leader of the tablet")


class RecordedStatement(Machine):
    """One statement at the tablet of its row."""

    came: FlagVar = flag()
    waiting: FlagVar = flag()  # for a lock
    held: FlagVar = flag()  # its changes are held there as intents

    @action(by=CLIENT)
    def come(self) -> None:
        """It reaches the tablet, or another copy of it does."""
        self.came = True

    @action(by=TABLET)
    def wait(self, locked: Bool) -> None:
        """It waits; `locked`: another transaction holds the row."""
        require(self.came, "the statement has come")
        require(locked, "another transaction holds the row")
        self.waiting = True

    @action(by=TABLET)
    def hold(self, current: Bool, prompt: Bool) -> None:
        """Its intents are written.

        `current`: it was planned by the schema that the tablet has; `prompt`: it did not lie about before.
        """
        require(self.came, "the statement has come")
        require(current, "it was planned by the tablet's version of the schema")
        require(prompt | self.waiting, "nothing but a row's lock makes a statement wait")
        self.waiting = False
        self.held = True

    @step_property
    def intents_are_of_statements(self, after: Self) -> Bool:
        """Nothing is held of a statement that has not come."""
        return (~self.held & after.held).implies(self.came)


class RecordedTransaction(Machine):
    """One transaction: its record, and the tablets that turn its intents into versions, or drop them."""

    committed: FlagVar = flag()
    aborted: FlagVar = flag()
    astray: FlagVar = flag()  # versions were stored that it has not committed, or at another time
    lacking: FlagVar = flag()  # of rows some entry was not written

    @action(by=RECORD)
    def commit(self) -> None:
        """The record has a commit time."""
        require(~self.aborted & ~self.committed, "the transaction is undecided")
        self.committed = True

    @action(by=RECORD)
    def abort(self) -> None:
        """The record says that it was aborted."""
        require(~self.aborted & ~self.committed, "the transaction is undecided")
        self.aborted = True

    @action(by=TABLET)
    def store(self, at_its_time: Bool) -> None:
        """A tablet makes versions of its intents; `at_its_time`: at the commit time."""
        require(self.committed, "the transaction has committed")
        require(at_its_time, "rows and entries have the commit time")
        self.astray = self.astray | ~at_its_time

    @action(by=TABLET)
    def store_rows(self, maintained: Bool) -> None:
        """Of a tablet of the table; `maintained`: each index that all of its statements write to has the rows' entries of
        this time, or holds them.
        """
        require(self.committed, "the transaction has committed")
        require(maintained, "the indexes have the entries of the rows")
        self.lacking = self.lacking | ~maintained

    @action(by=TABLET)
    def drop(self) -> None:
        """A tablet drops its intents."""
        require(self.aborted, "the transaction was aborted")

    @invariant
    def rows_and_entries_have_one_time(self) -> Bool:
        """002: "the hybrid timestamp of the entry in primary table and the index table are the same"."""
        return ~self.astray

    @invariant
    def rows_have_their_entries(self) -> Bool:
        """002, WRITE_AND_DELETE: "whenever a row is updated", the new value is written to the index (yugabyte-db #30653)."""
        return ~self.lacking


class RecordedEntries(Machine):
    """One tablet of an index."""

    over: FlagVar = flag()  # it has heard that the backfill is over
    reclaimed: FlagVar = flag()  # delete markers
    early: FlagVar = flag()  # of these some while the backfill ran

    @action(by=TABLET)
    def backfill(self, at_scan: Bool, decided: Bool) -> None:
        """Entries of a scan are written.

        `at_scan`: with the time of the scan; `decided`: no transaction that is pending has one of their keys, where
        these are unique.
        """
        require(~self.over, "the backfill is not over")
        require(at_scan, "entries have the time of the scan")
        require(decided, "no pending transaction has the key")

    @action(by=MASTER)
    def end_backfill(self) -> None:
        """It hears that the backfill is over."""
        self.over = True

    @action(by=TABLET)
    def compact(self) -> None:
        """Delete markers, and what they hide, are reclaimed."""
        require(self.over, "the backfill is over")
        self.reclaimed = True
        self.early = self.early | ~self.over

    @invariant
    def markers_are_kept_until_then(self) -> Bool:
        """002: compactions do "not reclaim the delete markers until the backfill process is complete"."""
        return self.reclaimed.implies(~self.early)


class RecordedKey(Machine):
    """One key of a unique index, as its tablet holds versions of it."""

    entered: FlagVar = flag()  # the backfill has written an entry of it
    doubled: FlagVar = flag()  # and another row had it just before or after
    reported: FlagVar = flag()
    invented: FlagVar = flag()  # a violation was reported where no other row has the key

    @action(by=TABLET)
    def write_entry(self, free_before: Bool, free_after: Bool) -> None:
        """002, "Detecting constraint violations": the backfill writes an entry.

        `free_before`: at the time of the scan no other row has the key; `free_after`: nor the first one after it.
        """
        require(free_before, "no other row has the key at the time of the scan")
        require(free_after, "no other row is the first to get the key after the scan")
        self.entered = True
        self.doubled = self.doubled | ~free_before | ~free_after

    @action(by=TABLET)
    def report(self, rival: Bool) -> None:
        """It reports a violation; `rival`: another row has the key just before or just after the scan."""
        require(rival, "another row has the key")
        self.reported = True
        self.invented = self.invented | ~rival

    @invariant
    def violations_are_not_missed(self) -> Bool:
        """002: the index accepts the write only if both conditions hold."""
        return self.entered.implies(~self.doubled)

    @invariant
    def violations_are_not_invented(self) -> Bool:
        """And it fails for nothing else (yugabyte-db #3611)."""
        return self.reported.implies(~self.invented)


class RecordedSchema(Machine):
    """The schema of the table at one of its tablets."""

    known: FlagVar = flag()

    @action(by=TABLET)
    def apply(self, newer: Bool, near: Bool) -> None:
        """It applies a version.

        `newer`: than the one it had; `near`: no index goes further than one permission from what a slower tablet has,
        unless it is being removed.
        """
        require(newer, "the version is newer")
        require(near, "no two tablets are more than one permission apart")
        self.known = True

    @step_property
    def versions_are_not_forgotten(self, after: Self) -> Bool:
        """A tablet that knows a version keeps it or a newer one."""
        return self.known.implies(after.known)


class RecordedSplit(Machine):
    """One tablet that is to split, of a table or of an index, which is a table of its own: jobs read the former alone.

    The document does not speak of splits. Source: yugabyte-db #6704 and #7108, and what a split is there: the children
    begin with all that their parent has, which takes no more.
    """

    registered: FlagVar = flag()  # in the catalog
    divided: FlagVar = flag()  # its children have what it had
    late: FlagVar = flag()  # it held something afterwards, which they do not have
    lacking: FlagVar = flag()  # of rows or intents they got others than it had
    amid: FlagVar = flag()  # a job counted on the tablet

    @action(by=MASTER)
    def register(self, idle: Bool) -> None:
        """The master has it split; `idle`: no backfill of its table is going on."""
        require(~self.registered, "the tablet is not to split yet")
        require(idle, "no backfill is going on (SPLIT_OR_BACKFILL_IN_PROGRESS)")
        self.registered = True
        self.amid = self.amid | ~idle

    @action(by=TABLET)
    def hold(self) -> None:
        """A statement is held there, or entries are."""
        require(~self.divided, "a tablet that has split takes no writes")
        self.late = self.late | self.divided

    @action(by=TABLET)
    def divide(self, awaited: Bool, rows: Bool, intents: Bool) -> None:
        """Its children get what it has.

        `awaited`: no job goes past waiting for splits before; `rows`: each has all versions of its rows or entries, and of no others;
        `intents`: all that is pending is at one of them.
        """
        require(self.registered, "the tablet is to split")
        require(~self.divided, "a tablet splits once")
        require(awaited, "jobs wait for splits")
        require(rows, "each child has its rows at every time, and no others")
        require(intents, "what is pending is given to the children")
        self.divided = True
        self.lacking = self.lacking | ~rows | ~intents
        self.amid = self.amid | ~awaited

    @invariant
    def nothing_is_written_to_what_has_split(self) -> Bool:
        """A write that is acknowledged is there for whoever asks the tablets that serve."""
        return ~self.late

    @invariant
    def children_have_what_their_parent_had(self) -> Bool:
        """002: "each row belongs to exactly one tablet": reads at any time, and commits, find it there."""
        return ~self.lacking

    @invariant
    def jobs_and_splits_exclude_each_other(self) -> Bool:
        """yugabyte-db #7108: "if a split is happening, disallow backfill; if a backfill is happening, disallow split"."""
        return ~self.amid

    @step_property
    def splits_are_for_good(self, after: Self) -> Bool:
        """A tablet that has split does not come back."""
        return self.divided.implies(after.divided)

    @final
    def nothing_more_is_asked_of_it(self) -> Bool:
        """Its children serve."""
        return self.divided
