"""What a backfill is about: a table's tablets and indexes, how far a permission is, and who acts."""

from __future__ import annotations

from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import Actor, Entity, Fairness, Number, Term

WEAK = Fairness.WEAK
MASTER = Actor("master leader")
CLIENT = Actor("client")
MOVED_BY_ALTER = (
    Permission.delete_only,
    Permission.write_and_delete,
    Permission.write_and_delete_while_removing,
    Permission.delete_only_while_removing,
)
_PROGRESS = list(Permission)


class Tablet(Entity, scope=2):
    """A tablet of the indexed table."""


class Index(Entity, scope=2):
    """An index of the table; an id is used once."""


def next_permission(permission: Permission) -> Permission:
    """The permission after it, of an index that only needs every tablet to know."""
    if permission not in MOVED_BY_ALTER:
        return permission
    return permission.following


def progress_of(permission: Term[Permission]) -> Number:
    """How far an index is; it never goes back. (The code's numbers grow in the same order.)"""
    return permission.number_column(_PROGRESS.index)
