"""What masters and tablets record of the builds of indexes: jobs, their scans of tablets, chunks, and how builds end.

Source: design document 002 (online index backfill), "The index backfill process" and "Fault tolerance using
checkpointing". The parameters say what was so as it happened.
"""

from __future__ import annotations

from typing import Self

from stagewright.spec import (
    Actor,
    Bool,
    FlagVar,
    Machine,
    action,
    flag,
    invariant,
    require,
    step_property,
)

MASTER = Actor("master leader")
TABLET = Actor("leader of the tablet")


class RecordedScan(Machine):
    """The scan of one tablet by one job."""

    safe: FlagVar = flag()  # the tablet has given a safe time
    begun: FlagVar = flag()  # some chunk was asked for
    asked: FlagVar = flag()  # a chunk is asked for, and its answer not taken
    runs: FlagVar = flag()  # a chunk is being read
    lacking: FlagVar = flag()  # rows or entries were passed over
    done: FlagVar = flag()

    @action(by=TABLET)
    def give_safe_time(self, settled: Bool) -> None:
        """It says from when on every commit maintains the indexes; `settled`: no older transaction is pending, or may
        be, where transactions are user-enforced.
        """
        require(settled, "transactions from before WRITE_AND_DELETE have ended")
        self.safe = True

    @action(by=TABLET)
    def inherit_safe_time(self) -> None:
        """The tablet was made by a split; what its parent has said holds of it, as it has its schema and its intents."""
        self.safe = True

    @action(by=MASTER)
    def ask_chunk(self, at_checkpoint: Bool, one_time: Bool) -> None:
        """A chunk is asked for, for the first time or again.

        `at_checkpoint`: from the last checkpoint on; `one_time`: at the time of the scan that all tablets get.
        """
        require(self.safe, "the tablet has given its safe time")
        require(~self.done, "the tablet is not done")
        require(at_checkpoint, "the chunk begins at the last checkpoint")
        require(one_time, "all chunks of a job are read at one time")
        self.begun = True
        self.asked = True

    @action(by=MASTER)
    def await_answer(self, long: Bool) -> None:
        """Time passes without an answer; `long`: more of it than between two requests."""
        require(self.asked, "a chunk is asked for")
        require(~long, "a chunk without an answer is asked for again")

    @action(by=TABLET)
    def begin_chunk(self, newest: Bool, ready: Bool, at_its_time: Bool, safe_by_then: Bool) -> None:
        """The tablet begins a chunk.

        `newest`: this leader of the tablet has not begun one of a later request; `ready`: its schema has the indexes at
        DO_BACKFILL; `at_its_time`: it reads at the time of the job; `safe_by_then`: its safe time is not later than the scan.
        """
        require(self.begun, "a chunk was asked for")
        require(newest, "the request is not older than the last one")
        require(ready, "the tablet knows the indexes to be at DO_BACKFILL")
        require(at_its_time, "a chunk is read at the time of its job")
        require(safe_by_then, "the time of the scan is not before the tablet's safe time")
        self.runs = True

    @action(by=TABLET)
    def read_rows(self, next_ones: Bool, within_rate: Bool) -> None:
        """Rows are read at the time of the scan.

        `next_ones`: the next ones that the tablet has at that time, none left out, none twice; `within_rate`: of the
        second that ends now no more are read than may be.
        """
        require(self.runs, "a chunk is being read")
        require(next_ones, "the rows are the next ones of the tablet")
        require(within_rate, "no more rows are read in a second than the rate allows")
        self.lacking = self.lacking | ~next_ones

    @action(by=TABLET)
    def end_chunk(self, whole: Bool, written: Bool) -> None:
        """The tablet says how far it has come.

        `whole`: all rows up to there were read; `written`: the index has the entry of each of these.
        """
        require(self.runs, "a chunk is being read")
        require(whole, "all rows up to there were read")
        require(written, "the entries of all rows that were read are written")
        self.runs = False
        self.lacking = self.lacking | ~whole | ~written

    @action(by=TABLET)
    def leave_chunk(self) -> None:
        """The chunk is given up: another one is asked for, or the leader is gone."""
        self.runs = False

    @action(by=MASTER)
    def take_answer(self, to_the_last: Bool, end: Bool) -> None:
        """The master writes a checkpoint, or that the tablet is at its `end`; `to_the_last`: request of its own."""
        require(self.asked, "a chunk is asked for")
        require(to_the_last, "the answer is to the last request")
        self.asked = False
        self.done = self.done | end

    @invariant
    def done_tablets_are_scanned(self) -> Bool:
        """002: "The index build requires a scan of the entire tablet data"."""
        return self.done.implies(self.safe & ~self.lacking)

    @step_property
    def chunks_are_of_requests(self, after: Self) -> Bool:
        """002: the master "issues further RPCs as necessary": a tablet reads what it is asked for."""
        return (~self.runs & after.runs).implies(self.begun)


class RecordedBuild(Machine):
    """One index, from its first permission on."""

    scanned: FlagVar = flag()  # a job has chosen its time
    failed: FlagVar = flag()
    dropped: FlagVar = flag()
    published: FlagVar = flag()
    succeeded: FlagVar = flag()  # as clients were told
    early: FlagVar = flag()  # they were told so when some tablet did not serve it
    wanting: FlagVar = flag()  # it was published without all of its entries
    unfounded: FlagVar = flag()  # it failed without a violation

    @action(by=MASTER)
    def choose_time(self, covers: Bool) -> None:
        """A job has the time of its scan; `covers`: no tablet's safe time is later."""
        require(covers, "the time is not before any tablet's safe time")
        self.scanned = True

    @action(by=MASTER)
    def fail(self, violated: Bool) -> None:
        """The build fails; `violated`: two rows of this index were found that share a key."""
        require(violated, "two rows of this index share a key")
        require(~self.published, "the index is not published")
        self.failed = True
        self.unfounded = self.unfounded | ~violated

    @action(by=MASTER)
    def drop(self) -> None:
        """DROP INDEX."""
        self.dropped = True

    @action(by=MASTER)
    def publish(self, complete: Bool) -> None:
        """Clients may read it; `complete`: every tablet is done."""
        require(self.scanned, "a job has scanned for it")
        require(~self.failed, "the build has not failed")
        require(~self.dropped, "the index was not dropped")
        require(complete, "every tablet is done")
        self.published = True
        self.wanting = self.wanting | ~complete

    @action(by=MASTER)
    def tell(self, success: Bool, served: Bool) -> None:
        """Clients are told that the build has ended, how it has; `served`: every tablet of the table has it as published."""
        require(~success | served, "every tablet reads the index of which SUCCESS is reported")
        require(
            success.implies(self.published), "an index of which SUCCESS is reported is published"
        )
        require(self.published.implies(success), "FAILED is reported of none that is published")
        self.succeeded = self.succeeded | success
        self.early = self.early | (success & ~served)

    @action(by=TABLET)
    def read(self, since_scan: Bool) -> None:
        """A client reads through it; `since_scan`: at a time that is not before that of the scan."""
        require(self.published, "the index is published")
        require(since_scan, "the read point is not before the scan")

    @invariant
    def published_indexes_are_complete(self) -> Bool:
        """002, "Finalize the index": it is published when it "is completely rebuilt"."""
        return self.published.implies(~self.wanting)

    @invariant
    def failures_have_a_violation(self) -> Bool:
        """002, Design Goals: a build aborts "if a problem arises", such as a violation of its own constraint."""
        return self.failed.implies(~self.unfounded)

    @invariant
    def success_means_that_every_tablet_reads(self) -> Bool:
        """002: the status of the job is SUCCESS when the index "can be used to serve reads" (yugabyte-db #6234)."""
        return self.succeeded.implies(~self.early)

    @step_property
    def what_is_gone_stays_gone(self, after: Self) -> Bool:
        """An index that failed or was dropped is never published (yugabyte-db #8780)."""
        return (~self.published & after.published).implies(~self.failed & ~self.dropped)
