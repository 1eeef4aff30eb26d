"""What clients may say: questions that a node can answer whatever is in them. Nodes may say anything."""

from __future__ import annotations

import re
from typing import Any

from stagewright.impl.node.messages import (
    ClientRead,
    ClientScan,
    ClientWrite,
    CreateTable,
    GenerationsRequest,
    NameRequest,
    OperatorRequest,
    StatusRequest,
    TabletsRequest,
)
from stagewright.impl.node.messages.tables import (
    AlterTable,
    CreateView,
    DropTable,
    DropView,
    MoveTablet,
    RepairTable,
    ResizeTable,
    SetBalancing,
    TruncateTable,
    ViewsRequest,
)
from stagewright.impl.processes.errors import WireError
from stagewright.impl.views.maintenance.definition import COMPARISONS, LARGEST_NUMBER
from stagewright.spec.text.counting import counted

LONGEST_KEY = 4 << 10  # bytes
LONGEST_VALUE = 64 << 10
LONGEST_NAME = 64  # of a node
BEFORE_KEY = 24  # bytes: the stream and the time in a log row
LARGEST_PAGE = 1_000  # rows of a scan
MOST_TABLETS = 1024
MOST_REPLICAS = 100
LAST_TIMESTAMP = (1 << 63) - 1  # microseconds since 1970

_TABLE = re.compile(r"[a-z_][a-z0-9_]{0,47}(\.[a-z_][a-z0-9_]{0,47})?")
_COUNT = re.compile(r"#\d{1,9}(?!\d)")


def admit(message: Any) -> None:
    """Take a client's message.

    Raises:
        WireError: it is not for clients to send, or says something that cannot be.
    """
    wrong = _wrong(message)
    if wrong:
        problem, _, right = wrong.rpartition(": ")
        raise WireError(
            problem or wrong, help=right if problem else "see `docs/language/clusters.md`, limits"
        )


def _wrong(message: Any) -> str:
    """What is wrong with a message, and, after a colon, what would be right."""
    match message:
        case ClientWrite(_, table, key, value, timestamp):
            size = 0 if value is None else len(value)
            if not 0 < timestamp <= LAST_TIMESTAMP:
                return f"timestamp {timestamp}: it is from 1 to {LAST_TIMESTAMP}"
            if size > LONGEST_VALUE:
                return f"a value of {size} bytes: at most {LONGEST_VALUE}"
            return _wrong_key(key) or _wrong_table(table)
        case ClientRead(_, table, key):
            return _wrong_key(key) or _wrong_table(table)
        case ClientScan(_, table, start, limit, _, end):
            if not 0 < limit <= LARGEST_PAGE:
                return f"a scan of {counted(limit, 'row')}: from 1 to {LARGEST_PAGE} at a time"
            keys = (_wrong_key(key[8 + BEFORE_KEY :]) for key in (start, end or b""))
            return next(filter(None, keys), "") or _wrong_table(table)
        case (
            CreateTable()
            | RepairTable()
            | ResizeTable()
            | AlterTable()
            | MoveTablet()
            | CreateView()
            | DropTable()
            | TruncateTable()
            | DropView()
        ):
            return _wrong_definition(message)
        case (
            OperatorRequest()
            | NameRequest()
            | StatusRequest()
            | GenerationsRequest()
            | TabletsRequest()
            | ViewsRequest()
            | SetBalancing()
        ):
            return ""
        case _:
            return f"a {type(message).__name__} is not for clients to send"


def _wrong_definition(message: Any) -> str:
    """What is wrong with a statement about tables and views."""
    match message:
        case CreateTable(_, table, replicas, tablets):
            if not 0 <= tablets <= MOST_TABLETS or tablets & (tablets - 1):
                return f"a table cannot have {counted(tablets, 'tablet')}: write a power of two up to {MOST_TABLETS}, or 0 for none"
            if not 0 < replicas <= MOST_REPLICAS:
                return f"a table cannot have {counted(replicas, 'replica')}: write 1 to {MOST_REPLICAS}"
            return _wrong_id(table)
        case RepairTable(_, table) | ResizeTable(_, table) | DropTable(_, table):
            return _wrong_id(table)
        case TruncateTable(_, table, timestamp):
            if not 0 < timestamp <= LAST_TIMESTAMP:
                return f"timestamp {timestamp}: it is from 1 to {LAST_TIMESTAMP}"
            return _wrong_id(table)
        case MoveTablet(_, table, _, source, target):
            return _wrong_id(table) or _wrong_node(source) or _wrong_node(target)
        case AlterTable(_, table, replicas):
            if not 0 < replicas <= MOST_REPLICAS:
                return f"a table cannot have {counted(replicas, 'replica')}: write 1 to {MOST_REPLICAS}"
            return _wrong_id(table)
        case CreateView(_, view, table):
            return _wrong_id(view) or _wrong_id(table) or _wrong_view(message)
        case DropView(_, view):
            return _wrong_id(view)
        case _:
            raise AssertionError(f"no statement: {message}")


def _wrong_view(wanted: CreateView) -> str:
    if not 0 <= wanted.modulus <= LARGEST_NUMBER or not 0 <= wanted.bound <= LARGEST_NUMBER:
        return f"a view by numbers beyond {LARGEST_NUMBER}"
    known = ("", *COMPARISONS)
    if wanted.comparison not in known:
        return f"a view where values are {wanted.comparison[:8]!r}: write one of {' '.join(COMPARISONS)}"
    return ""


def _wrong_key(key: bytes) -> str:
    return f"a key of {len(key)} bytes: at most {LONGEST_KEY}" if len(key) > LONGEST_KEY else ""


def _wrong_node(name: str) -> str:
    return "" if len(name) <= LONGEST_NAME else f"{name[:60]!r} names no node"


def _wrong_id(table: str) -> str:
    """What is wrong with the id of a table or view, which is its name, maybe with a number."""
    return _wrong_table(_COUNT.sub("", table, count=1))


def _wrong_table(table: str) -> str:
    if _TABLE.fullmatch(table):
        return ""
    return f"{table[:60]!r} names no table: small letters, digits and _, one dot between"
