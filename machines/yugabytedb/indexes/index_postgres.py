"""The permissions of an index of YSQL: postgres moves its flags on, and the master those of DocDB.

A backend plans what it writes by the flags in `pg_index` as it has cached them. So the rule of two versions is
kept twice: by the tablets' schema versions, and by a barrier that waits until every backend has read the catalog.
The table may have other indexes: each of their permissions is a version of the table, too.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Self

from stagewright.machines.yugabytedb.indexes.index_actors import (
    MASTER,
    POSTGRES,
    WEAK,
    Server,
)
from stagewright.machines.yugabytedb.indexes.index_life import (
    LAST_VERSION,
    STOPS_AT_ONCE,
    VERSION_SAYS_IT,
    IndexLife,
    Job,
)
from stagewright.machines.yugabytedb.indexes.index_states import (
    YSQL,
    YSQL_EARLY,
    YSQL_NO_DO_BACKFILL,
    Flags,
    Permission,
)
from stagewright.spec import (
    Bool,
    LeadsTo,
    NumberVar,
    OneVar,
    Term,
    accepts,
    action,
    bounded,
    equivalent_drop,
    equivalent_loss,
    equivalent_replacement,
    equivalent_step,
    equivalent_value,
    equivalents,
    every,
    final,
    independent,
    invariant,
    known_violations,
    leads_to,
    lemma,
    liveness,
    number,
    one_of,
    only_when,
    per,
    profiles,
    require,
    some,
    sometimes,
    step_property,
    violated,
)

REMOVED = Permission.write_and_delete_while_removing
NOT_OF_YSQL = (
    Permission.delete_only,
    Permission.delete_only_while_removing,
    Permission.index_unused,
)
NEVER = "an index of YSQL never has that permission"


UNUSED = equivalents(
    equivalent_step(IndexLife.permission, NOT_OF_YSQL, tuple(Permission), because=NEVER),
    equivalent_value(NOT_OF_YSQL, lambda p: p.number, because=NEVER),
    equivalent_value(NOT_OF_YSQL, lambda p: p.read, because=NEVER),
    equivalent_value(
        REMOVED, lambda p: p.number, because="postgres alone moves an index on from there"
    ),
)
"""What the removal of YCQL is for, and YSQL leaves to postgres."""


OTHER_VERSIONS = 3  # as many as it takes to remove an index


def _progress(flags: Flags) -> int:
    return flags.permission.number


class PostgresIndex(IndexLife):
    """One index of YSQL, its flags in `pg_index`, and the backends that have cached them.

    Before `ysql` had the barrier, postgres slept a while instead.
    """

    era = profiles(YSQL_EARLY, YSQL_NO_DO_BACKFILL, YSQL)

    unused = UNUSED

    flags: OneVar[Flags] = one_of(Flags, init=Flags.none)
    cached = per(Server, one_of(Flags, init=Flags.none))  # by the backends of a server
    others: NumberVar = number(0, OTHER_VERSIONS)  # versions of the table for other indexes

    # -- the statement ---------------------------------------------------------------------------------

    @IndexLife.permission.step(Permission.absent, Permission.write_and_delete, by=POSTGRES)
    def create_index_in_postgres(self) -> None:
        """CREATE INDEX makes the index table, and commits `indislive`."""
        self._never_existed()
        self.flags = Flags.indislive
        self._enter()

    @flags.step(Flags.indislive, Flags.indisready, by=POSTGRES, fair=WEAK)
    def make_ready(self) -> None:
        """Every backend deletes old values from the index: from now on they also write new ones."""
        self._wait_for_backends()

    @IndexLife.permission.step(
        Permission.write_and_delete, Permission.do_backfill, by=POSTGRES, fair=WEAK
    )
    def allow_backfill(self) -> None:
        """Every backend maintains the index: postgres asks for the backfill (BackfillIndex)."""
        only_when(self.era.do_backfill)
        self._is_ready()
        self._wait_for_backends()
        self._all_reported()
        self._enter()

    @action(by=POSTGRES, fair=WEAK)
    def launch_backfill_at_once(self) -> None:
        """The same where the permission stays at WRITE_AND_DELETE."""
        only_when(not self.era.do_backfill)
        self._is_ready()
        self._wait_for_backends()
        self.launch_backfill()

    @flags.step(
        Flags.indisready,
        Flags.indisvalid,
        by=POSTGRES,
        fair=WEAK,
    )
    def make_valid(self) -> None:
        """The master says that the index is built: queries may use it."""
        require(self.permission == Permission.read_write_and_delete, "the index is built")

    @action(by=POSTGRES)
    def drop_index_in_postgres(self) -> None:
        """DROP INDEX: postgres takes the index out of its catalog, and DocDB deletes the index table.

        A backend that has the old flags meets an error when it writes, and tries again with the new ones.
        """
        require(self.permission != Permission.absent, "the index is there")
        self.flags = Flags.none
        self.drop_requested = True
        self._enter()
        self.permission = Permission.absent

    @action(by=MASTER)
    def alter_another_index(self) -> None:
        """Another index of the table moves on, when every server has the version before; this one stays."""
        bounded(self.others < OTHER_VERSIONS, "other indexes have had their versions")
        require(self.permission != Permission.absent, "the index is there")
        require(self.job == Job.none, "no job is running")
        self._all_reported()
        self._enter()
        self.others = self.others + 1
        self.permission = self._beside_another()

    @action(fair=WEAK)
    def refresh(self, s: Term[Server]) -> None:
        """The backends of a server read the catalog anew."""
        require(self.cached[s] != self.flags, "they are behind")
        self.cached[s] = self.flags

    # -- helpers ---------------------------------------------------------------------------------------

    def _beside_another(self) -> Term[Permission]:
        """An index that has failed, too, stays until postgres drops it."""
        return self.permission

    def _is_in_catalog(self) -> Bool:
        return self.flags != Flags.none

    def _is_ready(self) -> None:
        require(self.flags == Flags.indisready, "indisready is committed")

    def _wait_for_backends(self) -> None:
        """`WaitForYsqlBackendsCatalogVersion`; once it was a sleep."""
        if self.era.backends_barrier:
            current = every(self.cached[s] == self.flags for s in Server)
            require(current, "every backend has the committed flags")

    # -- promises --------------------------------------------------------------------------------------

    @step_property
    def flags_only_grow(self, after: Self) -> Bool:
        """Postgres never takes a flag back, but drops the index."""
        grown = after.flags.number_column(_progress) > self.flags.number_column(_progress)
        return (after.flags == self.flags) | grown | (after.flags == Flags.none)

    @invariant
    def what_one_backend_writes_the_others_delete(self, a: Term[Server], b: Term[Server]) -> Bool:
        """F1, section 4: a backend may write entries only if no other deletes rows without them."""
        writes = self.cached[a].column(lambda f: f.permission.write)
        deletes = self.cached[b].column(lambda f: f.permission.delete)
        return (self._is_in_catalog() & writes).implies(deletes)

    @invariant
    def what_one_backend_reads_the_others_write(self, a: Term[Server], b: Term[Server]) -> Bool:
        """F1, section 4: a backend may read the index only if no other leaves entries out."""
        reads = self.cached[a].column(lambda f: f.permission.read)
        writes = self.cached[b].column(lambda f: f.permission.write)
        return (self._is_in_catalog() & reads).implies(writes)

    @invariant
    def backfill_waits_for_every_backend(self, s: Term[Server]) -> Bool:
        """002: the backfill begins when "all the schema changes converge"; here, when every backend writes."""
        running = (self.job == Job.running) & (self.permission == self.backfilled_at())
        running = running & self._is_in_catalog()
        return running.implies(self.cached[s].column(lambda f: f.permission.write))

    @lemma
    @invariant
    def the_backfill_waits_for_the_flag(self) -> Bool:
        """002: the same of the catalog: what converges is that the index is to be written, which `indisready` says. A lemma of
        `ysql`, where every backend has read that by then; before there was a barrier nothing else says so.
        """
        running = (self.job == Job.running) & (self.permission == self.backfilled_at())
        running = running & self._is_in_catalog()
        return running.implies(self.flags.column(lambda f: f.permission.write))

    @invariant
    def valid_indexes_serve_reads(self, s: Term[Server]) -> Bool:
        """A backend that has read `indisvalid` may use the index for queries."""
        reads = self.cached[s].column(lambda f: f.permission.read)
        return (self.cached[s] == Flags.indisvalid).implies(reads)

    @sometimes
    def valid_indexes_are_used(self, s: Term[Server]) -> Bool:
        """002, READ_WRITE_AND_DELETE: the index "can be used to serve reads": some build is no failure, and each backend
        learns of it.
        """
        return self.cached[s] == Flags.indisvalid

    @invariant
    def backends_forget_a_dropped_index(self, s: Term[Server]) -> Bool:
        """A backend that has read the catalog after DROP INDEX neither reads nor writes the index."""
        used = self.cached[s].column(
            lambda f: f.permission.read | f.permission.write | f.permission.delete
        )
        return (self.is_gone() & (self.cached[s] == self.flags)).implies(~used)

    @invariant
    def valid_means_published(self) -> Bool:
        """Queries use the index only when it is READ_WRITE_AND_DELETE."""
        published = self.permission == Permission.read_write_and_delete
        return (self.flags == Flags.indisvalid).implies(published)

    @step_property
    def published_indexes_go_on_serving_reads(self, after: Self, s: Term[Server]) -> Bool:
        """002: "All the queries/updates continue against MyTable (and the existing indexes if any)": what clients read by
        this index, they do so while another one of the table is added, and on every server that knows it.
        """
        serves, reads = (
            self.served().column(lambda p: p.read),
            self.learned[s].column(lambda p: p.read),
        )
        stays = after.permission == Permission.read_write_and_delete
        goes_on = serves.implies(after.served().column(lambda p: p.read))
        goes_on = goes_on & reads.implies(after.learned[s].column(lambda p: p.read))
        return stays.implies(goes_on)

    @accepts(alter_another_index)
    def indexes_do_not_wait_for_each_other(self) -> Bool:
        """002, "Create the index table": several indexes of a table are added "at the same time"."""
        current = every(self.reported.has(s) for s in Server)
        there = self.permission != Permission.absent
        return there & current & (self.job == Job.none)

    @accepts(make_ready)
    def indexes_become_ready_whatever_is_altered(self) -> Bool:
        """002, "Create the index table": "Once all the schema changes are propagated to all the nodes, the index state is updated":
        the changes of this index: those of another one, which may take as long as its build, are not waited for.
        """
        known = every(self.cached[s] == Flags.indislive for s in Server)
        return known & (self.flags == Flags.indislive)

    @accepts(make_valid)
    def published_indexes_become_valid_at_once(self) -> Bool:
        """002, "Finalize the index": the index is updated to READ_WRITE_AND_DELETE, "at which point the index is completely
        rebuilt": queries may use it when every backend maintains it, whichever other one is being altered.
        """
        published = self.permission == Permission.read_write_and_delete
        known = every(self.cached[s] == Flags.indisready for s in Server)
        return published & known & (self.flags == Flags.indisready)

    @accepts(refresh)
    def backends_learn_at_any_time(self, s: Term[Server]) -> Bool:
        """002, "Create the index table": the schema change is one "on all the nodes", of which none waits for the build."""
        return self.cached[s] != self.flags

    @accepts(create_index_in_postgres)
    def indexes_are_created_at_once(self) -> Bool:
        """002: "CREATE INDEX command is asynchronous": whatever the rows are, which the build is to look at."""
        return self.version == 0

    @accepts(drop_index_in_postgres)
    def indexes_are_dropped_at_any_time(self) -> Bool:
        """DROP INDEX does not wait for the job that builds the index."""
        return self._is_in_catalog()

    @invariant
    def a_dropped_index_has_no_flags(self) -> Bool:
        """DocDB has the index while it is in postgres's catalog: no other index's versions delete its table
        (YugabyteDB's release notes, 2024.2.6.0-b89).
        """
        return self._is_in_catalog().implies(self.permission != Permission.absent)

    @liveness
    def dropped_indexes_are_deleted(self) -> LeadsTo:
        """002, Design Goals: an index is "cleaned up and deleted": what is in no catalog leaves no table behind."""
        return leads_to(self.drop_requested, self.permission == Permission.absent)

    # -- lemmas for the proof --------------------------------------------------------------------------

    @lemma
    def versions_count_permissions(self) -> Bool:
        """Each permission of YSQL is a version, and so is each of other indexes."""
        last = self.permission.number_column(
            lambda p: LAST_VERSION if p is Permission.absent else list(Permission).index(p) - 1
        )
        gone = self.permission == Permission.absent
        first = (self.version == 0).implies(gone)
        counted = gone | (self.version <= last + self.others)
        return first & counted & ~self.permission.any_of(*NOT_OF_YSQL)

    @lemma
    def one_permission_follows_another(self) -> Bool:
        """What is `fully_applied` is the permission before the one that is stored, or the same beside another's."""
        same = self.fully_applied == self.permission
        return super().one_permission_follows_another() | ((self.others > 0) & same)

    @lemma
    def backends_are_one_step_behind(self, s: Term[Server]) -> Bool:
        """What a backend has cached are the flags that are committed, or those before."""
        only_when(self.era.backends_barrier)
        behind = some((self.flags == new) & (self.cached[s] == old) for old, new in pairwise(Flags))
        dropped = ~self._is_in_catalog() & (self.version > 0)
        return dropped | (self.cached[s] == self.flags) | behind

    @lemma
    def backends_write_before_the_backfill(self, s: Term[Server]) -> Bool:
        """From DO_BACKFILL on, every backend has `indisready`."""
        only_when(self.era.backends_barrier)
        begun = self.permission.any_of(Permission.do_backfill, Permission.read_write_and_delete)
        begun = begun & self._is_in_catalog()
        ready = self.flags.any_of(Flags.indisready, Flags.indisvalid)
        return begun.implies(ready & self.cached[s].column(lambda f: f.permission.write))

    @final
    def at_rest(self) -> Bool:
        """An index may stay valid, or gone; a failed one stays until it is dropped."""
        failed = self.permission == Permission.write_and_delete_while_removing
        rests = failed | self.flags.any_of(Flags.none, Flags.indisvalid)
        known = every(self.cached[s] == self.flags for s in Server)
        return rests & known & every(self.learned_version[s] == self.version for s in Server)

    @lemma
    @liveness
    def dropped_indexes_are_forgotten(self, s: Term[Server]) -> LeadsTo:
        """002, Design Goals: an index that is "cleaned up and deleted" is so for every backend, in the end. A lemma: they learn
        at any time, and get round to it.
        """
        return leads_to(self.is_gone(), self.cached[s] == Flags.none)

    @liveness
    def built_indexes_become_valid(self) -> LeadsTo:
        """An index that is built is used, unless it is dropped first."""
        built = self.permission == Permission.read_write_and_delete
        return leads_to(built, ~built | (self.flags == Flags.indisvalid))

    @independent(
        IndexLife.learn,
        IndexLife.report,
        IndexLife.finish_backfill,
        IndexLife.find_violation,
        IndexLife.publish,
        IndexLife.give_up,
        IndexLife.forget_job,
        IndexLife.finish_alter,
        of=(flags, cached),
    )
    def servers_wait_for_no_backend(self) -> None:
        """002, "Create the index table": "The exact set of updates to the system catalog vary based on the API"; the schema change "on
        all the nodes" does not: servers apply and report it whichever flags backends have read, jobs come to their end, and
        so does the alter of their table.
        """

    @independent(
        IndexLife.learn,
        IndexLife.report,
        of=(Server, IndexLife.job, IndexLife.violates_constraint, IndexLife.drop_requested),
    )
    def servers_report_independently(self) -> None:
        """002, "Create the index table": the "HandleAlterTable() call completes on all the tablets": on each in its own time,
        whichever others have applied the schema, and whatever is built, or dropped, meanwhile.
        """

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            what_one_backend_writes_the_others_delete,
            what_one_backend_reads_the_others_write,
            backfill_waits_for_every_backend,
            under=(YSQL_EARLY, YSQL_NO_DO_BACKFILL),
            because="postgres sleeps a while instead of waiting for its backends (yugabyte-db #6238, #7376)",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_drop(create_index_in_postgres, "permission is absent", because=VERSION_SAYS_IT),
        equivalent_drop(
            make_valid,
            "flags is indisready",
            because="an index that is built is ready, or valid already",
        ),
        equivalent_loss(
            alter_another_index,
            IndexLife.permission,
            IndexLife.version,
            because="nothing of this index changes, and no server need learn so",
        ),
        equivalent_replacement(
            alter_another_index,
            "version becomes: 0 for 1",
            because="nothing of this index changes, and no server need learn so",
        ),
        equivalent_loss(drop_index_in_postgres, IndexLife.fully_applied, because=STOPS_AT_ONCE),
        equivalent_drop(
            refresh, "they are behind", because="a catalog that is read once more is the same"
        ),
    )
