"""The life of one index, from CREATE INDEX to the end of DROP INDEX, while servers learn its permissions in their own time.

The permission is stored with the indexed table, and every change of it is a new version of the table's schema
(002, "Intermediate states of the index table"). A server plans the writes of its clients by the version that it
has learned. Two versions of the schema are in use at a time, as in F1 (Rae et al., VLDB 2013), and never three,
so what is promised is that two neighbours in the order of the permissions get on with each other.
"""

from __future__ import annotations

from enum import Enum, auto
from itertools import pairwise
from typing import Self

from stagewright.machines.yugabytedb.indexes.index_actors import (
    CLIENT,
    MASTER,
    POSTGRES,
    WEAK,
    Server,
)
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
    Bool,
    FlagVar,
    LeadsTo,
    Machine,
    Number,
    NumberVar,
    OneVar,
    OptionalVar,
    SetVar,
    Term,
    accepts,
    action,
    always_reachable,
    choose,
    constant,
    equivalent_drop,
    equivalent_helper,
    equivalent_loss,
    equivalent_replacement,
    equivalent_weakening,
    equivalents,
    every,
    final,
    flag,
    independent,
    invariant,
    known_violations,
    leads_to,
    lemma,
    liveness,
    number,
    one_of,
    only_when,
    optional,
    per,
    profiles,
    require,
    set_of,
    step_property,
    violated,
)

LAST_VERSION = 9  # one more than an index comes to
STOPS_AT_ONCE = (
    "clients may stop to use an index that is being removed before all servers know of that"
)
VERSION_SAYS_IT = "an index that is not there and was not is at version 0"


class Job(Enum):
    """The backfill job, as far as the permissions depend on it."""

    none = auto()
    running = auto()
    success = auto()
    failed = auto()


def permission_number(permission: Term[Permission]) -> Number:
    """The number of a permission, which grows with progress."""
    return permission.number_column(lambda p: p.number)


class IndexLife(Machine):
    """One index from CREATE INDEX to the end of DROP INDEX, without the clients that wait for it.

    Profiles: `seed` is the design document, which has four states, and no words for the way back: an index
    whose backfill failed "will be cleaned up and deleted" at once. `ycql` is the code: eight states, and a removal in steps. Of `ysql` these are the
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
        self._launch()

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

    # -- helpers ---------------------------------------------------------------------------------------

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

    def _launch(self) -> None:
        require(self.permission == self.backfilled_at(), "the permission is that of the backfill")
        self._all_reported()
        require(self.job == Job.none, "no job is running")
        self.job = Job.running
        self.fully_applied = None

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

    # == what is promised ================================================================================

    @step_property
    def indexes_begin_without_reads(self, after: Self) -> Bool:
        """002, "Create the index table": the first change "sets the state of the MyIndex index to DELETE_ONLY";
        in YSQL it is WRITE_AND_DELETE.
        """
        created = (self.version == 0) & (after.version > 0)
        return created.implies(after.permission == self.era.created_at)

    @accepts(fail_backfill)
    def builds_are_given_up_at_any_time(self) -> Bool:
        """002, Design Goals: "If a problem arises while scanning the table", the command "should abort and result in a
        failure": whichever problem, and whatever has become of the index meanwhile.
        """
        return self.job == Job.running

    @accepts(learn)
    def servers_learn_at_any_time(self, s: Term[Server]) -> Bool:
        """002: "The HandleAlterTable() RPC call initiates a schema change on all the nodes": no server waits for the build, or
        for another one.
        """
        return self.learned_version[s] < self.version

    @step_property
    def permissions_only_grow(self, after: Self) -> Bool:
        """`UpdateIndexPermission`: an index that is past a permission never gets it again."""
        grown = permission_number(after.permission) > permission_number(self.permission)
        same = after.permission == self.permission
        return same | grown | (after.permission == Permission.absent)

    @step_property
    def rounds_are_made_for_a_change(self, after: Self) -> Bool:
        """002, "Create the index table": if "another change is required, this results in another round of schema changes across
        all the tablets", and otherwise not: none of them repeats the permission that the index has.
        """
        only_when(not self.era.postgres)
        another = (self.version > 0) & (after.version > self.version)
        return another.implies(after.permission != self.permission)

    @step_property
    def indexes_are_removed_for_a_reason(self, after: Self) -> Bool:
        """An index that is built stays, unless its job has failed or a client has dropped it."""
        removed = self.permission.column(lambda p: p.kept) & ~after.permission.column(
            lambda p: p.kept
        )
        return removed.implies((self.job == Job.failed) | after.drop_requested)

    @step_property
    def failed_builds_are_not_begun_again(self, after: Self) -> Bool:
        """002, Design Goals: "If a problem arises while scanning the table", the command "should abort and result in a
        failure": of a job that has failed nothing follows but the removal of its index, whoever leads by then.
        """
        goes = ~after.permission.column(lambda p: p.kept)
        return (self.job == Job.failed).implies((after.job == Job.failed) | goes)

    @invariant
    def two_versions_are_in_use(self, s: Term[Server]) -> Bool:
        """002: "Once all the schema changes are propagated to all the nodes, the index state is updated",
        so no server is more than a version behind; only DROP INDEX does not wait for the one before.
        """
        waited = self._waited() & ~self.drop_requested
        return waited.implies(self.version <= self.learned_version[s] + 1)

    @invariant
    def what_one_server_writes_the_others_delete(self, a: Term[Server], b: Term[Server]) -> Bool:
        """F1, section 4: no orphan, as no server deletes rows but not their entries while another writes
        entries. Just after DROP INDEX it may be so, but then nothing will ever read them.
        """
        only_when(not self.era.postgres)
        writes = self.learned[a].column(lambda p: p.write)
        return (self._waited() & writes).implies(self.learned[b].column(lambda p: p.delete))

    @invariant
    def what_one_server_reads_the_others_write(self, a: Term[Server], b: Term[Server]) -> Bool:
        """F1, section 4: no missing entry, as no server leaves entries out while another reads them."""
        only_when(not self.era.postgres)
        reads = self.learned[a].column(lambda p: p.read)
        return reads.implies(self.learned[b].column(lambda p: p.write))

    @step_property
    def the_index_is_not_read_before_it_is_built(self, after: Self, s: Term[Server]) -> Bool:
        """002, "Intermediate states": "until the backfill process is complete, the newly created index will not
        be available for any reads": a server begins to read what is published, and not what has failed.
        """
        reads = self.learned[s].column(lambda p: p.read)
        begins = ~reads & after.learned[s].column(lambda p: p.read)
        return begins.implies(self.permission == Permission.read_write_and_delete)

    @invariant
    def published_indexes_serve_reads(self, s: Term[Server]) -> Bool:
        """002, READ_WRITE_AND_DELETE: "the final state, where the MyIndex index can be used to serve reads"."""
        published = self.permission == Permission.read_write_and_delete
        reads = self.learned[s].column(lambda p: p.read) & self.served().column(lambda p: p.read)
        return (published & self.fully_applied.is_none()).implies(reads)

    @invariant
    def clients_read_what_every_server_maintains(self, s: Term[Server]) -> Bool:
        """Clients are served `fully_applied`, so they read an index only if every server maintains it."""
        only_when(not self.era.postgres)
        reads = self.served().column(lambda p: p.read)
        return reads.implies(self.learned[s].column(lambda p: p.write))

    @invariant
    def servers_write_before_the_backfill(self, s: Term[Server]) -> Bool:
        """002: "Once all the schema changes converge, the index state finally gets set to DB_REORG": by then
        every server applies "all inserts, updates and deletes" to the index.
        """
        only_when(not self.era.postgres)
        begun = self.permission == Permission.do_backfill
        return begun.implies(self.learned[s].column(lambda p: p.write))

    @invariant
    def backfill_waits_for_every_server(self, s: Term[Server]) -> Bool:
        """002: "After the index state is updated to DB_REORG, the YB-Master orchestrates the backfill", which a
        server refuses until it has learned it; clients are served that permission from then on.
        """
        at = self.backfilled_at()
        running = (self.job == Job.running) & (self.permission == at)
        return running.implies((self.learned[s] == at) & (self.served() == at))

    @invariant
    def a_published_index_violates_nothing(self) -> Bool:
        """002, Design Goals: if there is "a unique constraint violation in a unique index, the CREATE INDEX
        command should abort".
        """
        published = self.permission == Permission.read_write_and_delete
        return published.implies(~self.violates_constraint)

    @invariant
    def a_deleted_index_is_not_used(self, s: Term[Server]) -> Bool:
        """No server reads or writes the table of an index that is deleted."""
        only_when(not self.era.postgres)
        used = self.learned[s].column(lambda p: p.read | p.write | p.delete)
        return self.is_gone().implies(~used)

    # -- lemmas for the proof ----------------------------------------------------------------------------

    @lemma
    def versions_count_permissions(self) -> Bool:
        """Each permission is a version, of which an index has seven and its end one."""
        last = self.permission.number_column(
            lambda p: LAST_VERSION if p is Permission.absent else list(Permission).index(p)
        )
        first = (self.version == 0).implies(self.permission == Permission.absent)
        return first & (self.version <= last)

    @lemma
    def servers_know_what_was_stored(self, s: Term[Server]) -> Bool:
        """A server at the current version has the permission that is stored; no other has reported."""
        current = self.learned_version[s] == self.version
        known = current.implies(self.learned[s] == self.permission)
        counts = self.reported.has(s).implies(current)
        return known & counts & (self.learned_version[s] <= self.version)

    @lemma
    def servers_behind_have_the_version_before(self, s: Term[Server]) -> Bool:
        """A server that is not at the current version has what is `fully_applied`."""
        current = self.learned_version[s] == self.version
        before = self.learned_version[s] + 1 == self.version
        behind = before & (self.fully_applied == self.learned[s])
        return self._waited().implies(current | behind)

    @lemma
    def one_permission_follows_another(self) -> Bool:
        """What is `fully_applied` is the permission before the one that is stored."""
        if self.era.postgres:
            follow = {Permission.write_and_delete: Permission.absent}
            if self.era.do_backfill:
                follow[Permission.do_backfill] = Permission.write_and_delete
            follow[Permission.read_write_and_delete] = self.backfilled_at()
        else:
            follow = {p: q for q, p in pairwise(Permission) if p.kept or p.number > 8}
        return every(
            (self.permission == p).implies(self.fully_applied.any_of(q, None))
            for p, q in follow.items()
        )

    @lemma
    def jobs_belong_to_a_permission(self, s: Term[Server]) -> Bool:
        """A job is at the permission of the backfill, which every server has, or the index is removed."""
        current = self.learned_version[s] == self.version
        applied = current & self.fully_applied.is_none()
        at = (self.permission == self.backfilled_at()) & applied
        succeeds = (self.job == Job.success).implies(~self.violates_constraint)
        return ((self.job == Job.none) | at | self._removed()) & succeeds

    # -- where it may stop, and where it must get --------------------------------------------------------

    @final
    def at_rest(self) -> Bool:
        """An index may stay ready, absent or gone; with YSQL a failed one stays until it is dropped."""
        rests = self.permission.any_of(Permission.absent, Permission.read_write_and_delete)
        if self.era.postgres:
            failed = self.permission == Permission.write_and_delete_while_removing
            rests = rests | failed
        return rests & every(self.learned_version[s] == self.version for s in Server)

    @always_reachable
    def can_be_ready_or_gone(self) -> Bool:
        """Whatever happened, the index can still be ready for reads, or gone from every server."""
        ready = (self.permission == Permission.read_write_and_delete) & self.fully_applied.is_none()
        gone = every(self.learned[s] == Permission.absent for s in Server)
        end = ready | ((self.permission == Permission.absent) & gone)
        if self.era.postgres:  # a failed one stays until somebody drops it
            end = end | (self.permission == Permission.write_and_delete_while_removing)
        return end

    @liveness
    def builds_end(self) -> LeadsTo:
        """002: the command results in an index that serves reads, or "should abort and result in a failure"."""
        built = self.permission == Permission.read_write_and_delete
        return leads_to(self.permission.column(lambda p: p.kept), built | self._removed())

    @liveness
    def completed_builds_are_published(self) -> LeadsTo:
        """002, "Finalize the index": "Once the index build is successfully completed on all the tablets of the table, the
        table state is updated to READ_WRITE_AND_DELETE", unless a client drops the index first.
        """
        published = self.permission == Permission.read_write_and_delete
        return leads_to(self.job == Job.success, published | self.drop_requested)

    @liveness
    def clients_are_served_the_published_index(self) -> LeadsTo:
        """Once the index is READ_WRITE_AND_DELETE, and every server knows, clients may read it."""
        published = self.permission == Permission.read_write_and_delete
        return leads_to(published, self.fully_applied.is_none() | self._removed())

    @liveness
    def removals_end(self) -> LeadsTo:
        """An index whose removal has begun is gone in the end."""
        only_when(self.era.stepwise_removal)
        return leads_to(self._removed(), self.is_gone())

    @liveness
    def jobs_end(self) -> LeadsTo:
        """A job ends and is forgotten, also that of a dropped index, so that the table can have another."""
        return leads_to(self.job != Job.none, self.job == Job.none)

    @independent(
        finish_backfill,
        find_violation,
        publish,
        give_up,
        forget_job,
        of=(learned, learned_version, reported, fully_applied),
    )
    def jobs_wait_for_no_server(self) -> None:
        """002, "Backfill the data": a job is "to wait for the backfill to complete on all the tablets": for a schema that servers
        apply meanwhile, as that of an index which is dropped, it is not; one that is down would hold up the next job.
        """

    # -- helpers -----------------------------------------------------------------------------------------

    def _waited(self) -> Bool:
        """The permission is one that the master stores only when all servers have the one before."""
        stepwise = (Permission.delete_only_while_removing, Permission.index_unused)
        return self.permission.column(lambda p: p.kept) | self.permission.any_of(*stepwise)

    def _removed(self) -> Bool:
        return self.permission.column(lambda p: p.removed) | self.is_gone()

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            a_deleted_index_is_not_used,
            under=SEED,
            because="there are no words for a way back: the index is deleted at once, and other servers still write to it",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_helper(
            permission_number,
            "is one less",
            because="an index that has a permission may be given it once more",
        ),
        equivalent_drop(create_index, "permission is absent", because=VERSION_SAYS_IT),
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
        equivalent_replacement(
            forget_job,
            "there is a job: running for none",
            because="the job of an index that was dropped comes to its end, and is forgotten then",
        ),
        equivalent_drop(
            learn, "the server is behind", because="a schema that is applied once more is the same"
        ),
        equivalent_replacement(
            _enter,
            "version becomes: 2 for 1",
            because="a version need only be newer than those before",
        ),
        equivalent_weakening(
            _is_not_past,
            "the index is not past the permission",
            because="a job ends once, so that the index is never just at what it would write",
        ),
        equivalent_weakening(
            forget_job,
            "the index is past what the job would write",
            because="permissions have even numbers",
        ),
        equivalent_loss(give_up, fully_applied, because=STOPS_AT_ONCE),
        equivalent_loss(drop_index, fully_applied, because=STOPS_AT_ONCE),
        equivalent_loss(delete_index, fully_applied, because=STOPS_AT_ONCE),
        equivalent_loss(drop_index_in_postgres, fully_applied, because=STOPS_AT_ONCE),
    )
