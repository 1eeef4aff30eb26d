"""The permissions of one index: the master moves them on when every tablet server has learned the last one.

The permission is stored with the indexed table, and every change of it is a new version of the table's schema
(002, "Intermediate states of the index table"). A server plans the writes of its clients by the version that it
has learned, so that two versions are in use at a time, as in F1 (Rae et al., VLDB 2013), and never three.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import reduce
from itertools import pairwise
from operator import and_
from typing import Self

from stagewright.machines.index_states import (
    SEED,
    YCQL,
    YSQL,
    YSQL_EARLY,
    YSQL_NO_DO_BACKFILL,
    Permission,
)
from stagewright.spec import (
    Actor,
    Bool,
    Entity,
    Fairness,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    OneVar,
    OptionalVar,
    SetVar,
    Term,
    action,
    choose,
    every,
    final,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    only_when,
    optional,
    per,
    profiles,
    reachable,
    require,
    set_of,
    step_property,
)

MASTER = Actor("master")
CLIENT = Actor("client")
POSTGRES = Actor("postgres")
WEAK = Fairness.WEAK
LAST_VERSION = 8


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


class IndexPermissions(Machine):
    """One index from CREATE INDEX to the end of DROP INDEX.

    Profiles: `seed` is the design document, which has four states, and no words for the way back: an index
    whose backfill failed "will be cleaned up and deleted" at once. So `a_deleted_index_is_not_used` fails: other
    servers still write to it. `ycql` is the code: eight states, and a removal in steps. Of `ysql` these are the
    permissions of DocDB alone, which postgres moves on and whose later removal states it does not use
    (`index_postgres.py` has its flags and backends); `ysql-early` is the same, and `ysql-no-do-backfill` ran
    the backfill while the permission stayed at WRITE_AND_DELETE.
    """

    era = profiles(SEED, YSQL_EARLY, YSQL_NO_DO_BACKFILL, YSQL, YCQL)

    # the master's catalog
    permission: OneVar[Permission] = one_of(Permission, init=Permission.absent)
    version: NumberVar = number(0, LAST_VERSION)  # of the table's schema, counted from CREATE INDEX
    fully_applied: OptionalVar[Permission] = optional(Permission)  # while not all servers have it
    reported: SetVar[Server] = set_of(Server)  # have said that they are at `version`
    job: OneVar[Job] = one_of(Job, init=Job.none)
    # the servers
    learned = per(Server, one_of(Permission, init=Permission.absent))
    learned_version = per(Server, number(0, LAST_VERSION))

    # -- the way forward -----------------------------------------------------------------------------

    @permission.step(Permission.absent, Permission.delete_only, by=CLIENT)
    def create_index(self) -> None:
        """CREATE INDEX: the index table is made, and the index added to the table at DELETE_ONLY."""
        only_when(self.era.created_at is Permission.delete_only)
        require(self.version == 0, "the name was not used before")
        self._enter()

    @permission.step(Permission.absent, Permission.write_and_delete, by=POSTGRES)
    def create_index_in_postgres(self) -> None:
        """The same for YSQL, where postgres has flags of its own for what comes first."""
        only_when(self.era.created_at is Permission.write_and_delete)
        require(self.version == 0, "the name was not used before")
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
        self.job = Job.success

    @action(by=MASTER)
    def fail_backfill(self) -> None:
        """The job cannot be done: a constraint is violated, or a chunk was tried too often."""
        require(self.job == Job.running, "the job is running")
        self.job = Job.failed

    @action(by=MASTER, fair=WEAK)
    def publish(self) -> None:
        """The job writes READ_WRITE_AND_DELETE, unless the index is past it."""
        require(self.job == Job.success, "the job has succeeded")
        self._update_permission(Permission.read_write_and_delete)
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
        """The job writes that the index is to be removed, unless the index is past it."""
        only_when(self.era.stepwise_removal or self.era.postgres)
        require(self.job == Job.failed, "the job has failed")
        self._update_permission(Permission.write_and_delete_while_removing)
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
        self._update_permission(Permission.write_and_delete_while_removing)

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
        self._enter()
        self.permission = Permission.absent

    # -- the servers -----------------------------------------------------------------------------------

    @action(fair=WEAK)
    def learn(self, s: Term[Server]) -> None:
        """The tablets of a server apply the altered schema."""
        require(self.learned_version[s] < self.version, "the server is behind")
        self.learned[s] = self.permission
        self.learned_version[s] = self.version

    @action(fair=WEAK)
    def report(self, s: Term[Server]) -> None:
        """A server reports its version, which counts if it is the current one."""
        require(self.learned_version[s] == self.version, "it reports the current version")
        require(~self.reported.has(s), "it has not reported it")
        self.reported.add(s)

    # -- what recurs -----------------------------------------------------------------------------------

    def _all_reported(self) -> None:
        require(
            every(self.reported.has(s) for s in Server),
            "every server has reported the current version",
        )

    def _gone(self) -> Bool:
        return (self.permission == Permission.absent) & (self.version > 0)

    def backfilled_at(self) -> Permission:
        return Permission.do_backfill if self.era.do_backfill else Permission.write_and_delete

    def _is_past(self, permission: Permission) -> Bool:
        """The guard of `UpdateIndexPermission`: "already past … Will not update it", or no such index."""
        gone = self.permission == Permission.absent
        return gone | (permission_number(self.permission) >= permission.number)

    def _update_permission(self, permission: Permission) -> None:
        """A new version with that permission, unless the index is past it."""
        past = self._is_past(permission)
        self.fully_applied = choose(past, self.fully_applied, self.permission)
        self.permission = choose(past, self.permission, permission)
        self.version = choose(past, self.version, self.version + 1)
        self.reported = choose(past, self.reported, frozenset())

    def _enter(self) -> None:
        """A new version of the table's schema: until all have it, clients are served the last one."""
        self.version = self.version + 1
        self.fully_applied = self.permission
        self.reported = frozenset()

    def _served(self) -> Term[Permission]:
        """The permission that clients are told, and plan their reads by."""
        of_all = self.permission
        for p in Permission:
            of_all = choose(self.fully_applied == p, p, of_all)
        return of_all

    # -- promises --------------------------------------------------------------------------------------

    @step_property
    def permissions_only_grow(self, after: Self) -> Bool:
        """`UpdateIndexPermission`: an index that is past a permission never gets it again."""
        grown = permission_number(after.permission) >= permission_number(self.permission)
        return grown | (after.permission == Permission.absent)

    @invariant
    def two_versions_are_in_use(self, s: Term[Server]) -> Bool:
        """002: "Once all the schema changes are propagated to all the nodes, the index state is updated",
        so no server is more than a version behind; only DROP INDEX does not wait for the one before.
        """
        kept = self.permission.column(lambda p: p.kept)
        return kept.implies(self.version <= self.learned_version[s] + 1)

    @invariant
    def what_one_server_writes_the_others_delete(self, a: Term[Server], b: Term[Server]) -> Bool:
        """F1, section 4: no orphan, as no server deletes rows but not their entries while another writes
        entries. Not so once the index is being removed: then nothing will ever read them.
        """
        only_when(not self.era.postgres)
        kept = self.permission.column(lambda p: p.kept)
        writes = self.learned[a].column(lambda p: p.write)
        return (kept & writes).implies(self.learned[b].column(lambda p: p.delete))

    @invariant
    def what_one_server_reads_the_others_write(self, a: Term[Server], b: Term[Server]) -> Bool:
        """F1, section 4: no missing entry, as no server leaves entries out while another reads them."""
        only_when(not self.era.postgres)
        reads = self.learned[a].column(lambda p: p.read)
        return reads.implies(self.learned[b].column(lambda p: p.write))

    @invariant
    def clients_read_what_every_server_maintains(self, s: Term[Server]) -> Bool:
        """Clients are served `fully_applied`, so they read an index only if every server maintains it."""
        only_when(not self.era.postgres)
        reads = self._served().column(lambda p: p.read)
        return reads.implies(self.learned[s].column(lambda p: p.write))

    @invariant
    def backfill_waits_for_every_server(self, s: Term[Server]) -> Bool:
        """002: "Once all the schema changes converge, the index state finally gets set to DB_REORG", and
        then the master orchestrates the backfill.
        """
        at = self.backfilled_at()
        running = (self.job == Job.running) & (self.permission == at)
        return running.implies(self.learned[s] == at)

    @invariant
    def a_deleted_index_is_not_used(self, s: Term[Server]) -> Bool:
        """No server reads or writes the table of an index that is deleted."""
        only_when(not self.era.postgres)
        used = self.learned[s].column(lambda p: p.read | p.write | p.delete)
        return self._gone().implies(~used)

    # -- lemmas for the proof ----------------------------------------------------------------------------

    @invariant
    def versions_count_permissions(self) -> Bool:
        """Lemma: each permission is a version, of which an index has seven and its end one."""
        last = self.permission.number_column(
            lambda p: LAST_VERSION if p is Permission.absent else list(Permission).index(p)
        )
        return self.version <= last

    @invariant
    def servers_know_what_was_stored(self, s: Term[Server]) -> Bool:
        """Lemma: a server at the current version has the permission that is stored, and no other has reported."""
        current = self.learned_version[s] == self.version
        known = current.implies(self.learned[s] == self.permission)
        return (
            known
            & self.reported.has(s).implies(current)
            & (self.learned_version[s] <= self.version)
        )

    @invariant
    def servers_behind_have_the_version_before(self, s: Term[Server]) -> Bool:
        """Lemma: a server that is not at the current version has what is `fully_applied`."""
        current = self.learned_version[s] == self.version
        before = self.learned_version[s] + 1 == self.version
        behind = before & (self.fully_applied == self.learned[s])
        waits = self.permission.any_of(
            Permission.delete_only_while_removing, Permission.index_unused
        ) | self.permission.column(lambda p: p.kept)
        return waits.implies(current | behind)

    @invariant
    def one_permission_follows_another(self) -> Bool:
        """Lemma: what is `fully_applied` is the permission before the one that is stored."""
        if self.era.postgres:
            follow = {Permission.write_and_delete: Permission.absent}
            if self.era.do_backfill:
                follow[Permission.do_backfill] = Permission.write_and_delete
            follow[Permission.read_write_and_delete] = self.backfilled_at()
        else:
            follow = {p: q for q, p in pairwise(Permission) if p.kept or p.number > 8}
        return reduce(
            and_,
            (
                (self.permission == p).implies(self.fully_applied.any_of(q, None))
                for p, q in follow.items()
            ),
        )

    @invariant
    def jobs_belong_to_a_permission(self, s: Term[Server]) -> Bool:
        """Lemma: a job is at the permission of the backfill, which every server has, or the index is removed."""
        past = self.permission.column(lambda p: p.removed) | self._gone()
        current = self.learned_version[s] == self.version
        at = (self.permission == self.backfilled_at()) & current
        return (self.job == Job.none) | at | past

    # -- where it may stop ---------------------------------------------------------------------------------

    @final
    def at_rest(self) -> Bool:
        """An index may stay ready, absent or gone; with YSQL a failed one stays until it is dropped."""
        rests = self.permission.any_of(Permission.absent, Permission.read_write_and_delete)
        if self.era.postgres:
            failed = self.permission == Permission.write_and_delete_while_removing
            rests = rests | failed
        return rests & every(self.learned_version[s] == self.version for s in Server)

    @reachable
    def can_be_ready_or_gone(self) -> Bool:
        """Whatever happened, the index can still be ready for reads, or gone from every server."""
        ready = (self.permission == Permission.read_write_and_delete) & self.fully_applied.is_none()
        gone = every(self.learned[s] == Permission.absent for s in Server)
        return ready | ((self.permission == Permission.absent) & gone)

    @liveness
    def builds_end(self) -> LeadsTo:
        """002: the command results in an index that serves reads, or "should abort and result in a failure"."""
        built = self.permission.any_of(Permission.absent, Permission.read_write_and_delete)
        removed = self.permission.column(lambda p: p.removed)
        return leads_to(self.permission.column(lambda p: p.kept), built | removed)

    @liveness
    def removals_end(self) -> LeadsTo:
        """An index whose removal has begun is gone in the end."""
        only_when(self.era.stepwise_removal)
        gone = self.permission == Permission.absent
        return leads_to(self.permission.column(lambda p: p.removed), gone)
