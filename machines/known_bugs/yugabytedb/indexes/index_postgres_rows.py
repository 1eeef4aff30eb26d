"""Mistakes put back into `PostgresRows`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.yugabytedb.indexes.index_actors import CLIENT, POSTGRES, Server
from stagewright.machines.yugabytedb.indexes.index_postgres_rows import PostgresRows
from stagewright.machines.yugabytedb.indexes.index_rows import IndexRows, Row, Value
from stagewright.machines.yugabytedb.indexes.index_states import Flags
from stagewright.spec import Term, action, every, require, some
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "002-84",
    "design document 002: the index build itself will occur asynchronously",
    breaks="index.indexes_are_dropped_at_any_time",
    sizes={Server: 1},
)
class DropIndexWaitsForTransactions(PostgresRows):
    """DROP INDEX is refused while a transaction of a client has a row locked."""

    @action(by=POSTGRES, spends=PostgresRows.drops)
    def drop_index(self) -> None:
        """No transaction is pending."""
        super().drop_index()
        pending = some(self.transaction[s][r].pending for s in Server for r in Row)
        require(~pending, "no transaction is pending")


@known_bug(
    "002-148",
    'design document 002: the index "can be used to serve reads"',
    breaks=PostgresRows.valid_indexes_are_read_at_any_time,
    budgets={IndexRows.writes: 0, IndexRows.drops: 0},
)
class ReadsWaitForEveryBackend(PostgresRows):
    """A backend that had read `indisvalid` used the index when every other one had read it, too."""

    @action(by=CLIENT)
    def read_index(self, s: Term[Server], r: Term[Row], value: Term[Value]) -> None:
        """A client looks a value up in the index."""
        valid = every(self.index.cached[o] == Flags.indisvalid for o in Server)
        require(valid, "every backend knows that it is valid")
        super().read_index(s, r, value)


BUGS = known_bugs_in(globals())
