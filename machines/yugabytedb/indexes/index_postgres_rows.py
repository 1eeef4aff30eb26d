"""Rows and entries of an index of YSQL, where postgres's backends plan the writes by the flags they cached."""

from __future__ import annotations

from stagewright.machines.yugabytedb.indexes.index_actors import POSTGRES, Server
from stagewright.machines.yugabytedb.indexes.index_postgres import UNUSED, PostgresIndex
from stagewright.machines.yugabytedb.indexes.index_rows import IndexRows, PromptIndex, Row, Value
from stagewright.machines.yugabytedb.indexes.index_states import (
    YSQL,
    YSQL_EARLY,
    YSQL_NO_DO_BACKFILL,
    Flags,
    Permission,
)
from stagewright.spec import (
    Bool,
    Term,
    accepts,
    action,
    equivalent_loss,
    equivalent_value,
    equivalents,
    known_violations,
    part,
    profiles,
    require,
    violated,
)

NOT_OF_FLAGS = (
    Permission.do_backfill,
    Permission.write_and_delete_while_removing,
    Permission.delete_only_while_removing,
    Permission.index_unused,
)
NO_FLAG = "backends plan by their flags, none of which says that"


class PromptPostgresIndex(PromptIndex, PostgresIndex):
    """An index of YSQL without constraints, of whose servers the master knows what they have learned."""


class PostgresRows(IndexRows):
    """Clients write rows while an index of them is built, used and dropped through YSQL.

    Where postgres slept instead of waiting for its backends, rows show what comes of it.
    """

    unused = UNUSED

    era = profiles(YSQL_EARLY, YSQL_NO_DO_BACKFILL, YSQL)
    index = part(
        PromptPostgresIndex,
        without=(
            PromptPostgresIndex.report,
            PromptPostgresIndex.find_violation,
            PromptPostgresIndex.alter_another_index,
        ),
    )

    @action(by=POSTGRES)
    def create_index(self) -> None:
        """A client creates the index."""
        self.index.create_index_in_postgres()

    @action(by=POSTGRES, spends=IndexRows.drops)
    def drop_index(self) -> None:
        """A client drops the index: postgres forgets it, and the index table is deleted."""
        self.index.drop_index_in_postgres()
        self._delete_entries()

    def _look_up(self, r: Term[Row], value: Term[Value]) -> None:
        require(self.index.permission != Permission.absent, "the index table is not deleted")
        super()._look_up(r, value)

    def _plans_by(self, s: Term[Server]) -> Term[Permission]:
        return self.index.cached[s].column(lambda f: f.permission)

    # -- promises --------------------------------------------------------------------------------------

    @accepts(IndexRows.read_index)
    def valid_indexes_are_read_at_any_time(
        self, s: Term[Server], r: Term[Row], value: Term[Value]
    ) -> Bool:
        """002, READ_WRITE_AND_DELETE: the index "can be used to serve reads": by each backend that knows it for valid, as
        long as its table is there, whatever others know and clients write.
        """
        del r, value
        valid = self.index.cached[s] == Flags.indisvalid
        return valid & (self.index.permission != Permission.absent)

    # -- what older versions break ---------------------------------------------------------------------

    left_open = known_violations(
        violated(
            IndexRows.no_orphan_entry,
            IndexRows.no_missing_entry,
            IndexRows.reads_through_the_index_find_the_rows,
            IndexRows.entries_have_the_time_of_their_rows,
            IndexRows.entries_are_backfilled_in_the_past,
            under=(YSQL_EARLY, YSQL_NO_DO_BACKFILL),
            because="a backend that postgres has not waited for does not yet know that it is to write entries, or to "
            "delete them (yugabyte-db #6238, #7376)",
        ),
    )

    # -- harmless changes ------------------------------------------------------------------------------

    harmless = equivalents(
        equivalent_value(NOT_OF_FLAGS, lambda p: p.write, because=NO_FLAG),
        equivalent_value(NOT_OF_FLAGS, lambda p: p.delete, because=NO_FLAG),
        equivalent_loss(
            create_index,
            PromptPostgresIndex.reported,
            because="before it no server has reported anything",
        ),
    )
