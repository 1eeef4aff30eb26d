"""One tablet of a backfill job as the master's log reports it: from which key each of its chunks begins.

A log names keys, of which there are many; what matters is how one stands to the key before. That is all there is
of keys here; `backfill_chunks.py` has rows, entries and checkpoints.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK
from stagewright.spec import (
    Bool,
    LeadsTo,
    Machine,
    OneVar,
    action,
    choose,
    equivalent_disabled,
    equivalents,
    final,
    leads_to,
    liveness,
    one_of,
    require,
    sometimes,
    step_property,
)


class Scan(Enum):
    """How far the master leader is with a tablet (`BackfillTablet`)."""

    not_begun = auto()
    chunk = auto()  # a chunk is asked for; retries of its RPC are the same chunk
    failed = auto()  # it has failed for an index; if others are left, they are tried on
    taken_over = auto()  # another master is the leader, and has not asked for a chunk yet
    done = auto()


class Begin(Enum):
    """Where the last chunk began, seen from the one before it; the first begins at no key at all."""

    none = auto()
    at_the_start = auto()
    same = auto()
    further = auto()
    back = auto()


class BackfillTablet(Machine):
    """The chunks of one tablet in one backfill job.

    There is no profile: the document and the code say the same.
    """

    scan: OneVar[Scan] = one_of(Scan, init=Scan.not_begun)
    begin: OneVar[Begin] = one_of(Begin, init=Begin.none)

    @action(by=MASTER, fair=WEAK)
    def ask_first(self) -> None:
        """The first chunk begins at the start of the tablet."""
        require(self.begin == Begin.none, "no chunk was asked for")
        self.scan = Scan.chunk
        self.begin = Begin.at_the_start

    @action(by=MASTER)
    def ask_next(self) -> None:
        """The tablet server came further: that is recorded, and the next chunk begins there."""
        require(self.scan == Scan.chunk, "a chunk is going on")
        self.begin = Begin.further

    @action(by=MASTER, fair=WEAK)
    def ask_again(self) -> None:
        """The same chunk, for the indexes that have not failed, or by the next leader."""
        require(self.begin != Begin.none, "a chunk was asked for")
        require(self.scan.any_of(Scan.failed, Scan.taken_over), "its answer is not to be used")
        self.scan = Scan.chunk
        self.begin = Begin.same

    @action(by=MASTER)
    def go_on(self) -> None:
        """The next leader begins where the last answer that was recorded came to, without any word of it."""
        require(self.scan == Scan.taken_over, "another master is the leader")
        require(self.begin != Begin.none, "a chunk was asked for")
        self.scan = Scan.chunk
        self.begin = Begin.further

    @action(by=MASTER)
    def fail(self) -> None:
        """A chunk fails for an index of the job."""
        require(self.scan == Scan.chunk, "a chunk is going on")
        self.scan = Scan.failed

    @action(by=MASTER, fair=WEAK)
    def finish(self) -> None:
        """The tablet server came to the end of the tablet: that is recorded."""
        require(self.scan == Scan.chunk, "a chunk is going on")
        self.scan = Scan.done

    @action
    def take_over(self) -> None:
        """Another master becomes the leader; a tablet that is done stays so."""
        self.scan = choose(self.scan == Scan.done, Scan.done, Scan.taken_over)

    @step_property
    def tablets_are_scanned_from_their_start(self, after: Self) -> Bool:
        """002: "The index build requires a scan of the entire tablet data"."""
        first = (self.begin == Begin.none) & (after.begin != Begin.none)
        return first.implies(after.begin == Begin.at_the_start)

    @step_property
    def checkpoints_only_advance(self, after: Self) -> Bool:
        """002: "The entire build process should not need to restart on a node failure in the cluster"."""
        begun = self.begin != Begin.none
        again = after.begin.any_of(Begin.at_the_start, Begin.back, Begin.none)
        forgotten = (self.scan != Scan.not_begun) & (after.scan == Scan.not_begun)
        return (begun & (after.begin != self.begin)).implies(~again) & ~forgotten

    @step_property
    def chunks_that_end_well_are_not_repeated(self, after: Self) -> Bool:
        """002: the master persists how far the tablet server came, "and issues futher RPCs as necessary"."""
        next_one = (self.scan == Scan.chunk) & (after.scan == Scan.chunk)
        return next_one.implies(after.begin == Begin.further)

    @step_property
    def chunks_that_fail_are_tried_again(self, after: Self) -> Bool:
        """Failure is per index: the others get the rows of the chunk all the same (yugabyte-db #6290)."""
        tried = (self.scan == Scan.failed) & (after.scan == Scan.chunk)
        return tried.implies(after.begin == Begin.same)

    @sometimes
    def chunks_fail_for_an_index(self, after: Self) -> Bool:
        """The master hears of the failure, and asks for the chunk again: it takes no change of the leader (yugabyte-db #6290)."""
        return (self.scan == Scan.failed) & (after.scan == Scan.chunk)

    @step_property
    def what_is_done_is_not_scanned_again(self, after: Self) -> Bool:
        """002: the master needs "to wait for the backfill to complete on all the tablets", once on each."""
        return (self.scan == Scan.done).implies(after.scan == Scan.done)

    @step_property
    def what_is_done_was_scanned(self, after: Self) -> Bool:
        """002: each answer says how far the tablet server came: the end is what a chunk came to."""
        ends = (self.scan != Scan.done) & (after.scan == Scan.done)
        return ends.implies(self.scan == Scan.chunk)

    @step_property
    def keys_are_those_of_chunks(self, after: Self) -> Bool:
        """A key is told when a chunk is asked for, and then only."""
        told = after.begin != self.begin
        asked = (self.scan == Scan.taken_over) & (after.scan == Scan.chunk)
        new = after.begin.any_of(Begin.at_the_start, Begin.same, Begin.further)
        goes_on = (asked & (self.begin == Begin.at_the_start)).implies(told)
        return told.implies((after.scan == Scan.chunk) & new) & goes_on

    @final
    def nothing_is_asked_for(self) -> Bool:
        """A tablet that is done may stay so, and one for which all indexes have failed."""
        return self.scan.any_of(Scan.done, Scan.failed)

    @liveness
    def chunks_end(self) -> LeadsTo:
        """Every chunk ends: the tablet is done, or an index has failed, or another master takes it up."""
        asked = self.scan == Scan.chunk
        return leads_to(asked, ~asked)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_disabled(
            because="what is seen here `backfill-chunks` does, whose steps would be none without it"
        ),
        equivalent_disabled(
            ask_next,
            ask_again,
            go_on,
            because="a request of `backfill-chunks` that could be none of these is seen as another of them",
        ),
    )
