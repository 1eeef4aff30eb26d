"""The chunks of one tablet: pages of rows, checkpoints, retries, and several indexes in one scan.

The master asks the tablet's leader to backfill from a key; the tablet server writes the index entries of some
rows and answers how far it came; the master records that and asks for the next chunk. This is what happens to
one tablet in the step `backfill_tablets` of `backfill_job.py`.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK, Index
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    OneVar,
    OptionalVar,
    SetOf,
    Term,
    accepts,
    action,
    always_reachable,
    choose,
    constant,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    invariant,
    leads_to,
    lemma,
    liveness,
    number,
    one_of,
    optional,
    per,
    require,
    scopes,
    set_of,
    some,
    sometimes,
    step_property,
)

TABLET = Actor("tablet leader")
NETWORK = Actor("network")
MAX_RETRIES = 1  # `index_backfill_rpc_max_retries`, there 150


class Row(Enum):
    """The rows of the tablet in the order of their keys."""

    first = auto()
    second = auto()
    third = auto()


class Until(Enum):
    """`backfilled_until` of an index: no entry, the key of the next row, or the empty key: all is done."""

    never_begun = auto()
    second = auto()
    third = auto()
    end = auto()


class Chunk(Enum):
    """The chunk that the master has asked for."""

    none = auto()
    asked = auto()
    written = auto()  # the tablet server has written entries; its answer is not there yet
    answered = auto()
    failed = auto()  # it timed out, or its messages were lost


_UNTIL = list(Until)


class BackfillChunks(Machine):
    """One tablet is scanned chunk by chunk for the indexes of a job."""

    lost = fault_budget(doc="requests and answers that are lost")
    failovers = fault_budget(1, doc="changes of the master leader")
    exercised_at = scopes({Index: 1}, {failovers: 0}, {}, {Index: 1, failovers: 2})

    # in the sys catalog
    job = per(Index, one_of(Status, init=Status.in_progress))
    until = per(Index, one_of(Until, init=Until.never_begun))
    # the master leader's memory (`BackfillTablet`, `BackfillChunk`)
    reached = per(Index, one_of(Until, init=Until.never_begun))
    chunk: OneVar[Chunk] = one_of(Chunk, init=Chunk.none)
    retries: NumberVar = number(0, MAX_RETRIES)
    # the chunk, and what is answered to it
    start: OneVar[Until] = one_of(Until, init=Until.never_begun)
    stop: OneVar[Until] = one_of(Until, init=Until.never_begun)
    late: OptionalVar[Index] = optional(Index)  # its entries were not written in time
    # the index tables
    entries = per(Index, set_of(Row))
    duplicate = constant(per(Index, optional(Row, init=ANY)))  # a row that violates its constraint
    # what has happened
    answered = per(Index, one_of(Until, init=Until.never_begun))  # and was heard by a master leader
    lost_in_a_row: NumberVar = number(0, MAX_RETRIES + 1)
    gave_up: FlagVar = flag()

    # -- the master leader -----------------------------------------------------------------------------------

    @action(by=MASTER, fair=WEAK)
    def ask(self, start: Term[Until]) -> None:
        """BackfillChunk: the next rows, from the least key that an index has reached."""
        require(self.chunk == Chunk.none, "no chunk is going on")
        require(self._is_next(start), "an index needs these rows, and none an earlier one")
        self.chunk = Chunk.asked
        self.start = start

    @action(by=MASTER, fair=WEAK)
    def record_checkpoint(self) -> None:
        """The answer tells how far the tablet server came: that is written before the next chunk."""
        require(self.chunk == Chunk.answered, "an answer is there")
        for i in Index:
            new = choose(self._came_further(i), self.stop, self.reached[i])
            self.reached[i] = new
            self.until[i] = self._recorded(i, new)
            self.answered[i] = new
        self._end_chunk()

    @action(by=MASTER, fair=WEAK)
    def fail_index(self, i: Term[Index], row: Term[Row]) -> None:
        """A row of the chunk violates the constraint of a unique index: the answer names it, and it fails."""
        require(self.chunk == Chunk.asked, "a chunk is asked for")
        require(self.job[i] == Status.in_progress, "index is in progress")
        require(self.duplicate[i] == row, "row violates its constraint")
        self._fail(i)
        self._end_chunk()

    @action(by=MASTER, fair=WEAK)
    def retry(self) -> None:
        """A chunk that failed is asked for once more, after a delay."""
        require(self.chunk == Chunk.failed, "chunk failed")
        require(self.retries < MAX_RETRIES, "a retry is left")
        self.chunk = Chunk.asked
        self.retries = self.retries + 1

    @action(by=MASTER, fair=WEAK)
    def give_up(self) -> None:
        """A chunk failed too often: all indexes of the job fail."""
        require(self.chunk == Chunk.failed, "chunk failed")
        require(self.retries == MAX_RETRIES, "no retry is left")
        for i in Index:
            self.job[i] = Status.failed
        self.gave_up = True
        self.chunk = Chunk.none

    @action(by=MASTER, fair=WEAK)
    def finish(self) -> None:
        """The tablet is done for every index that has not failed."""
        self._tablet_is_done()
        for i in Index:
            left = self.job[i] == Status.in_progress
            self.job[i] = choose(left, Status.success, self.job[i])

    @action(spends=failovers)
    def fail_over(self) -> None:
        """Another master becomes the leader: it goes on from what is recorded, and hears no answer to the old one."""
        for i in Index:
            self.reached[i] = self.until[i]
        self._end_chunk()

    # -- the tablet server -------------------------------------------------------------------------------------

    @action(by=TABLET, fair=WEAK)
    def write_entries(self, stop: Term[Until]) -> None:
        """The tablet server reads rows until a page, or the time, is full, and writes their index entries."""
        self._write(stop)
        self.late = None

    @action(by=TABLET)
    def write_entries_of_some(self, stop: Term[Until], late: Term[Index]) -> None:
        """The same, but the time is up before the entries of one index are written."""
        others = some(self._needs(i) & (i != late) for i in Index)
        require(others, "another index gets entries")
        self._write(stop, late)
        self.late = late

    @action(by=TABLET, fair=WEAK)
    def answer(self) -> None:
        """The entries are written: the tablet server answers how far it came."""
        require(self.chunk == Chunk.written, "entries are written")
        self.chunk = Chunk.answered

    @action(by=NETWORK, spends=lost)
    def lose(self) -> None:
        """The request or its answer is lost, or takes too long; entries may have been written."""
        require(self.chunk.any_of(Chunk.asked, Chunk.written), "a chunk is on its way")
        self.chunk = Chunk.failed
        self.lost_in_a_row = self.lost_in_a_row + 1
        self._forget_answer()

    # -- helpers -------------------------------------------------------------------------------------------------

    def _needs(self, i: Term[Index]) -> Bool:
        """The index has not had the rows of the chunk."""
        return (self.job[i] == Status.in_progress) & (self.reached[i] == self.start)

    def _is_next(self, start: Term[Until]) -> Bool:
        in_progress = Status.in_progress
        least = every(
            (self.job[i] == in_progress).implies(_rows(self.reached[i]) >= _rows(start))
            for i in Index
        )
        needed = some((self.job[i] == in_progress) & (self.reached[i] == start) for i in Index)
        return least & needed & (start != Until.end)

    def _tablet_is_done(self) -> None:
        in_progress = Status.in_progress
        require(some(self.job[i] == in_progress for i in Index), "an index is in progress")
        undone = some((self.job[i] == in_progress) & (self.reached[i] != Until.end) for i in Index)
        require(~undone, "every index in progress has reached the end of the tablet")

    def _came_further(self, i: Term[Index]) -> Bool:
        further = _rows(self.stop) > _rows(self.reached[i])
        return (self.job[i] == Status.in_progress) & (self.late != i) & further

    def _write(self, stop: Term[Until], late: Term[Index] | None = None) -> None:
        require(self.chunk == Chunk.asked, "a chunk is asked for")
        page = _before(stop) - _before(self.start)
        require(self._is_page(page), "it comes further")
        self._no_row_violates(page, late)
        for i in Index:
            written = choose(self._writes(i, late), page, frozenset())
            self.entries[i] = self.entries[i] | written
        self.stop = self._answered_until(stop)
        self.chunk = Chunk.written

    def _no_row_violates(self, page: SetOf[Row], late: Term[Index] | None) -> None:
        violating = some(
            page.has(row) & self._writes(i, late) & (self.duplicate[i] == row)
            for i in Index
            for row in Row
        )
        require(~violating, "no row of the chunk violates a constraint")

    def _is_page(self, page: SetOf[Row]) -> Bool:
        return ~page.is_empty()

    def _recorded(self, i: Term[Index], new: Term[Until]) -> Term[Until]:
        return new

    def _writes(self, i: Term[Index], late: Term[Index] | None) -> Bool:
        writes = self.job[i] == Status.in_progress
        return writes if late is None else writes & (i != late)

    def _answered_until(self, stop: Term[Until]) -> Term[Until]:
        return stop

    def _fail(self, i: Term[Index]) -> None:
        self.job[i] = Status.failed

    def _end_chunk(self) -> None:
        self.chunk = Chunk.none
        self.retries = 0
        self.lost_in_a_row = 0
        self.start = Until.never_begun
        self._forget_answer()

    def _forget_answer(self) -> None:
        self.stop = Until.never_begun
        self.late = None

    # -- promises ------------------------------------------------------------------------------------------------

    @sometimes
    def a_page_is_read_once_for_all_indexes(self, after: Self) -> Bool:
        """002, "Future Work": several indexes are "batched together so that only one scan is done", and "a batched
        write is performed": several rows at a time.
        """
        return every(after.entries[i].size() >= self.entries[i].size() + 2 for i in Index)

    @accepts(write_entries_of_some)
    def no_index_waits_for_another_one(self, late: Term[Index]) -> Bool:
        """002, "Checkpointing": an answer tells "how far it managed to successfully build": entries of one index that take
        too long, from the first row on or later, hold up neither the chunk nor the other indexes.
        """
        others = some(
            (i != late) & (self.job[i] == Status.in_progress) & (self.reached[i] == self.start)
            for i in Index
        )
        sound = every((i == late) | self.duplicate[i].is_none() for i in Index)
        return (self.chunk == Chunk.asked) & others & sound

    @invariant
    def built_indexes_are_complete(self, i: Term[Index], row: Term[Row]) -> Bool:
        """002: "After the index builds are completed, they should be consistent with the data in the primary
        table": every row has its entry, also the last page's (yugabyte-db #5031).
        """
        return (self.job[i] == Status.success).implies(self.entries[i].has(row))

    @invariant
    def checkpoints_tell_what_is_built(self, i: Term[Index], row: Term[Row]) -> Bool:
        """002: the checkpoint represents "how far it managed to successfully build"."""
        before = _place(row) < _rows(self.until[i])
        return before.implies(self.entries[i].has(row))

    @step_property
    def checkpoints_only_advance(self, after: Self, i: Term[Index]) -> Bool:
        """002: "The entire build process should not need to restart on a node failure in the cluster."""
        return _rows(after.until[i]) >= _rows(self.until[i])

    @step_property
    def only_the_last_chunk_is_repeated(self, after: Self) -> Bool:
        """002: "The YB-Master persists the checkpointing info": what was answered is not asked for again."""
        asks = (self.chunk == Chunk.none) & (after.chunk == Chunk.asked)
        new = some(
            (self.job[i] == Status.in_progress) & (self.answered[i] == after.start) for i in Index
        )
        return asks.implies(new & (after.start != Until.end))

    @lemma
    @invariant
    def violated_constraints_fail_the_index(self, i: Term[Index]) -> Bool:
        """002: "If a problem arises while scanning the table, such as a unique constraint violation in a unique index,
        the CREATE INDEX command should abort and result in a failure." A lemma: a built index has an entry of every row
        (`built_indexes_are_complete`), and a row that violates it has none (`keys_are_not_taken_from_other_rows`).
        """
        return (self.job[i] == Status.success).implies(self.duplicate[i].is_none())

    @invariant
    def keys_are_not_taken_from_other_rows(self, i: Term[Index], row: Term[Row]) -> Bool:
        """002, "Detecting constraint violations": "A unique index will accept the writes only if" no other row has the key:
        the row that violates it gets no entry, also none that a later look at the whole index would find.
        """
        return (self.duplicate[i] == row).implies(~self.entries[i].has(row))

    @step_property
    def results_are_for_good(self, after: Self, i: Term[Index]) -> Bool:
        """002: "the status (IN-PROGRESS, SUCCESS, FAILED)": the last two are the end, also for the next leader: a build that
        "should abort" is not begun again.
        """
        over = self.job[i].any_of(Status.success, Status.failed)
        return over.implies(after.job[i] == self.job[i])

    @invariant
    def failure_is_per_index(self, i: Term[Index]) -> Bool:
        """An index fails for a violation of its own, or because chunks were lost again and again
        (yugabyte-db #6290).
        """
        own = self.duplicate[i].is_some() | self.gave_up
        return (self.job[i] == Status.failed).implies(own)

    @step_property
    def lost_messages_are_retried(self, after: Self) -> Bool:
        """A chunk is tried again `index_backfill_rpc_max_retries` times before the job is given up."""
        return (after.gave_up & ~self.gave_up).implies(self.lost_in_a_row > MAX_RETRIES)

    @final
    def every_index_has_a_result(self) -> Bool:
        """A tablet that is done, or whose indexes have failed, may stay as it is."""
        return every(self.job[i] != Status.in_progress for i in Index)

    @always_reachable
    def every_index_can_have_a_result(self) -> Bool:
        """Whatever is lost, the job can end."""
        return every(self.job[i] != Status.in_progress for i in Index)

    @liveness
    def every_index_is_built_or_fails(self, i: Term[Index]) -> LeadsTo:
        """The job comes to an end for every index: failed chunks are "bubbled up" (yugabyte-db #3627)."""
        in_progress = self.job[i] == Status.in_progress
        return leads_to(in_progress, ~in_progress)

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(
            fail_index,
            "a chunk is asked for",
            because="a row that violates it is found by this chunk or by a later one",
        ),
        equivalent_loss(give_up, chunk, because="no index is left to ask for"),
        equivalent_loss(fail_over, reached, because="what the old leader knew it had recorded"),
        equivalent_loss(write_entries, late, because="no index is late when a chunk is asked for"),
        equivalent_drop(
            _tablet_is_done,
            "an index is in progress",
            because="it changes nothing where no index is in progress",
        ),
        equivalent_loss(
            write_entries_of_some,
            chunk,
            because="entries may be written more than once before the answer",
        ),
        equivalent_loss(_end_chunk, start, because="the next chunk has its own"),
        equivalent_loss(_forget_answer, stop, late, because="the next answer overwrites it"),
        equivalent_replacement(_end_chunk, "start becomes", because="the next chunk has its own"),
        equivalent_replacement(
            _forget_answer, "stop becomes", because="the next answer overwrites it"
        ),
        equivalent_replacement(
            _write,
            "answered for written",
            because="an answer may be there as soon as the entries are",
        ),
    )


def _before(until: Term[Until]) -> SetOf[Row]:
    return until.column(lambda u: frozenset(list(Row)[: _UNTIL.index(u)]))


def _rows(until: Term[Until]) -> Number:
    """So many rows are done."""
    return until.number_column(_UNTIL.index)


def _place(row: Term[Row]) -> Number:
    return row.number_column(list(Row).index)
