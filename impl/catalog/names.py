"""Which table or view a name means: one that is created again is another one, whatever the name.

Rows, hints, tasks, streams and updates on their way are kept by an id, as upstream keeps them by the id of a table:
nothing of a dropped one, on whoever was down or late, comes into the next one. The first table or view of a name has
the name as its id, the next one a number behind it. The log of a table is named after the table's id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from stagewright.impl.catalog.columns import Rows
from stagewright.impl.group0 import Mutation
from stagewright.spec.errors import RefusedError

DROPPED = "dropped_tables"
"""The tables that were dropped, by id: who was down has rows of them, and who is late sends some. It is never emptied."""
NO_TABLE = "there is no table "
NOT_FOR_CLIENTS = ": the database alone writes it"
_LOCAL = "scylla_local"
_NUMBER = re.compile(r"#\d+")


def name_of(thing: str) -> str:
    """The name under which a table or view was created, or that of a log, by its id."""
    return _NUMBER.sub("", thing, count=1)


def no_table(table: str) -> str:
    """Why what is asked of a table fails that is not there."""
    return f"{NO_TABLE}{name_of(table)}"


def new_id(tables: Mapping[str, Rows], name: str) -> str:
    """The id of a table or view that is created under a name now."""
    row = tables[_LOCAL].get(_dropped(name))
    return name if row is None else f"{name}#{int(row['value']) + 1}"


def refuse_late(tables: Mapping[str, Rows], wanted: str) -> None:
    """Refuse to make a table or view by an id that it cannot have any more: its name has come and gone since.

    Raises:
        RefusedError: the statement is late.
    """
    name = name_of(wanted)
    if new_id(tables, name) != wanted:
        problem = f"{name} was created or dropped by others since this was asked"
        raise RefusedError(problem, (), help="look at what is there, and ask again")


def drop_of(tables: Mapping[str, Rows], name: str) -> Mutation:
    """The row that counts what was dropped under a name, when one more is."""
    return Mutation(_LOCAL, _dropped(name), {"value": str(1 + _count(tables, name))})


def drop_of_table(tables: Mapping[str, Rows], table: str) -> Iterator[Mutation]:
    """The same of a table, by its id, with the row that keeps this."""
    yield drop_of(tables, name_of(table))
    yield Mutation(DROPPED, (table,), {})


def was_dropped(tables: Mapping[str, Rows], table: str) -> bool:
    """Whether there ever was a table of an id, and was dropped."""
    return (table,) in tables.get(DROPPED, {})


def last_before(unused: str) -> str:
    """The id of the last table or view before the next one of a name; empty if there never was one."""
    name, count = name_of(unused), _NUMBER.search(unused)
    before = int(count.group()[1:]) - 1 if count else 0
    return f"{name}#{before}" if before > 1 else name if before else ""


def dropped_in(tables: Mapping[str, Rows]) -> Iterable[str]:
    """The ids of the tables that were dropped."""
    return (table for (table,) in tables.get(DROPPED, {}))


def _count(tables: Mapping[str, Rows], name: str) -> int:
    row = tables[_LOCAL].get(_dropped(name))
    return 0 if row is None else int(row["value"])


def _dropped(name: str) -> tuple[str]:
    return (f"dropped:{name}",)
