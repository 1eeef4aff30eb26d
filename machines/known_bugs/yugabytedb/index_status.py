"""Mistakes in what a client hears of its index that design document 002 rules out, each caught by one promise alone."""

from __future__ import annotations

from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, MASTER, WEAK
from stagewright.machines.yugabytedb.indexes.index_life import Job
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions
from stagewright.machines.yugabytedb.indexes.index_states import Permission, Status
from stagewright.spec import Term, action, choose, only_when, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in


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


BUGS = known_bugs_in(globals())
