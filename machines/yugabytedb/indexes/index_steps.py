"""The steps of one index from CREATE INDEX to the end of DROP INDEX: the master's, and its tablet servers'.

The permission is stored with the indexed table, and every change of it is a new version of the table's schema
(002, "Intermediate states of the index table"). A server plans the writes of its clients by the version that it
has learned. What this promises is in `index_permissions.py`.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.machines.yugabytedb.indexes.index_states import (
    SEED,
    YCQL,
    YSQL,
    YSQL_EARLY,
    YSQL_NO_DO_BACKFILL,
    Permission,
)
from stagewright.spec import (
    ANY,
    Actor,
    Bool,
    Entity,
    Fairness,
    FlagVar,
    Machine,
    Number,
    NumberVar,
    OneVar,
    OptionalVar,
    SetVar,
    Term,
    action,
    choose,
    constant,
    equivalent_drop,
    equivalent_loss,
    equivalents,
    every,
    flag,
    number,
    one_of,
    only_when,
    optional,
    per,
    profiles,
    require,
    set_of,
)

MASTER = Actor("master")
CLIENT = Actor("client")
POSTGRES = Actor("postgres")
WEAK = Fairness.WEAK
LAST_VERSION = 8
VERSION_SAYS_IT = "an index that is not there and was not is at version 0"


class Server(Entity, scope=2):
    """A tablet server: its tablets of the indexed table have all applied one version of the schema."""


class Job(Enum):
    """The backfill job, as far as the permissions depend on it."""

    none = auto()
    running = auto()
    success = auto()
    failed = auto()


def permission_number(permission: Term[Permission]) -> Number:
    """The number of a permission, which grows with progress."""
    return permission.number_column(lambda p: p.number)


class IndexSteps(Machine):
    """One index: how its permission moves, and how servers learn of it."""

    era = profiles(SEED, YSQL_EARLY, YSQL_NO_DO_BACKFILL, YSQL, YCQL)

    # the master's catalog
    permission: OneVar[Permission] = one_of(Permission, init=Permission.absent)
    version: NumberVar = number(0, LAST_VERSION)  # of the table's schema, counted from CREATE INDEX
    fully_applied: OptionalVar[Permission] = optional(Permission)  # while not all servers have it
    reported: SetVar[Server] = set_of(Server)  # have said that they are at `version`
    job: OneVar[Job] = one_of(Job, init=Job.none)
    drop_requested: FlagVar = flag()
    # the servers
    learned = per(Server, one_of(Permission, init=Permission.absent))
    learned_version = per(Server, number(0, LAST_VERSION))
    # the table
    violates_constraint = constant(flag(init=ANY))  # its rows violate one of a unique index

    # -- the way forward -----------------------------------------------------------------------------

    @permission.step(Permission.absent, Permission.delete_only, by=CLIENT)
    def create_index(self) -> None:
        """CREATE INDEX: the index table is made, and the index added to the table at DELETE_ONLY."""
        only_when(self.era.created_at is Permission.delete_only)
        self._never_existed()
        self._enter()

    @permission.step(Permission.absent, Permission.write_and_delete, by=POSTGRES)
    def create_index_in_postgres(self) -> None:
        """The same for YSQL, where postgres has flags of its own for what comes first."""
        only_when(self.era.created_at is Permission.write_and_delete)
        self._never_existed()
        self._enter()

    @permission.step(Permission.delete_only, Permission.write_and_delete, by=MASTER, fair=WEAK)
    def allow_writes(self) -> None:
        """Every server deletes old values from the index: let them write new ones."""
        only_when(not self.era.postgres)
        self._all_reported()
        self._enter()

    @permission.step(Permission.write_and_delete, Permission.do_backfill, by=MASTER, fair=WEAK)
    def allow_backfill(self) -> None:
        """Every server maintains the index: what is left are the rows of before.

        With YSQL, it is postgres that asks for it, by the RPC BackfillIndex.
        """
        only_when(self.era.do_backfill)
        self._all_reported()
        self._enter()

    @action(by=MASTER, fair=WEAK)
    def launch_backfill(self) -> None:
        """Every server is at DO_BACKFILL: the job begins, and clients are served what all have."""
        require(self.permission == self.backfilled_at(), "the permission is that of the backfill")
        self._all_reported()
        require(self.job == Job.none, "no job is running")
        self.job = Job.running
        self.fully_applied = None

    @action(by=MASTER, fair=WEAK)
    def finish_backfill(self) -> None:
        """The rows of all tablets are in the index."""
        require(self.job == Job.running, "the job is running")
        require(~self.violates_constraint, "no row violates a constraint")
        self.job = Job.success

    @action(by=MASTER)
    def fail_backfill(self) -> None:
        """The job cannot be done: a chunk was tried too often."""
        require(self.job == Job.running, "the job is running")
        self.job = Job.failed

    @action(by=MASTER, fair=WEAK)
    def find_violation(self) -> None:
        """A row violates a constraint: the job fails."""
        require(self.job == Job.running, "the job is running")
        require(self.violates_constraint, "a row violates a constraint")
        self.job = Job.failed

    @action(by=MASTER, fair=WEAK)
    def publish(self) -> None:
        """The job writes READ_WRITE_AND_DELETE."""
        require(self.job == Job.success, "the job has succeeded")
        self._is_not_past(Permission.read_write_and_delete)
        self._enter()
        self.permission = Permission.read_write_and_delete
        self.job = Job.none

    @action(by=MASTER, fair=WEAK)
    def finish_alter(self) -> None:
        """Every server reads the index: clients are served the permission that is stored."""
        require(self.permission == Permission.read_write_and_delete, "nothing is to follow")
        require(self.fully_applied.is_some(), "clients are served an older one")
        self._all_reported()
        self.fully_applied = None

    # -- the way back --------------------------------------------------------------------------------

    @action(by=MASTER, fair=WEAK)
    def give_up(self) -> None:
        """The job writes that the index is to be removed."""
        only_when(self.era.stepwise_removal or self.era.postgres)
        require(self.job == Job.failed, "the job has failed")
        self._is_not_past(Permission.write_and_delete_while_removing)
        self._enter()
        self.permission = Permission.write_and_delete_while_removing
        self.job = Job.none

    @action(by=MASTER, fair=WEAK)
    def forget_job(self) -> None:
        """The job ends without a word, as the index was dropped meanwhile."""
        only_when(self.era.stepwise_removal or self.era.postgres)
        require(self.job != Job.none, "there is a job")
        past = self._is_past(Permission.read_write_and_delete)
        require(past, "the index is past what the job would write")
        self.job = Job.none

    @permission.step(Permission.do_backfill, Permission.absent, by=MASTER, fair=WEAK)
    def delete_failed_index(self) -> None:
        """The document's way back: "An aborted index will be cleaned up and deleted"."""
        only_when(not self.era.stepwise_removal and not self.era.postgres)
        require(self.job == Job.failed, "the job has failed")
        self.job = Job.none
        self._enter()

    @action(by=CLIENT)
    def drop_index(self) -> None:
        """DROP INDEX, at any time: every server goes on to maintain the index, and none reads it."""
        only_when(self.era.stepwise_removal)
        require(self.permission.column(lambda p: p.kept), "the index is there, and to stay")
        self.drop_requested = True
        self._enter()
        self.permission = Permission.write_and_delete_while_removing

    @permission.step(
        Permission.write_and_delete_while_removing,
        Permission.delete_only_while_removing,
        by=MASTER,
        fair=WEAK,
    )
    def stop_writes(self) -> None:
        """No server reads the index any more: new values need not be written to it."""
        only_when(self.era.stepwise_removal)
        self._all_reported()
        self._enter()

    @permission.step(
        Permission.delete_only_while_removing, Permission.index_unused, by=MASTER, fair=WEAK
    )
    def stop_deletes(self) -> None:
        """No server writes new values to it any more: old ones need not be deleted."""
        only_when(self.era.stepwise_removal)
        self._all_reported()
        self._enter()

    @permission.step(Permission.index_unused, Permission.absent, by=MASTER, fair=WEAK)
    def delete_index(self) -> None:
        """No server uses the index: its table is deleted."""
        only_when(self.era.stepwise_removal)
        self._all_reported()
        self._enter()

    @action(by=POSTGRES)
    def drop_index_in_postgres(self) -> None:
        """YSQL: postgres drops the index once none of its backends uses it; DocDB asks no server."""
        only_when(self.era.postgres)
        require(self.permission != Permission.absent, "the index is there")
        self.drop_requested = True
        self._enter()
        self.permission = Permission.absent

    # -- the servers -----------------------------------------------------------------------------------

    @action(fair=WEAK)
    def learn(self, s: Term[Server]) -> None:
        """The tablets of a server apply the altered schema."""
        require(self.learned_version[s] < self.version, "the server is behind")
        self._apply(s)

    @action(fair=WEAK)
    def report(self, s: Term[Server]) -> None:
        """A server reports its version with every heartbeat, which counts if it is the current one."""
        require(self.learned_version[s] == self.version, "it reports the current version")
        self.reported.add(s)

    # -- what recurs -----------------------------------------------------------------------------------

    def backfilled_at(self) -> Permission:
        """The permission under which the backfill runs."""
        return Permission.do_backfill if self.era.do_backfill else Permission.write_and_delete

    def is_gone(self) -> Bool:
        """The index was there, and is deleted."""
        return (self.permission == Permission.absent) & (self.version > 0)

    def served(self) -> Term[Permission]:
        """The permission that clients are told, and plan their reads by."""
        of_all = self.permission
        for p in Permission:
            of_all = choose(self.fully_applied == p, p, of_all)
        return of_all

    def _apply(self, s: Term[Server]) -> None:
        self.learned[s] = self.permission
        self.learned_version[s] = self.version

    def _never_existed(self) -> None:
        require(self.version == 0, "the name was not used before")

    def _all_reported(self) -> None:
        require(
            every(self.reported.has(s) for s in Server),
            "every server has reported the current version",
        )

    def _is_past(self, permission: Permission) -> Bool:
        """The guard of `UpdateIndexPermission`: "already past … Will not update it", or no such index."""
        there = self.permission != Permission.absent
        return ~there | (permission_number(self.permission) >= permission.number)

    def _is_not_past(self, permission: Permission) -> None:
        require(~self._is_past(permission), "the index is not past the permission")

    def _enter(self) -> None:
        """A new version of the table's schema: until all have it, clients are served the last one."""
        self.version = self.version + 1
        self.fully_applied = self.permission
        self.reported = frozenset()

    # -- what no promise can tell ----------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(create_index, "permission is absent", because=VERSION_SAYS_IT),
        equivalent_loss(create_index, permission, because=VERSION_SAYS_IT),
        equivalent_drop(create_index_in_postgres, "permission is absent", because=VERSION_SAYS_IT),
        equivalent_loss(create_index_in_postgres, permission, because=VERSION_SAYS_IT),
        equivalent_loss(fail_backfill, job, because="a job that does not give up tries once more"),
        equivalent_drop(
            find_violation,
            "a row violates a constraint",
            because="a job may fail for other reasons, too",
        ),
        equivalent_drop(
            finish_alter,
            "nothing is to follow",
            because="what every server has reported may be served to clients at any time",
        ),
        equivalent_drop(
            finish_alter, "clients are served an older one", because="a second time changes nothing"
        ),
        equivalent_loss(give_up, job, because="a job that the index is past is forgotten, too"),
        equivalent_drop(forget_job, "there is a job", because="without a job nothing changes"),
        equivalent_drop(
            forget_job,
            "the index is past what the job would write",
            because="permissions have even numbers",
        ),
        equivalent_drop(
            learn, "the server is behind", because="a schema that is applied once more is the same"
        ),
        equivalent_drop(
            _is_not_past,
            "the index is not past the permission",
            because="a job ends once, so that the index is never just at what it would write",
        ),
        equivalent_loss(
            _enter,
            fully_applied,
            because="clients may stop to use an index that is being removed before all servers know",
        ),
    )
