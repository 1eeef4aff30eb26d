"""The tables of a run: one of the token ring, and those of tablets that a script makes, by their keys."""

from __future__ import annotations

TABLE = "ks.rows"


def key_in(table: str, key: bytes) -> bytes:
    """A key as it is written in a table, so that no two tables have one key."""
    return key if table == TABLE else table.encode() + b"/" + key


def table_of(key: bytes) -> str:
    """The table of such a key."""
    table, slash, _ = key.partition(b"/")
    return table.decode() if slash else TABLE
