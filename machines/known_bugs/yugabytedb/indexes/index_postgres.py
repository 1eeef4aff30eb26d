"""Mistakes put back into `PostgresIndex`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.yugabytedb.backfill.backfill_table import MASTER, WEAK
from stagewright.machines.yugabytedb.indexes.index_actors import POSTGRES, Server
from stagewright.machines.yugabytedb.indexes.index_life import IndexLife, Job
from stagewright.machines.yugabytedb.indexes.index_postgres import OTHER_VERSIONS, PostgresIndex
from stagewright.machines.yugabytedb.indexes.index_states import Flags, Permission
from stagewright.spec import Term, action, bounded, choose, every, only_when, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in

GO_ON = "design document 002: queries continue against the existing indexes"
FINALIZE = 'design document 002, "Finalize the index"'
ASYNCHRONOUS = 'design document 002: "The CREATE INDEX command is asynchronous"'
ON_ALL_NODES = (
    'design document 002: HandleAlterTable() "initiates a schema change on all the nodes"'
)
CREATE_TABLE = 'design document 002, "Create the index table"'


# -- what goes wrong -------------------------------------------------------------------------------


@known_bug(
    "002-368",
    'design document 002: the backfill begins when "all the schema changes converge"',
    breaks=PostgresIndex.the_backfill_waits_for_the_flag,
    profile="ysql-no-do-backfill",
)
class BackfillsBeginWithThePermission(PostgresIndex):
    """The job is launched when every server is at WRITE_AND_DELETE, which they are from the start: the backends still
    delete alone.
    """

    @action(by=POSTGRES, fair=WEAK)
    def launch_backfill_at_once(self) -> None:
        """Whatever `pg_index` says."""
        only_when(not self.era.do_backfill)
        self.launch_backfill()


@known_bug(
    "002-85",
    'design document 002: the backfill begins when "all the schema changes converge"',
    breaks=PostgresIndex.backfill_waits_for_every_backend,
)
class BackendsAreWaitedForAtTheEnd(PostgresIndex):
    """Postgres waited for its backends before queries could use the index, and not before the backfill: rows that they had
    written meanwhile without an entry were behind the scan.
    """

    @IndexLife.permission.step(
        Permission.write_and_delete, Permission.do_backfill, by=POSTGRES, fair=WEAK
    )
    def allow_backfill(self) -> None:
        """Every server has the permission: postgres asks for the backfill."""
        only_when(self.era.do_backfill)
        self._is_ready()
        self._all_reported()
        self._enter()

    @PostgresIndex.flags.step(Flags.indisready, Flags.indisvalid, by=POSTGRES, fair=WEAK)
    def make_valid(self) -> None:
        """The master says that the index is built, and every backend maintains it."""
        require(self.permission == Permission.read_write_and_delete, "the index is built")
        self._wait_for_backends()


@known_bug(
    "002-132",
    GO_ON,
    breaks=PostgresIndex.published_indexes_go_on_serving_reads,
)
class EveryVersionIsOfEveryIndex(PostgresIndex):
    """While another index is altered, what clients are served is as if this one, which they read, were altered, too."""

    @action(by=MASTER)
    def alter_another_index(self) -> None:
        """Another index of the table moves on; until every server knows, this one is taken for one step back."""
        bounded(self.others < OTHER_VERSIONS, "other indexes have had their versions")
        require(self.permission != Permission.absent, "the index is there")
        require(self.job == Job.none, "no job is running")
        self._all_reported()
        published = self.permission == Permission.read_write_and_delete
        self.version = self.version + 1
        self.fully_applied = choose(published, self.backfilled_at(), self.permission)
        self.reported = frozenset()
        self.others = self.others + 1


@known_bug(
    "002-181",
    'design document 002, READ_WRITE_AND_DELETE: the index "can be used to serve reads"',
    breaks=PostgresIndex.valid_indexes_are_used,
)
class AnswersOfPostgresAreErrors(PostgresIndex):
    """Postgres answers to the last chunk that no row is left, which the master took for an error: it failed each index."""

    @action(by=MASTER, fair=WEAK)
    def finish_backfill(self) -> None:
        """The rows of all tablets are in the index, and the job fails."""
        require(self.job == Job.running, "the job is running")
        require(~self.violates_constraint, "no row violates a constraint")
        self.job = Job.failed


@known_bug(
    "002-245",
    "design document 002, Intermediate states of the index table",
    breaks=PostgresIndex.the_index_is_not_read_before_it_is_built,
)
class ServersCountTheirPermissions(PostgresIndex):
    """A server that hears of a new version takes the permission after its own: when the build has failed that is
    READ_WRITE_AND_DELETE.
    """

    def _apply(self, s: Term[Server]) -> None:
        own, now = self.learned[s], self.permission
        told = (own == Permission.absent) | (now == Permission.absent) | (own == now)
        self.learned[s] = choose(told, now, own.column(lambda p: p.following))
        self.learned_version[s] = self.version


@known_bug(
    "Y16",
    "YugabyteDB's release notes, 2024.2.6.0-b89",
    breaks=PostgresIndex.a_dropped_index_has_no_flags,
)
class AnotherIndexMovesTheFailedOne(PostgresIndex):
    """A backfill had failed, and its index waited for postgres to drop it. The versions of another index of the table
    moved it on like one of YCQL, until its index table was deleted.
    """

    def _beside_another(self) -> Term[Permission]:
        return self.permission.column(lambda p: p.following if p.removed else p)


@known_bug("002-408", GO_ON, breaks=PostgresIndex.published_indexes_go_on_serving_reads)
class OtherVersionsAreLearnedFromNothing(PostgresIndex):
    """As another index is altered, servers forget what they know of the table, also of an index that they read, until they
    have the new version.
    """

    @action(by=MASTER)
    def alter_another_index(self) -> None:
        """Nothing of the old version is left."""
        super().alter_another_index()
        for s in Server:
            self.learned[s] = Permission.absent


# -- what is never done ----------------------------------------------------------------------------


@known_bug(
    "002-70",
    'design document 002: "An aborted index will be cleaned up and deleted"',
    breaks=PostgresIndex.dropped_indexes_are_forgotten,
)
class BackendsKeepWhatIsDropped(PostgresIndex):
    """Backends read the catalog anew for the flags of an index; of one that is not in it there are none to read."""

    @action(fair=WEAK)
    def refresh(self, s: Term[Server]) -> None:
        """The index is in the catalog."""
        super().refresh(s)
        require(self.flags != Flags.none, "the index is in the catalog")


@known_bug(
    "002-405",
    'design document 002: "An aborted index will be cleaned up and deleted"',
    breaks=PostgresIndex.dropped_indexes_are_deleted,
)
class FailedIndexesCountAsDeleted(PostgresIndex):
    """The permission of an index that has failed says that it is removed: DROP INDEX takes that one out of postgres's catalog
    alone, and nobody deletes its table.
    """

    @action(by=POSTGRES)
    def drop_index_in_postgres(self) -> None:
        """DROP INDEX: postgres takes the index out of its catalog, and DocDB deletes what is not removed yet."""
        require(self.flags != Flags.none, "the index is there")
        failed = self.permission.column(lambda p: p.removed)
        self.flags = Flags.none
        self.drop_requested = True
        self._enter()
        self.permission = choose(failed, self.permission, Permission.absent)


# -- who is refused, or waits ----------------------------------------------------------------------


@known_bug(
    "002-5",
    "design document 002: the index build itself occurs asynchronously",
    breaks=PostgresIndex.indexes_are_dropped_at_any_time,
)
class PostgresWaitsForTheJob(PostgresIndex):
    """DROP INDEX is refused by postgres while the index is backfilled."""

    @action(by=POSTGRES)
    def drop_index_in_postgres(self) -> None:
        """The index is taken out of both catalogs, if no job is running."""
        super().drop_index_in_postgres()
        require(self.job == Job.none, "no job is running")


@known_bug(
    "002-19",
    'design document 002: several indexes of a table are added "at the same time"',
    breaks=PostgresIndex.indexes_do_not_wait_for_each_other,
)
class OneIndexAfterTheOther(PostgresIndex):
    """While an index of the table waits for its backfill, no other one gets a version."""

    @action(by=MASTER)
    def alter_another_index(self) -> None:
        """Another index moves on, beside one that is not about to be backfilled."""
        require(self.permission != Permission.do_backfill, "no index waits for its backfill")
        super().alter_another_index()


@known_bug("002-143", ASYNCHRONOUS, breaks=PostgresIndex.indexes_are_created_at_once)
class PostgresLooksAtTheRows(PostgresIndex):
    """The same in YSQL, where postgres would scan the table under its own CREATE INDEX."""

    @action(by=POSTGRES)
    def create_index_in_postgres(self) -> None:
        """CREATE INDEX makes the index table."""
        require(~self.violates_constraint, "no row violates a constraint")
        super().create_index_in_postgres()


@known_bug("002-159", ON_ALL_NODES, breaks=PostgresIndex.backends_learn_at_any_time)
class BackendsLearnWhenTheJobIsDone(PostgresIndex):
    """The same of backends: the catalog was not read anew while the index was built."""

    @action(fair=WEAK)
    def refresh(self, s: Term[Server]) -> None:
        """The backends of a server read the catalog anew."""
        require(self.job != Job.running, "no job is running")
        super().refresh(s)


@known_bug("002-299", FINALIZE, breaks=PostgresIndex.published_indexes_become_valid_at_once)
class ValidWhenNothingIsAltered(PostgresIndex):
    """An index that is published becomes valid when every server has reported the last version, of whichever index."""

    @action(by=POSTGRES, fair=WEAK)
    def make_valid(self) -> None:
        """The master says that the index is built, and that no index of the table is altered."""
        require(every(self.reported.has(s) for s in Server), "every server has the version")
        super().make_valid()


@known_bug("002-314", CREATE_TABLE, breaks=PostgresIndex.indexes_become_ready_whatever_is_altered)
class ReadyWhenNothingIsAltered(PostgresIndex):
    """Postgres writes `indisready` when no server has a version of the table to apply, of whichever index."""

    @PostgresIndex.flags.step(Flags.indislive, Flags.indisready, by=POSTGRES, fair=WEAK)
    def make_ready(self) -> None:
        self._wait_for_backends()
        self._all_reported()


@known_bug("002-374", ON_ALL_NODES, breaks=PostgresIndex.servers_wait_for_no_backend)
class ServersReportWhenBackendsKnow(PostgresIndex):
    """A server reports a version of the table when its own backends have read the catalog: until one that hangs has done so,
    no other index of the table moves on.
    """

    @action(fair=WEAK)
    def report(self, s: Term[Server]) -> None:
        require(self.cached[s] == self.flags, "its backends have the committed flags")
        super().report(s)


@known_bug("002-375", ON_ALL_NODES, breaks=PostgresIndex.servers_report_independently)
class ServersReportWhenTheJobIsDone(PostgresIndex):
    """A server that backfills reports no version of the table, so that no other index moves on, also after this one is dropped."""

    @action(fair=WEAK)
    def report(self, s: Term[Server]) -> None:
        require(self.job == Job.none, "no job is running")
        super().report(s)


@known_bug("002-394", CREATE_TABLE, breaks=PostgresIndex.servers_wait_for_no_backend)
class AltersEndWhenBackendsKnow(PostgresIndex):
    """The alter of the table to an index that serves reads is over when every backend has read so: by one that hangs it never is."""

    @action(by=MASTER, fair=WEAK)
    def finish_alter(self) -> None:
        known = every(self.cached[s] == Flags.indisvalid for s in Server)
        require(known, "every backend may use the index")
        super().finish_alter()


BUGS = known_bugs_in(globals())
