"""Mistakes put back into `UniqueIndex`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_table import WEAK
from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, MASTER
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.machines.yugabytedb.indexes.unique_index import (
    BEFORE_T_READ,
    TIMES,
    UP_TO_T_READ,
    Key,
    Row,
    Time,
    UniqueIndex,
)
from stagewright.spec import Bool, Maybe, Term, action, choose, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in

ONLINE = 'design document 002: "without locking out reads or writes"'
BATCHED = 'design document 002: "a batched write is performed"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "002-20",
    'design document 002: once published, the index "is completely rebuilt"',
    breaks=UniqueIndex.the_index_names_the_row_that_has_the_key,
    sizes={Key: 1},
    budgets={UniqueIndex.writes: 1},
)
class OneOperationForAKey(UniqueIndex):
    """A transaction that deletes a row and inserts another with its key keeps one operation for the key: the delete."""

    @action(by=CLIENT, spends=UniqueIndex.writes)
    def hand_over(self, r: Term[Row], q: Term[Row], k: Term[Key], time: Term[Time]) -> None:
        """The key goes from row to row, and out of the index."""
        require(self.key[r] == k, "the first row has the key")
        require(self.key[q].is_none(), "there is no such second row")
        self._commit(time)
        before = time.any_of(*UP_TO_T_READ)
        for each in Row:
            key = choose(each == r, None, choose(each == q, k, self.key[each]))
            self.key_at_t_read[each] = choose(before, key, self.key_at_t_read[each])
            self.key[each] = key
        self.stored[k][time].delete_marker = True


@known_bug(
    "002-366",
    'design document 002: "The entire build process should not need to restart"',
    breaks=UniqueIndex.rows_are_backfilled_for_good,
    sizes={Key: 1},
    budgets={UniqueIndex.writes: 1},
)
class CommitsBeginTheScanAnew(UniqueIndex):
    """Checks forwards in time are made once more, of all rows, when a transaction has committed behind the scan."""

    def _commit(self, time: Term[Time]) -> None:
        super()._commit(time)
        self.backfilled = frozenset[Row]()


@known_bug(
    "002-71",
    'design document 002: the command "should abort and result in a failure"',
    breaks=UniqueIndex.results_are_for_good,
    sizes={Key: 1},
    budgets={UniqueIndex.writes: 0},
)
class FailedBuildsAreBegunAgain(UniqueIndex):
    """A build that has found two rows with one key is begun again, as if it had been lost."""

    @action(by=MASTER, fair=WEAK)
    def begin_again(self) -> None:
        """The build has failed."""
        require(self.build == Status.failed, "the build has failed")
        self.build = Status.in_progress


@known_bug(
    "002-122",
    "design document 002, Detecting constraint violations",
    breaks=UniqueIndex.no_row_takes_a_key_from_another,
    sizes={Key: 1},
    budgets={UniqueIndex.writes: 2},
)
class WritesLookAtTheScan(UniqueIndex):
    """A client was given a key that another row had got since the index is maintained, for only what is scanned, or came
    later, was looked at: the build found both, and failed.
    """

    def holder(self, k: Term[Key]) -> Maybe[Row]:
        return self._newest(k, TIMES[TIMES.index(Time.t_read) :])


@known_bug(
    "002-160",
    BATCHED,
    breaks=UniqueIndex.entries_are_written_in_batches,
    budgets={UniqueIndex.writes: 0},
)
class RowsAreWrittenOneByOne(UniqueIndex):
    """The rows of a batch were checked together, and one of them was written before the others were read again."""

    @action(fair=WEAK)
    def backfill(self, r: Term[Row], q: Term[Row]) -> None:
        """A batch passes the checks, and a row of it is written to the index."""
        require(~self.is_duplicate(q), "the other row of the batch passes the checks, too")
        super().backfill(r, r)


@known_bug(
    "002-183",
    "design document 002, Detecting constraint violations",
    breaks=UniqueIndex.published_keys_are_unique,
    sizes={Key: 1},
    budgets={UniqueIndex.writes: 2},
)
class KeysThatNobodyHasAreLeftOut(UniqueIndex):
    """A row whose key nobody had any more was passed over, as its entry would be hidden at once: that two rows had shared it
    at `t_read` was not found out.
    """

    @action(fair=WEAK)
    def leave_out(self, r: Term[Row]) -> None:
        """The key of the row went out of the table."""
        require(self.build == Status.in_progress, "the build is running")
        self._t_read_is_past()
        had = some((self.key_at_t_read[r] == k) & every(self.key[o] != k for o in Row) for k in Key)
        require(had, "nobody has its key any more")
        self.backfilled.add(r)


@known_bug(
    "Z08",
    "yugabyte-db #5811",
    breaks=UniqueIndex.published_keys_are_unique,
    sizes={Key: 1},
    budgets={UniqueIndex.writes: 0},
)
class ChecksReadAtAnotherTime(UniqueIndex):
    """The check read the index at time 50, at which there was nothing: two rows of before got one key."""

    def _previous(self, k: Term[Key]) -> Maybe[Row]:
        return self._newest(k, [Time.before_index])


@known_bug(
    "Z10",
    "yugabyte-db #30312",
    breaks=UniqueIndex.no_false_duplicate,
    sizes={Key: 1},
    budgets={UniqueIndex.writes: 1},
)
class LastOfTheNextVersions(UniqueIndex):
    """A transaction deleted the row and inserted another with its key, both at one hybrid time: the check
    looked at the last of that time's versions instead of the first, and saw a duplicate.
    """

    def _next(self, k: Term[Key]) -> Maybe[Row]:
        found = self._nothing(k)
        for t in (Time.latest, Time.later):
            at = self.stored[k][t]
            found = choose(at.delete_marker | at.row.is_some(), at.row, found)
        return found


@known_bug(
    "Z11",
    "yugabyte-db #3611",
    breaks=UniqueIndex.no_false_duplicate,
    sizes={Key: 1},
    budgets={UniqueIndex.writes: 1},
)
class OwnEntryTakenForADuplicate(UniqueIndex):
    """The check did not ask which row an entry is of: a chunk that was tried again, or a row that had been
    written to the index meanwhile, was its own duplicate.
    """

    def _conflicts(self, holder: Maybe[Row], r: Term[Row]) -> Bool:
        del r  # nobody asks
        return holder.is_some()


@known_bug(
    "Z65",
    "design document 002",
    breaks=UniqueIndex.published_keys_are_unique,
    sizes={Key: 1},
    budgets={UniqueIndex.writes: 0},
)
class EqualTimesAreNotBefore(UniqueIndex):
    """Backwards in time left `t_read` itself out, with which all that is backfilled is written: two rows with
    one key do not see each other. Not splitting a batch with both does the same.
    """

    def _previous(self, k: Term[Key]) -> Maybe[Row]:
        return self._newest(k, BEFORE_T_READ)


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "002-48",
    ONLINE,
    breaks=UniqueIndex.deletes_are_not_locked_out,
    sizes={Key: 1},
    budgets={UniqueIndex.writes: 1},
)
class KeysAreGivenUpAfterTheBuild(UniqueIndex):
    """A row is not deleted before it is known whether its key is unique."""

    @action(by=CLIENT, spends=UniqueIndex.writes)
    def delete(self, r: Term[Row], k: Term[Key], time: Term[Time]) -> None:
        """The index is built."""
        super().delete(r, k, time)
        require(self.build != Status.in_progress, "the index is built")


@known_bug(
    "002-49",
    ONLINE,
    breaks=UniqueIndex.updates_are_refused_only_if_the_key_is_taken,
    budgets={UniqueIndex.writes: 1},
)
class KeysChangeAfterTheBuild(UniqueIndex):
    """A row keeps its key until it is known whether that is unique."""

    @action(by=CLIENT, spends=UniqueIndex.writes)
    def update(self, r: Term[Row], old: Term[Key], k: Term[Key], time: Term[Time]) -> None:
        """The index is built."""
        super().update(r, old, k, time)
        require(self.build != Status.in_progress, "the index is built")


@known_bug(
    "002-72",
    ONLINE,
    breaks=UniqueIndex.keys_that_no_row_has_are_free,
    budgets={UniqueIndex.writes: 2},
)
class NothingIsInsertedAfterAFailure(UniqueIndex):
    """No row is inserted while the index of a build that has failed is still there."""

    @action(by=CLIENT, spends=UniqueIndex.writes)
    def insert(self, r: Term[Row], k: Term[Key], time: Term[Time]) -> None:
        """The build has not failed."""
        require(self.build != Status.failed, "the build has not failed")
        super().insert(r, k, time)


@known_bug(
    "002-120",
    'design document 002, Design Goals: "without locking out reads or writes"',
    breaks=UniqueIndex.keys_are_handed_over_at_any_time,
    sizes={Key: 1},
    budgets={UniqueIndex.writes: 1},
)
class KeysStayWhileItIsBuilt(UniqueIndex):
    """A transaction that deletes a row and inserts another with its key was refused until the index was published."""

    @action(by=CLIENT, spends=UniqueIndex.writes)
    def hand_over(self, r: Term[Row], q: Term[Row], k: Term[Key], time: Term[Time]) -> None:
        """The key goes from row to row when the build is over."""
        super().hand_over(r, q, k, time)
        require(self.build != Status.in_progress, "no build is running")


@known_bug(
    "002-184",
    'design document 002, Detecting constraint violations: "scan backwards in time"',
    breaks=UniqueIndex.violations_are_found,
    sizes={Key: 1},
    budgets={UniqueIndex.writes: 1},
)
class EarlierEntriesAreLeftToTheirRows(UniqueIndex):
    """A row that met an entry which a client had written before `t_read` did not fail the build, which went on until the row
    of that entry was scanned.
    """

    @action(fair=WEAK)
    def find_duplicate(self, r: Term[Row]) -> None:
        """A row meets another one that was scanned, or was written later."""
        super().find_duplicate(r)
        met = some(
            (self.key_at_t_read[r] == k)
            & (self._is_of_another(r, k, Time.t_read) | self._is_entered_after(r, k))
            for k in Key
        )
        require(met, "the other row was scanned, or was written later")


@known_bug(
    "002-185",
    'design document 002: "These generated writes are batched"',
    breaks=UniqueIndex.rows_without_a_rival_are_backfilled,
    budgets={UniqueIndex.writes: 1},
)
class RowsOfClientsAreWrittenAlone(UniqueIndex):
    """A row that a client had written since the index is maintained has its entry, and was in no batch with others."""

    @action(fair=WEAK)
    def backfill(self, r: Term[Row], q: Term[Row]) -> None:
        """A batch of rows of before."""
        super().backfill(r, q)
        written = some(
            (self.stored[k][t].row == row) for row in (r, q) for k in Key for t in BEFORE_T_READ
        )
        require((r == q) | ~written, "no client has written them")


@known_bug(
    "Y18",
    "design document 002",
    breaks=UniqueIndex.keys_that_no_row_has_are_free,
    sizes={Key: 1},
    budgets={UniqueIndex.writes: 2},
)
class DeletedKeysStayTaken(UniqueIndex):
    """A delete marker is retained, and the entry below it is taken for the row's: a key that was deleted while the index
    is built is refused to every other row.
    """

    def holder(self, k: Term[Key]) -> Maybe[Row]:
        found = self._nothing(k)
        for t in Time:
            row = self.stored[k][t].row
            found = choose(row.is_some(), row, found)
        return found


BUGS = known_bugs_in(globals())
