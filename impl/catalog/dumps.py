"""Dumps of the system tables as `cqlsh` prints them: `SELECT JSON * FROM system.topology` and so on.

A host's id is made from its name, which no other host ever had. `stagewright validate` reads these dumps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from uuid import NAMESPACE_DNS, uuid5

from stagewright.impl.catalog.catalog import Catalog
from stagewright.impl.catalog.columns import ALL, REQUESTS, TOPOLOGY, Row
from stagewright.impl.group0 import Entry

_OF_HOSTS = ("replaced_id", "initiating_host")


def host_id_of(name: str) -> str:
    """The host id of a node."""
    return str(uuid5(NAMESPACE_DNS, name))


def dump(catalog: Catalog, table: str, milliseconds: int) -> str:
    """A snapshot of a table: when it was taken (since 1970), its rows, how many there are."""
    taken = datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    rows = list(_rows(catalog, table))
    lines = [json.dumps(_with_host_ids(row)) for row in rows]
    return "\n".join([taken, "[json]", *lines, f"({len(rows)} rows)", ""])


def _rows(catalog: Catalog, table: str) -> Iterator[Row]:
    rows = catalog.tables[table]
    if table == TOPOLOGY:
        static = rows.get(ALL, {})
        for key, row in rows.items():
            if key != ALL:
                yield {"key": "topology", "host_id": host_id_of(key[0]), **static, **row}
    elif table == REQUESTS:
        for key, row in rows.items():
            yield {"id": key[0], **row}
    else:
        for key, row in rows.items():
            yield {"key": list(key), **row}


def _with_host_ids(row: Row) -> Row:
    return {
        name: host_id_of(value) if name in _OF_HOSTS and value is not None else value
        for name, value in row.items()
    }


def history(entries: list[Entry]) -> str:
    """`system.group0_history`: every commit, the newest first."""
    lines = [
        json.dumps(
            {"key": "history", "state_id": str(e.id.id), "description": e.command.description}
        )
        for e in reversed(entries)
    ]
    return "\n".join(["[json]", *lines, f"({len(lines)} rows)", ""])
