"""Mistakes put back into `IndexPermissions`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK
from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, Server
from stagewright.machines.yugabytedb.indexes.index_life import Job
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.spec import Bool, Term, action, choose, every, fault_budget, only_when, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

FINALIZE = 'design document 002, "Finalize the index"'
ASYNCHRONOUS = 'design document 002: "The CREATE INDEX command is asynchronous"'
ABORTS = 'design document 002: the command "should abort and result in a failure"'
ON_ALL_NODES = (
    'design document 002: HandleAlterTable() "initiates a schema change on all the nodes"'
)
CREATE_TABLE = 'design document 002, "Create the index table"'
ASKED = "a client has asked for the status"
CLEANED_UP = 'design document 002: "An aborted index will be cleaned up and deleted"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "002-39",
    "design document 002, Design Goals: constraint violations",
    breaks=IndexPermissions.a_published_index_violates_nothing,
)
class ViolationsAreLogged(IndexPermissions):
    """A row that violates a constraint is found in the logs, and the index is published without it."""

    @action(by=MASTER, fair=WEAK)
    def finish_backfill(self) -> None:
        """The rows of all tablets were read."""
        require(self.job == Job.running, "the job is running")
        self.job = Job.success


@known_bug(
    "002-369",
    ABORTS,
    breaks=IndexPermissions.failed_builds_are_not_begun_again,
)
class FailedJobsAreLaunchedAgain(IndexPermissions):
    """That a job has failed is what a leader remembers: the next one finds an index at DO_BACKFILL, and launches a job."""

    faults = fault_budget(1, doc="changes of the master leader")

    @action(spends=faults)
    def fail_over(self) -> None:
        """Another master becomes the leader."""
        self.job = choose(self.job == Job.failed, Job.none, self.job)


@known_bug(
    "002-40",
    'design document 002: "An aborted index will be cleaned up and deleted"',
    breaks=IndexPermissions.failure_means_that_the_index_goes,
)
class WhoHasWaitedLongHearsOfAFailure(IndexPermissions):
    """A client that has waited long is told FAILED of a job that goes on, and hears nothing else when its index is built."""

    @action(by=CLIENT)
    def lose_patience(self) -> None:
        """The answer is an error, as if there were none to come."""
        require(self.job == Job.running, "the job is running")
        require(~self.drop_requested, "no client has dropped the index")
        require(self.told != Status.success, "there is no result yet")
        self.told = Status.failed

    def _status(self) -> Term[Status]:
        return choose(self.told == Status.failed, Status.failed, super()._status())


@known_bug(
    "002-41",
    'design document 002: "it does not wait for the index backfill to complete"',
    breaks=IndexPermissions.create_index_does_not_wait,
)
class TheStatusIsTheResult(IndexPermissions):
    """A client that asks is answered when there is a result: nobody ever hears IN-PROGRESS."""

    @action(by=CLIENT, fair=WEAK)
    def ask_for_status(self) -> None:
        """A client asks, and hears something if the build is over."""
        require(self.version > 0, "CREATE INDEX was executed")
        require(~self.drop_requested, "no client has dropped the index")
        status = self._status()
        self.told = choose(status == Status.in_progress, self.told, status)


@known_bug(
    "002-69",
    "design document 002: the status is IN-PROGRESS, SUCCESS or FAILED",
    breaks=IndexPermissions.clients_hear_of_success,
)
class NoBuildSucceeds(IndexPermissions):
    """The answer of the last tablet ends the job, and a job that ends before it has succeeded has failed."""

    @action(by=MASTER, fair=WEAK)
    def finish_backfill(self) -> None:
        """The rows of all tablets are in the index."""
        require(self.job == Job.running, "the job is running")
        require(~self.violates_constraint, "no row violates a constraint")
        self.job = Job.failed


@known_bug(
    "002-180",
    'design document 002: only if "another change is required" there is "another round of schema changes"',
    breaks=IndexPermissions.rounds_are_made_for_a_change,
)
class WhatWasDroppedIsGivenUp(IndexPermissions):
    """DROP INDEX came while the job was failing, which wrote once more that the index is to be removed: every server had
    another version of the schema to apply, with nothing new in it.
    """

    def _is_not_past(self, permission: Permission) -> None:
        require(
            (self.permission == permission) | ~self._is_past(permission),
            "the index is not past the permission",
        )


@known_bug(
    "002-190",
    "design document 002, DROP INDEX: the permissions are taken back one after the other",
    breaks=IndexPermissions.permissions_only_grow,
)
class TheUnusedIndexIsEmptiedAgain(IndexPermissions):
    """A job that failed late did not look whether the index was unused already: its deletes were allowed once more."""

    @IndexPermissions.permission.step(
        Permission.index_unused, Permission.delete_only_while_removing, by=MASTER
    )
    def give_up_late(self) -> None:
        """The job writes that the index is to be removed."""
        require(self.job == Job.failed, "the job has failed")
        self._all_reported()
        self._enter()
        self.job = Job.none


@known_bug(
    "002-247",
    'design document 002: "without the build immediately starting"',
    breaks=IndexPermissions.deferred_builds_wait_for_their_statement,
)
class AskingBeginsTheBuild(IndexPermissions):
    """Who asked for the status of an index whose build was deferred began it."""

    @action(by=CLIENT, fair=WEAK)
    def ask_for_status(self) -> None:
        """An index that somebody asks for is wanted."""
        super().ask_for_status()
        self.deferred = False


@known_bug(
    "002-298",
    'design document 002, "Handle CREATE INDEX statement"',
    breaks=IndexPermissions.results_are_told_at_once,
)
class TheFirstAnswerIsInProgress(IndexPermissions):
    """A client that asks is told what was known when somebody asked before: the first hears IN-PROGRESS."""

    def _status(self) -> Term[Status]:
        return choose(self.told.is_none(), Status.in_progress, super()._status())


@known_bug(
    "002-316",
    'design document 002: after the build the index is "consistent with the data in the primary table"',
    breaks=IndexPermissions.success_means_that_every_server_reads,
)
class TheJobIsAsked(IndexPermissions):
    """The status is that of the job: who asks hears SUCCESS of an index that was dropped while its rows were scanned."""

    @action(by=CLIENT, fair=WEAK)
    def ask_for_status(self) -> None:
        succeeded = self.drop_requested & (self.job == Job.success) & (self.told != Status.failed)
        require(self.version > 0, "CREATE INDEX was executed")
        require(~self.drop_requested | succeeded, "no client has dropped the index, or it is built")
        self.told = choose(succeeded, Status.success, self._status())


@known_bug("Y08", "design document 002", breaks=IndexPermissions.create_index_does_not_wait)
class CreateIndexWaits(IndexPermissions):
    """The client hears of its index when the build is over, and not before."""

    @action(by=CLIENT, fair=WEAK)
    def ask_for_status(self) -> None:
        """CREATE INDEX is answered."""
        require(self.version > 0, "CREATE INDEX was executed")
        require(self._status() != Status.in_progress, "the build is over")
        self.told = self._status()


@known_bug(
    "Y14",
    "design document 002",
    breaks=IndexPermissions.deferred_builds_wait_for_their_statement,
)
class DeferredBuildsStartAtOnce(IndexPermissions):
    """What was created without its build is built as soon as every server knows it: each index by a scan of its own."""

    def _is_to_be_built(self) -> None:
        """Nobody asks."""


@known_bug("Y27", "design document 002", breaks=IndexPermissions.clients_hear_of_failures)
class ViolationsAreForgotten(IndexPermissions):
    """An index that violated a constraint was gone with its status: a client heard of the failures of jobs alone."""

    @action(by=CLIENT, fair=WEAK)
    def ask_for_status(self) -> None:
        """The status is that of the job, if it says one."""
        require(self.version > 0, "CREATE INDEX was executed")
        require(~self.drop_requested, "no client has dropped the index")
        failed = self._status() == Status.failed
        self.told = choose(failed & self.violates_constraint, self.told, self._status())


@known_bug("Z19", "yugabyte-db #8780", breaks=IndexPermissions.permissions_only_grow)
class NoMonotoneGuard(IndexPermissions):
    """DROP INDEX came while the job was finishing, and then the job wrote READ_WRITE_AND_DELETE over it."""

    def _is_not_past(self, permission: Permission) -> None:
        """Nobody asks."""


@known_bug(
    "Z45", "yugabyte-db #6234", breaks=IndexPermissions.success_means_that_every_server_reads
)
class DoneBeforeFullyApplied(IndexPermissions):
    """CREATE INDEX was answered when the master had stored the permission, not when the tablets had it."""

    def _is_ready(self) -> Bool:
        return self.permission == Permission.read_write_and_delete


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "002-17",
    'design document 002: the command should otherwise "abort and result in a failure"',
    breaks=IndexPermissions.builds_end,
)
class DropOnlyStopsTheJob(IndexPermissions):
    """DROP INDEX of an index that is backfilled ends its job, and then nobody removes it: it takes a second one."""

    @action(by=CLIENT)
    def drop_index(self) -> None:
        """The job is stopped; without one the index is on its way out."""
        require(self.permission.column(lambda p: p.kept), "the index is there, and to stay")
        running = self.job == Job.running
        old, removing = self.permission, Permission.write_and_delete_while_removing
        self.drop_requested = True
        self.job = Job.none
        self.version = choose(running, self.version, self.version + 1)
        self.permission = choose(running, old, removing)
        self.fully_applied = choose(running, self.fully_applied, old)
        self.reported = choose(running, self.reported, frozenset())

    def _is_to_be_built(self) -> None:
        super()._is_to_be_built()
        require(~self.drop_requested, "no client has dropped the index")


@known_bug(
    "002-68",
    'design document 002, Finalize the index: "Once the index build is successfully completed on all the tablets"',
    breaks=IndexPermissions.completed_builds_are_published,
)
class CompletedBuildsAreGivenUp(IndexPermissions):
    """A chunk that was tried too often fails the job, also when the rows of all tablets are in the index by then."""

    @action(by=MASTER)
    def fail_backfill(self) -> None:
        """The job is not over."""
        require(self.job.any_of(Job.running, Job.success), "there is a job")
        self.job = Job.failed


@known_bug(
    "002-242",
    'design document 002: "Backfill needs to be kicked off by the user using an explicit command"',
    breaks=IndexPermissions.builds_end,
)
class EarlyStatementsAreLost(IndexPermissions):
    """BACKFILL begins the build of what waits at DO_BACKFILL: executed before all servers know the index, it has no effect."""

    @action(by=CLIENT)
    def backfill_indexes(self) -> None:
        """The build stays deferred if the index has not come so far."""
        only_when(self.era.deferral)
        require(self.deferred, "the build is deferred")
        early = self.permission.any_of(Permission.delete_only, Permission.write_and_delete)
        self.deferred = early
        self.begun = True


@known_bug("Y09", "design document 002", breaks=IndexPermissions.clients_learn_the_result)
class FailuresAreNotTold(IndexPermissions):
    """What is known of a build goes with its index: of one that failed the client hears nothing, or that it goes on."""

    def _status(self) -> Term[Status]:
        return choose(self._is_ready(), Status.success, Status.in_progress)


@known_bug("Y26", "design document 002", breaks=IndexPermissions.removals_end)
class RemovalsStopBeforeTheEnd(IndexPermissions):
    """Nobody used the index any more, and its table was left until somebody thought of it."""

    @IndexPermissions.permission.step(Permission.index_unused, Permission.absent, by=CLIENT)
    def delete_index(self) -> None:
        """A person removes what is left."""
        self._all_reported()
        self._enter()


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "002-63",
    "design document 002: the index build itself will occur asynchronously",
    breaks=IndexPermissions.indexes_are_dropped_at_any_time,
)
class DropIndexWaitsForTheBuild(IndexPermissions):
    """DROP INDEX is refused until the index is built."""

    @action(by=CLIENT)
    def drop_index(self) -> None:
        """The index is built."""
        require(self.permission == Permission.read_write_and_delete, "the index is built")
        super().drop_index()


@known_bug("002-142", ASYNCHRONOUS, breaks=IndexPermissions.indexes_are_created_at_once)
class CreateLooksAtTheRows(IndexPermissions):
    """CREATE INDEX read the table first, and refused to begin where two rows shared a key."""

    @action(by=CLIENT)
    def create_index(self) -> None:
        """CREATE INDEX: the index table is made."""
        require(~self.violates_constraint, "no row violates a constraint")
        super().create_index()


@known_bug("002-144", ABORTS, breaks=IndexPermissions.builds_are_given_up_at_any_time)
class JobsOfDroppedIndexesGoOn(IndexPermissions):
    """A job whose index was dropped could not be given up: it read the table to its end for nobody."""

    @action(by=MASTER)
    def fail_backfill(self) -> None:
        """The job cannot be done."""
        require(self.permission == self.backfilled_at(), "the index is being built")
        super().fail_backfill()


@known_bug("002-158", ON_ALL_NODES, breaks=IndexPermissions.servers_learn_at_any_time)
class ServersLearnWhenTheJobIsDone(IndexPermissions):
    """A server that backfilled applied no altered schema: DROP INDEX waited until the build was through."""

    @action(fair=WEAK)
    def learn(self, s: Term[Server]) -> None:
        """The tablets of a server apply the altered schema."""
        require(self.job != Job.running, "no job is running")
        super().learn(s)


@known_bug(
    "002-294",
    'design document 002: "An aborted index will be cleaned up and deleted"',
    breaks=IndexPermissions.no_build_waits_for_who_asks,
)
class TheClientHearsFirst(IndexPermissions):
    """An index that has failed is removed when its client has heard so: of one who does not ask, it stays."""

    def _status(self) -> Term[Status]:
        failed = (self.job == Job.failed) & ~self._removed()
        return choose(failed, Status.failed, super()._status())

    @action(by=MASTER, fair=WEAK)
    def give_up(self) -> None:
        """The job writes that the index is to be removed, if its client knows."""
        super().give_up()
        require((self.told == Status.failed) | self.drop_requested, "its client has heard so")


@known_bug("002-295", FINALIZE, breaks=IndexPermissions.no_build_waits_for_who_asks)
class PublishedWhenAskedFor(IndexPermissions):
    """An index that is built is published when its client has asked for the status."""

    @action(by=MASTER, fair=WEAK)
    def publish(self) -> None:
        """The job writes READ_WRITE_AND_DELETE, if somebody has asked for it."""
        require(self.told.is_some(), "a client has asked")
        super().publish()


@known_bug(
    "002-296",
    'design document 002: "An aborted index will be cleaned up and deleted"',
    breaks=IndexPermissions.unused_indexes_are_deleted,
)
class DeletedWhenTheJobIsOver(IndexPermissions):
    """The table of an index that nobody uses is deleted when its job has come to the end of its scan."""

    @action(by=MASTER, fair=WEAK)
    def delete_index(self) -> None:
        """No server uses the index, and no job builds it."""
        require(self.job == Job.none, "no job is left")
        super().delete_index()


@known_bug("002-334", CREATE_TABLE, breaks=IndexPermissions.servers_report_independently)
class ServersReportTogether(IndexPermissions):
    """A server reports its version when all others have applied it."""

    @action(fair=WEAK)
    def report(self, s: Term[Server]) -> None:
        everywhere = every(self.learned_version[o] == self.version for o in Server)
        require(everywhere, "every server has applied the version")
        super().report(s)


@known_bug("002-335", CREATE_TABLE, breaks=IndexPermissions.no_build_waits_for_who_asks)
class WritesAreAllowedIfSomebodyAsks(IndexPermissions):
    """An index comes to WRITE_AND_DELETE when its status is asked for."""

    @IndexPermissions.permission.step(
        Permission.delete_only, Permission.write_and_delete, by=MASTER, fair=WEAK
    )
    def allow_writes(self) -> None:
        only_when(not self.era.postgres)
        require(self.told.is_some(), ASKED)
        self._all_reported()
        self._enter()


@known_bug("002-336", CREATE_TABLE, breaks=IndexPermissions.no_build_waits_for_who_asks)
class BackfillsAreAllowedIfSomebodyAsks(IndexPermissions):
    """An index comes to DO_BACKFILL when its status is asked for."""

    @IndexPermissions.permission.step(
        Permission.write_and_delete, Permission.do_backfill, by=MASTER, fair=WEAK
    )
    def allow_backfill(self) -> None:
        only_when(self.era.do_backfill)
        require(self.told.is_some() | self.deferred, ASKED)
        self._all_reported()
        self._enter()


@known_bug(
    "002-337",
    'design document 002, "Backfill the data"',
    breaks=IndexPermissions.no_build_waits_for_who_asks,
)
class JobsBeginIfSomebodyAsks(IndexPermissions):
    """The job of an index begins when its status is asked for."""

    @action(by=MASTER, fair=WEAK)
    def launch_backfill(self) -> None:
        require(self.told.is_some(), ASKED)
        super().launch_backfill()


@known_bug(
    "002-338",
    'design document 002: "The CREATE INDEX command is asynchronous"',
    breaks=IndexPermissions.backfills_end_unasked,
)
class JobsEndIfSomebodyAsks(IndexPermissions):
    """Whether all tablets are done is looked at when the status is asked for."""

    @action(by=MASTER, fair=WEAK)
    def finish_backfill(self) -> None:
        require(self.told.is_some(), ASKED)
        super().finish_backfill()


@known_bug(
    "002-339",
    'design document 002: "such as a unique constraint violation in a unique index"',
    breaks=IndexPermissions.violations_fail_the_build_unasked,
)
class ViolationsAreFoundForWhoAsks(IndexPermissions):
    """A build that cannot succeed goes on until a client is there to hear that it has failed."""

    @action(by=MASTER, fair=WEAK)
    def find_violation(self) -> None:
        require(self.told.is_some(), ASKED)
        super().find_violation()


@known_bug(
    "002-340",
    "design document 002, READ_WRITE_AND_DELETE",
    breaks=IndexPermissions.no_build_waits_for_who_asks,
)
class WhoAsksServesTheIndex(IndexPermissions):
    """Clients read a published index when one of them has asked for its status."""

    @action(by=MASTER, fair=WEAK)
    def finish_alter(self) -> None:
        require(self.told.is_some(), ASKED)
        super().finish_alter()


@known_bug("002-341", CLEANED_UP, breaks=IndexPermissions.removed_indexes_are_not_written_for_a_job)
class WritesStopAfterTheJob(IndexPermissions):
    """Servers write to an index that is dropped until its job is over, however long that takes."""

    @IndexPermissions.permission.step(
        Permission.write_and_delete_while_removing,
        Permission.delete_only_while_removing,
        by=MASTER,
        fair=WEAK,
    )
    def stop_writes(self) -> None:
        only_when(self.era.stepwise_removal)
        require(self.job == Job.none, "the job is over")
        self._all_reported()
        self._enter()


@known_bug(
    "002-342", CLEANED_UP, breaks=IndexPermissions.removed_indexes_are_not_maintained_for_a_job
)
class DeletesStopAfterTheJob(IndexPermissions):
    """The same of their deletes."""

    @IndexPermissions.permission.step(
        Permission.delete_only_while_removing, Permission.index_unused, by=MASTER, fair=WEAK
    )
    def stop_deletes(self) -> None:
        only_when(self.era.stepwise_removal)
        require(self.job == Job.none, "the job is over")
        self._all_reported()
        self._enter()


@known_bug(
    "002-371",
    'design document 002: the master "needs to wait for the backfill to complete on all the tablets"',
    breaks=IndexPermissions.jobs_wait_for_no_server,
)
class JobsAreForgottenWhenServersKnow(IndexPermissions):
    """The job of an index that was dropped is forgotten when every server has learned so: one that is down keeps the table busy."""

    @action(by=MASTER, fair=WEAK)
    def forget_job(self) -> None:
        require(every(self.reported.has(s) for s in Server), "every server has reported")
        super().forget_job()


@known_bug(
    "002-372",
    'design document 002: a command "does not wait for the index backfill to complete"',
    breaks=IndexPermissions.no_statement_waits_for_a_job,
)
class DropsAreAnsweredAfterTheJob(IndexPermissions):
    """Who drops an index while it is built is answered when its job has come to its end, though the index is gone by then."""

    @action(by=CLIENT, fair=WEAK)
    def answer_drop(self) -> None:
        require(self.job == Job.none, "no job is running")
        super().answer_drop()


@known_bug("002-373", ASYNCHRONOUS, breaks=IndexPermissions.no_statement_waits_for_a_job)
class DeferredIndexesLookAtTheRows(IndexPermissions):
    """An index whose build is deferred is created if its build would succeed: the rows are read twice."""

    @IndexPermissions.permission.step(Permission.absent, Permission.delete_only, by=CLIENT)
    def create_deferred_index(self) -> None:
        only_when(self.era.deferral)
        require(~self.violates_constraint, "no row violates a constraint")
        self._never_existed()
        self._enter()
        self.deferred = True


@known_bug(
    "002-379",
    "design document 002, Design Goals: the build occurs asynchronously",
    breaks=IndexPermissions.no_build_waits_for_who_asks,
)
class JobsAreForgottenWhenClientsKnow(IndexPermissions):
    """The job of an index that was dropped is forgotten when its client has heard that the index is gone: if that one has left,
    the table can have no other job.
    """

    @action(by=MASTER, fair=WEAK)
    def forget_job(self) -> None:
        require(self.told_dropped, "the client that has dropped the index was told")
        super().forget_job()


@known_bug(
    "002-380", CLEANED_UP, breaks=IndexPermissions.no_build_waits_for_who_asks, profile="seed"
)
class FailedIndexesStayUntilSomebodyAsks(IndexPermissions):
    """An index that has failed is deleted when a client has asked for its status, and is there until then."""

    @IndexPermissions.permission.step(
        Permission.do_backfill, Permission.absent, by=MASTER, fair=WEAK
    )
    def delete_failed_index(self) -> None:
        only_when(not self.era.stepwise_removal and not self.era.postgres)
        require(self.told.is_some(), ASKED)
        require(self.job == Job.failed, "the job has failed")
        self.job = Job.none
        self._enter()


@known_bug(
    "002-381",
    'design document 002: indexes are created "without the build immediately starting"',
    breaks=IndexPermissions.deferred_indexes_get_what_is_written,
)
class DeferredIndexesStayAtDeleteOnly(IndexPermissions):
    """An index whose build is deferred stays at DELETE_ONLY until that is begun, which then takes two more rounds."""

    @IndexPermissions.permission.step(
        Permission.delete_only, Permission.write_and_delete, by=MASTER, fair=WEAK
    )
    def allow_writes(self) -> None:
        only_when(not self.era.postgres)
        require(~self.deferred, "the build is not deferred")
        self._all_reported()
        self._enter()


BUGS = known_bugs_in(globals())
