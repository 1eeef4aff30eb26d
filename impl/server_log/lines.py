"""One line of a server's log: `INFO  2024-09-27 22:15:13,717 [shard 0: gms] raft_topology - …`.

The words are those of ScyllaDB's source (2026-08). The version and the build id in the banner are made up.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from uuid import NAMESPACE_URL, uuid5

from stagewright.impl.catalog.dumps import host_id_of
from stagewright.impl.catalog.names import name_of
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.spec.machine import profile_names

RELEASE = profile_names(TabletMigration)[-1].removeprefix("scylla-")  # that nodes run
VERSION = f"{RELEASE}.0-0.20260821.0123456789ab"
BANNER = f"Scylla version {VERSION} with build-id {'0123456789abcdef' * 2}01234567 starting ..."

TOPOLOGY = "raft_topology"
GROUP0 = "raft_group0"
PROXY = "storage_proxy"
STORAGE = "storage_service"
REPAIR = "repair"
TABLE = "table"
INIT = "init"
BALANCER = "load_balancer"
VIEW_COORDINATOR = "view_building_coordinator"
VIEW_WORKER = "view_building_worker"
SCHEMA = "schema_tables"
OWN = "stagewright"  # no logger of ScyllaDB

_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


class Level(Enum):
    """How much a line matters."""

    DEBUG = auto()
    INFO = auto()
    WARN = auto()
    ERROR = auto()


def line(microseconds: int, level: Level, logger: str, message: str, shard: int = 0) -> str:
    """A line as the server's own file has it; the time is since 1970, by the node's clock."""
    time = _BEGIN + timedelta(microseconds=microseconds)
    text = f"{time:%Y-%m-%d %H:%M:%S},{time.microsecond // 1000:03}"
    return f"{level.name:<5} {text} [shard {shard}: gms] {logger} - {message}"


def ids(nodes: Iterable[str]) -> str:
    """The host ids of nodes, as a set is printed."""
    return f"{{{', '.join(sorted(map(host_id_of, nodes)))}}}"


def table_id(name: str) -> str:
    """The id of a table, made from its name."""
    return str(uuid5(NAMESPACE_URL, name))


def schema_version(name: str) -> str:
    """The version of a table's schema, which never changes, made from its name."""
    return str(uuid5(NAMESPACE_URL, f"schema of {name}"))


def tablet_id(table: str, number: int) -> str:
    """A tablet: its table and its number."""
    return f"{table_id(table)}:{number}"


def qualified(table: str) -> str:
    """The name of a table, by its id, with its keyspace."""
    name = name_of(table)
    return name if "." in name else f"ks.{name}"


def keyspace_of(table: str) -> str:
    """The keyspace of a table."""
    return qualified(table).partition(".")[0]
