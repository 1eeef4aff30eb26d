"""A safe time is given when no transaction is left that does not maintain the indexes."""

from __future__ import annotations

import pytest
from tests.impl.indexes.bulk.test_loading import Turns

from stagewright.impl.indexes.messages import AlterTable, AskFate, GetSafeTime, SafeTime, Write
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.schema import IndexInfo, Schema
from stagewright.impl.indexes.table_tablet import TableTablet
from stagewright.impl.storage.memory import MemoryRows, ModelledDisk
from stagewright.machines.yugabytedb.indexes.index_states import Permission

NONE = Schema(1)


def known(version: int, permission: Permission) -> Schema:
    """The schema with one index."""
    return Schema(version, (IndexInfo(0, "i", "v", False, permission),))


@pytest.mark.parametrize(
    ("first", "second", "given"),
    [
        (NONE, known(3, Permission.write_and_delete), False),
        (known(2, Permission.delete_only), known(3, Permission.write_and_delete), False),
        (known(3, Permission.write_and_delete), known(4, Permission.do_backfill), True),
    ],
    ids=["unknown", "deletes alone", "writes"],
)
def test_a_statement_that_the_next_leader_plans_anew_is_awaited_as_it_was_planned_first(
    first: Schema, second: Schema, given: bool
) -> None:
    """Its client may take the answer of the first leader, and commit what that one has planned."""
    store, port = MemoryRows(ModelledDisk()), Turns()
    leaders = list[TableTablet]()
    for schema in (first, second):
        leaders.append(TableTablet(0, port, store, Settings()))
        leaders[-1].receive("master", AlterTable(schema))
        leaders[-1].receive("client", Write("t", 0, 5, {"v": 1}, schema))
    port.sent.clear()
    leaders[-1].receive("master", GetSafeTime(1, (0,)))
    assert [type(m) for m in port.sent] == [SafeTime if given else AskFate]
