"""The permissions of one index, and what they promise while every server learns them in its own time.

Two versions of the schema are in use at a time, as in F1 (Rae et al., VLDB 2013), and never three, so what is
promised is that two neighbours in the order of the permissions get on with each other. The steps are in
`index_steps.py`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Self

from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.machines.yugabytedb.indexes.index_steps import (
    LAST_VERSION,
    IndexSteps,
    Job,
    Server,
    permission_number,
)
from stagewright.spec import (
    Bool,
    LeadsTo,
    Term,
    always_reachable,
    every,
    final,
    invariant,
    leads_to,
    liveness,
    only_when,
    step_property,
)


class IndexPermissions(IndexSteps):
    """One index from CREATE INDEX to the end of DROP INDEX.

    Profiles: `seed` is the design document, which has four states, and no words for the way back: an index
    whose backfill failed "will be cleaned up and deleted" at once. So `a_deleted_index_is_not_used` fails: other
    servers still write to it. `ycql` is the code: eight states, and a removal in steps. Of `ysql` these are the
    permissions of DocDB alone, which postgres moves on and whose later removal states it does not use
    (`index_postgres.py` has its flags and backends); `ysql-early` is the same, and `ysql-no-do-backfill` ran
    the backfill while the permission stayed at WRITE_AND_DELETE.
    """

    @step_property
    def indexes_begin_without_reads(self, after: Self) -> Bool:
        """002, "Create the index table": the first change "sets the state of the MyIndex index to DELETE_ONLY";
        in YSQL it is WRITE_AND_DELETE.
        """
        created = (self.version == 0) & (after.version > 0)
        return created.implies(after.permission == self.era.created_at)

    @step_property
    def permissions_only_grow(self, after: Self) -> Bool:
        """`UpdateIndexPermission`: an index that is past a permission never gets it again."""
        grown = permission_number(after.permission) > permission_number(self.permission)
        same = after.version == self.version
        return same | grown | (after.permission == Permission.absent)

    @step_property
    def indexes_are_removed_for_a_reason(self, after: Self) -> Bool:
        """An index that is built stays, unless its job has failed or a client has dropped it."""
        removed = self.permission.column(lambda p: p.kept) & ~after.permission.column(
            lambda p: p.kept
        )
        return removed.implies((self.job == Job.failed) | after.drop_requested)

    @invariant
    def two_versions_are_in_use(self, s: Term[Server]) -> Bool:
        """002: "Once all the schema changes are propagated to all the nodes, the index state is updated",
        so no server is more than a version behind; only DROP INDEX does not wait for the one before.
        """
        return self._waited().implies(self.version <= self.learned_version[s] + 1)

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

    @invariant
    def the_index_is_not_read_before_it_is_built(self, s: Term[Server]) -> Bool:
        """002, "Intermediate states": "until the backfill process is complete, the newly created index will not
        be available for any reads".
        """
        reads = self.learned[s].column(lambda p: p.read)
        built = (self.permission == Permission.read_write_and_delete) | self._removed()
        return reads.implies(built)

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

    @invariant
    def versions_count_permissions(self) -> Bool:
        """Lemma: each permission is a version, of which an index has seven and its end one."""
        last = self.permission.number_column(
            lambda p: LAST_VERSION if p is Permission.absent else list(Permission).index(p)
        )
        first = (self.version == 0).implies(self.permission == Permission.absent)
        return first & (self.version <= last)

    @invariant
    def servers_know_what_was_stored(self, s: Term[Server]) -> Bool:
        """Lemma: a server at the current version has the permission that is stored; no other has reported."""
        current = self.learned_version[s] == self.version
        known = current.implies(self.learned[s] == self.permission)
        counts = self.reported.has(s).implies(current)
        return known & counts & (self.learned_version[s] <= self.version)

    @invariant
    def servers_behind_have_the_version_before(self, s: Term[Server]) -> Bool:
        """Lemma: a server that is not at the current version has what is `fully_applied`."""
        current = self.learned_version[s] == self.version
        before = self.learned_version[s] + 1 == self.version
        behind = before & (self.fully_applied == self.learned[s])
        return self._waited().implies(current | behind)

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
        return every(
            (self.permission == p).implies(self.fully_applied.any_of(q, None))
            for p, q in follow.items()
        )

    @invariant
    def jobs_belong_to_a_permission(self, s: Term[Server]) -> Bool:
        """Lemma: a job is at the permission of the backfill, which every server has, or the index is removed."""
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

    # -- what recurs -------------------------------------------------------------------------------------

    def _waited(self) -> Bool:
        """The permission is one that the master stores only when all servers have the one before."""
        stepwise = (Permission.delete_only_while_removing, Permission.index_unused)
        return self.permission.column(lambda p: p.kept) | self.permission.any_of(*stepwise)

    def _removed(self) -> Bool:
        return self.permission.column(lambda p: p.removed) | self.is_gone()
