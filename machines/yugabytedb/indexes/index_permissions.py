"""The permissions of one index, and CREATE INDEX, BACKFILL and DROP INDEX as clients see them.

A build goes on by itself (`index_life.py`), and has a status.

An index may also be created without its build, which a statement begins later: then several that wait are built
with one scan (`backfill_job.py`).
"""

from __future__ import annotations

from typing import Self

from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, MASTER, WEAK, Server
from stagewright.machines.yugabytedb.indexes.index_life import VERSION_SAYS_IT, IndexLife, Job
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.spec import (
    Bool,
    FlagVar,
    LeadsTo,
    OptionalVar,
    Term,
    accepts,
    action,
    always_reachable,
    choose,
    equivalent_drop,
    equivalents,
    every,
    final,
    flag,
    history,
    independent,
    invariant,
    leads_to,
    lemma,
    liveness,
    only_when,
    optional,
    require,
    sometimes,
    step_property,
)


class IndexPermissions(IndexLife):
    """One index, and the clients that create it, begin its build, ask for its status, and drop it.

    CREATE INDEX is asynchronous. (Postgres, too, hands the build over; its own statement then waits for the status.)
    An index that is being removed, or is not there any more, has failed, unless a client has dropped it.

    Profiles: as of `IndexLife`.
    """

    told: OptionalVar[Status] = optional(Status)  # what the client was last answered
    told_dropped: FlagVar = flag()  # DROP INDEX was answered: done
    deferred: FlagVar = flag()  # the build waits for a statement of its own
    begun: FlagVar = history(flag())  # that statement was executed

    @IndexLife.permission.step(Permission.absent, Permission.delete_only, by=CLIENT)
    def create_deferred_index(self) -> None:
        """002, "Future Work": a user can create indexes "without the build immediately starting"."""
        only_when(self.era.deferral)
        self._never_existed()
        self._enter()
        self.deferred = True

    @action(by=CLIENT)
    def backfill_indexes(self) -> None:
        """002, "Future Work": "Backfill needs to be kicked off by the user using an explicit command"."""
        only_when(self.era.deferral)
        require(self.deferred, "the build is deferred")
        self.begun = self.begun | self.deferred
        self.deferred = False

    @action(by=MASTER, fair=WEAK)
    def launch_backfill(self) -> None:
        """Every server is at DO_BACKFILL: the job begins, unless it is deferred."""
        self._is_to_be_built()
        self._launch()

    @action(by=CLIENT, fair=WEAK)
    def ask_for_status(self) -> None:
        """002, "Handle CREATE INDEX statement": it is possible "to query and determine the status"."""
        require(self.version > 0, "CREATE INDEX was executed")
        require(~self.drop_requested, "no client has dropped the index")
        self.told = self._status()

    @action(by=CLIENT, fair=WEAK)
    def answer_drop(self) -> None:
        """The client that waits is told that its index is gone."""
        only_when(self.era.stepwise_removal or self.era.postgres)
        require(~self.told_dropped, "it was not told")
        self._is_gone()
        self.told_dropped = True

    def _is_to_be_built(self) -> None:
        if self.era.deferral:
            require(~self.deferred, "the build is not deferred")

    def _status(self) -> Term[Status]:
        there = self.permission.column(lambda p: p.kept)
        unfinished = choose(there, Status.in_progress, Status.failed)
        return choose(self._is_ready(), Status.success, unfinished)

    def _is_ready(self) -> Bool:
        """The index is built, and clients are served the permission that says so."""
        return (self.permission == Permission.read_write_and_delete) & self.fully_applied.is_none()

    def _is_gone(self) -> None:
        require(self.is_gone(), "the index is gone")

    # -- promises ------------------------------------------------------------------------------------

    @accepts(ask_for_status)
    def the_status_can_be_asked_for(self) -> Bool:
        """002: "It would be possible to query and determine the status (IN-PROGRESS, SUCCESS, FAILED)": at any time."""
        return (self.version > 0) & ~self.drop_requested

    @accepts(IndexLife.create_index)
    def indexes_are_created_at_once(self) -> Bool:
        """002: "CREATE INDEX command is asynchronous": whatever the rows are, which the build is to look at."""
        only_when(self.era.created_at is Permission.delete_only)
        return self.version == 0

    @accepts(IndexLife.drop_index)
    def indexes_are_dropped_at_any_time(self) -> Bool:
        """DROP INDEX does not wait for the build, which asynchronously goes on; nor for servers that are behind."""
        only_when(self.era.stepwise_removal)
        return self.permission.column(lambda p: p.kept)

    @accepts(IndexLife.report)
    def servers_report_independently(self, s: Term[Server]) -> Bool:
        """002, "Create the index table": the "HandleAlterTable() call completes on all the tablets": on each in its own time, whichever
        others have applied the schema.
        """
        return (self.learned_version[s] == self.version) & ~self.reported.has(s)

    @accepts(IndexLife.finish_backfill)
    def backfills_end_unasked(self) -> Bool:
        """002, "Handle CREATE INDEX statement": "The CREATE INDEX command is asynchronous": the job goes on to its end, whether or not
        anybody has asked for it.
        """
        return (self.job == Job.running) & ~self.violates_constraint

    @accepts(IndexLife.find_violation)
    def violations_fail_the_build_unasked(self) -> Bool:
        """002, Design Goals: if there is "a unique constraint violation in a unique index, the CREATE INDEX command should abort":
        whether or not anybody is there to hear of it.
        """
        return (self.job == Job.running) & self.violates_constraint

    @accepts(IndexLife.stop_writes)
    def removed_indexes_are_not_written_for_a_job(self) -> Bool:
        """002, Design Goals: an index on its way out is "cleaned up and deleted": also while the job that was to build it goes on,
        which writes nothing to it any more.
        """
        only_when(self.era.stepwise_removal)
        known = every(self.reported.has(s) for s in Server)
        return known & (self.permission == Permission.write_and_delete_while_removing)

    @accepts(IndexLife.stop_deletes)
    def removed_indexes_are_not_maintained_for_a_job(self) -> Bool:
        """002, Design Goals: the same of its deletes."""
        only_when(self.era.stepwise_removal)
        known = every(self.reported.has(s) for s in Server)
        return known & (self.permission == Permission.delete_only_while_removing)

    @accepts(IndexLife.delete_index)
    def unused_indexes_are_deleted(self) -> Bool:
        """002, Design Goals: an index that no server uses any more is "cleaned up and deleted": also while the job that was to
        build it goes on, for nobody.
        """
        only_when(self.era.stepwise_removal)
        known = every(self.reported.has(s) for s in Server)
        return (self.permission == Permission.index_unused) & known

    @step_property
    def results_are_told_at_once(self, after: Self) -> Bool:
        """002, "Handle CREATE INDEX statement": the status is IN-PROGRESS, SUCCESS or FAILED: who asks when every server reads
        the index, or when its removal has begun, does not hear IN-PROGRESS, if it is for the first time, either.
        """
        in_progress = self.told.is_none() & (after.told == Status.in_progress)
        published = self.permission == Permission.read_write_and_delete
        known = (published & self.fully_applied.is_none()) | self._removed()
        return in_progress.implies(~known)

    @step_property
    def deferred_builds_wait_for_their_statement(self, after: Self) -> Bool:
        """002, "Future Work": the build begins with "BUILD/BACKFILL index <indexed_table>", and not before, nor with another
        statement.
        """
        only_when(self.era.deferral)
        begins = (self.job == Job.none) & (after.job == Job.running)
        ends = self.deferred & ~after.deferred
        return begins.implies(~self.deferred) & ends.implies(after.begun)

    @accepts(backfill_indexes)
    def deferred_builds_can_be_begun(self) -> Bool:
        """At any time: also before every server maintains the index, which the build then waits for."""
        only_when(self.era.deferral)
        return self.deferred

    @always_reachable
    def deferrals_can_end(self) -> Bool:
        """Whatever has happened, the statement takes effect: nothing is deferred any more."""
        return ~self.deferred

    @sometimes
    def deferred_indexes_are_maintained(self) -> Bool:
        """An index that waits gets what clients write: only the rows of before are left to the build."""
        only_when(self.era.deferral)
        maintained = every(self.learned[s].column(lambda p: p.write) for s in Server)
        return self.deferred & maintained & (self.job == Job.none)

    @liveness
    def builds_end(self) -> LeadsTo:
        """002: the command results in an index that serves reads, or "should abort and result in a failure"; that of a build
        which was deferred, too, whenever it was executed.
        """
        built = self.permission == Permission.read_write_and_delete
        begun = self.permission.column(lambda p: p.kept) & (self.begun | ~self.deferred)
        return leads_to(begun, built | self._removed())

    @final
    def at_rest(self) -> Bool:
        """An index may stay ready, absent or gone, and without its build as long as that is deferred."""
        waits = self.deferred & (self.permission == self.backfilled_at())
        known = every(self.learned_version[s] == self.version for s in Server)
        return super().at_rest() | (waits & known)

    @sometimes
    def create_index_does_not_wait(self) -> Bool:
        """002: "The CREATE INDEX command is asynchronous, it does not wait for the index backfill to complete"."""
        return (self.told == Status.in_progress) & (self.job == Job.running)

    @sometimes
    def clients_hear_of_success(self) -> Bool:
        """002, "Handle CREATE INDEX statement": the status can be SUCCESS: some build is not a failure."""
        return self.told == Status.success

    @lemma
    @sometimes
    def clients_hear_of_failures(self) -> Bool:
        """002, Design Goals: "CREATE INDEX command should abort and result in a failure"; the client hears so. A lemma:
        `clients_learn_the_result`, and SUCCESS, when every server reads the index, is not that of one which violates.
        """
        return (self.told == Status.failed) & self.violates_constraint

    @step_property
    def success_means_that_every_server_reads(self, after: Self, s: Term[Server]) -> Bool:
        """The build has succeeded when every server has the final permission (yugabyte-db #6234). 002, Design Goals: after that the
        index is "consistent with the data in the primary table": whose removal has begun meanwhile is no success, whatever
        its job has come to.
        """
        succeeds = (self.told != Status.success) & (after.told == Status.success)
        serves = self.learned[s].column(lambda p: p.read) & ~self._removed()
        return succeeds.implies(serves)

    @invariant
    def failure_means_that_the_index_goes(self) -> Bool:
        """002, Design Goals: an index of which FAILED is reported is not built after all: it is "cleaned up and deleted", or is
        to be as soon as the job has written so.
        """
        return (self.told == Status.failed).implies(self._removed() | (self.job == Job.failed))

    @step_property
    def results_are_final(self, after: Self) -> Bool:
        """002: the status is IN-PROGRESS, then SUCCESS or FAILED, which stays, also when the index is gone."""
        final = self.told.any_of(Status.success, Status.failed)
        return final.implies(after.told == self.told)

    @liveness
    def clients_learn_the_result(self) -> LeadsTo:
        """A client that has begun a build, and goes on asking, hears SUCCESS or FAILED, unless the index is dropped first."""
        known = self.told.any_of(Status.success, Status.failed)
        begun = (self.version > 0) & ~self.deferred
        return leads_to(begun, known | self.drop_requested)

    @invariant
    def dropped_means_gone(self) -> Bool:
        """DROP INDEX is done when the index is deleted (yugabyte-db #16163)."""
        return self.told_dropped.implies(self.is_gone())

    @lemma
    def failures_are_told_again(self) -> Bool:
        """Who has heard of a failure, and asks once more, is told the same, unless the index was dropped."""
        again = self._status() == Status.failed
        return (self.told == Status.failed).implies(again | self.drop_requested)

    @lemma
    def success_was_published(self) -> Bool:
        """SUCCESS is reported of an index that is published, and of which every server knows."""
        published = (self.permission == Permission.read_write_and_delete) & (
            self.fully_applied.is_none()
        )
        return (self.told == Status.success).implies(published | self.drop_requested)

    @liveness
    def drops_are_answered(self) -> LeadsTo:
        """A client that waits until its index is gone is told so."""
        only_when(self.era.stepwise_removal or self.era.postgres)
        return leads_to(self.is_gone(), self.told_dropped)

    @independent(
        IndexLife.create_index,
        IndexLife.drop_index,
        create_deferred_index,
        backfill_indexes,
        ask_for_status,
        answer_drop,
        of=(IndexLife.job, IndexLife.violates_constraint, begun),
    )
    def no_statement_waits_for_a_job(self) -> None:
        """002, "Handle CREATE INDEX statement": a command "does not wait for the index backfill to complete", nor for what it would find:
        not DROP INDEX, either, of which the answer is that the index is gone.
        """

    @independent(
        IndexLife.allow_writes,
        IndexLife.allow_backfill,
        launch_backfill,
        IndexLife.finish_backfill,
        IndexLife.find_violation,
        IndexLife.publish,
        IndexLife.finish_alter,
        IndexLife.give_up,
        IndexLife.forget_job,
        IndexLife.delete_failed_index,
        IndexLife.stop_writes,
        IndexLife.stop_deletes,
        IndexLife.delete_index,
        IndexLife.learn,
        IndexLife.report,
        of=(told, told_dropped, begun),
    )
    def no_build_waits_for_who_asks(self) -> None:
        """002, Design Goals: "The index build itself will occur asynchronously", its end too, and what follows a failure: whatever
        clients have been told.
        """

    @independent(IndexLife.allow_writes, IndexLife.learn, IndexLife.report, of=deferred)
    def deferred_indexes_get_what_is_written(self) -> None:
        """002, "Future Work": the build alone waits for its statement: what clients write until then is not left to it."""

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(create_deferred_index, "permission is absent", because=VERSION_SAYS_IT),
        equivalent_drop(
            backfill_indexes,
            "the build is deferred",
            because="where no build waits nothing changes",
        ),
        equivalent_drop(answer_drop, "it was not told", because="a second answer says the same"),
    )
