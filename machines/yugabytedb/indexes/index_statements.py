"""CREATE INDEX and DROP INDEX as clients see them: the build goes on by itself, and they may ask what has become of it."""

from __future__ import annotations

from enum import Enum, auto
from typing import Self

from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, WEAK, Server
from stagewright.machines.yugabytedb.indexes.index_permissions import IndexPermissions, Job
from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import (
    Bool,
    FlagVar,
    LeadsTo,
    OptionalVar,
    Term,
    accepts,
    action,
    choose,
    equivalent_drop,
    equivalents,
    flag,
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


class Status(Enum):
    """The status of "the asynchronous job", as 002 calls the build of an index."""

    in_progress = auto()
    success = auto()
    failed = auto()


class IndexStatements(IndexPermissions):
    """One index, and the clients that create it, ask for its status, and drop it.

    CREATE INDEX is asynchronous. (Postgres, too, hands the build over; its own statement then waits for the status.)
    An index that is being removed, or is not there any more, has failed, unless a client has dropped it.

    `seed`: as of `IndexPermissions`.
    """

    told: OptionalVar[Status] = optional(Status)  # what the client was last answered
    told_dropped: FlagVar = flag()  # DROP INDEX was answered: done

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

    @sometimes
    def create_index_does_not_wait(self) -> Bool:
        """002: "The CREATE INDEX command is asynchronous, it does not wait for the index backfill to complete"."""
        return (self.told == Status.in_progress) & (self.job == Job.running)

    @sometimes
    def clients_hear_of_failures(self) -> Bool:
        """002, Design Goals: "CREATE INDEX command should abort and result in a failure"; the client hears so."""
        return (self.told == Status.failed) & self.violates_constraint

    @invariant
    def success_means_that_every_server_reads(self, s: Term[Server]) -> Bool:
        """The build has succeeded when every server has the final permission (yugabyte-db #6234)."""
        usable = (self.told == Status.success) & ~self.drop_requested
        return usable.implies(self.learned[s].column(lambda p: p.read))

    @invariant
    def failure_means_that_the_index_goes(self) -> Bool:
        """002, Design Goals: an index of which FAILED is told is not built after all: it is "cleaned up and deleted"."""
        return (self.told == Status.failed).implies(self._removed())

    @step_property
    def results_are_final(self, after: Self) -> Bool:
        """002: the status is IN-PROGRESS, then SUCCESS or FAILED, which stays, also when the index is gone."""
        final = self.told.any_of(Status.success, Status.failed)
        return final.implies(after.told == self.told)

    @liveness
    def clients_learn_the_result(self) -> LeadsTo:
        """A client that goes on asking hears SUCCESS or FAILED, unless the index is dropped first."""
        known = self.told.any_of(Status.success, Status.failed)
        return leads_to(self.version > 0, known | self.drop_requested)

    @invariant
    def dropped_means_gone(self) -> Bool:
        """DROP INDEX is done when the index is deleted (yugabyte-db #16163)."""
        return self.told_dropped.implies(self.is_gone())

    @lemma
    def success_was_published(self) -> Bool:
        """SUCCESS is told of an index that is published, and of which every server knows."""
        published = (self.permission == Permission.read_write_and_delete) & (
            self.fully_applied.is_none()
        )
        return (self.told == Status.success).implies(published | self.drop_requested)

    @liveness
    def drops_are_answered(self) -> LeadsTo:
        """A client that waits until its index is gone is told so."""
        only_when(self.era.stepwise_removal or self.era.postgres)
        return leads_to(self.is_gone(), self.told_dropped)

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(answer_drop, "it was not told", because="a second answer says the same"),
    )
