"""The tables of online index backfill: the permissions of an index, and the eras of YugabyteDB.

Sources: design document 002 (online-index-backfill), section "Intermediate states of the index table";
YugabyteDB's `IndexPermissions` and its `HasWrite`/`HasDelete`/`HasRead` for the states of the code.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from stagewright.spec import Profile, States


class Permission(States):
    """What a tablet server may do with an index; the master moves an index through them, never back.

    The document has four of them, and calls `do_backfill` DB_REORG; those that remove an index are the
    code's. The numbers are the code's: they grow with progress, and a smaller one never overwrites a larger.
    """

    # fmt: off
    #                                 number read   write  delete
    absent                           = -1,   False, False, False  # the index is not known yet
    delete_only                      = 0,    False, False, True
    write_and_delete                 = 2,    False, True,  True
    do_backfill                      = 4,    False, True,  True
    read_write_and_delete            = 6,    True,  True,  True
    write_and_delete_while_removing  = 8,    False, True,  True  # the backfill failed, or a drop began
    delete_only_while_removing       = 10,   False, False, True
    index_unused                     = 12,   False, False, False  # the index table is deleted next
    # fmt: on

    def __init__(self, number: int, read: bool, write: bool, delete: bool) -> None:
        self.number = number
        self.read = read  # the index serves reads
        self.write = write  # a new value of a row is written to the index
        self.delete = delete  # an old value of a row is deleted from the index

    @property
    def following(self) -> Permission:
        """The next one; an index that is unused is absent next."""
        order = list(Permission)
        return order[(order.index(self) + 1) % len(order)]

    @property
    def kept(self) -> bool:
        """The index is built or in use: its removal has not begun."""
        return 0 <= self.number <= 6

    @property
    def removed(self) -> bool:
        """The removal of the index has begun: nothing reads it, or ever will."""
        return self.number > 6


class Status(Enum):
    """The status of "the asynchronous job", as 002 calls the build of an index."""

    in_progress = auto()
    success = auto()
    failed = auto()


class Flags(States):
    """What postgres's `pg_index` says of an index; the backends of YSQL plan writes and reads by it."""

    # fmt: off
    #            that permission
    none       = Permission.absent,
    indislive  = Permission.delete_only,
    indisready = Permission.write_and_delete,
    indisvalid = Permission.read_write_and_delete,
    # fmt: on

    def __init__(self, permission: Permission) -> None:
        self.permission = permission


@dataclass(frozen=True)
class Era(Profile):
    """What a time of YugabyteDB, or the design document, does with the permissions of an index."""

    created_at: Permission  # what CREATE INDEX begins with
    do_backfill: bool  # the backfill has a permission of its own
    stepwise_removal: bool  # an index is removed in steps, the reverse of those that build it
    postgres: bool  # postgres decides when to go on, and its backends what they write (YSQL)
    backends_barrier: bool  # it waits until every backend has the flags; before, it slept a while
    reclaims_first: bool  # delete markers may go just before the index is published, not by that
    deferral: (
        bool  # a statement of its own may begin the backfill; the document has it as future work
    )


_FIRST, _LATER = Permission.delete_only, Permission.write_and_delete
SEED = Era("seed", _FIRST, True, False, False, False, False, False)
YSQL_EARLY = Era("ysql-early", _LATER, True, False, True, False, True, False)
YSQL_NO_DO_BACKFILL = Era("ysql-no-do-backfill", _LATER, False, False, True, False, True, False)
YSQL = Era("ysql", _LATER, True, False, True, True, True, False)
YCQL = Era("ycql", _FIRST, True, True, False, False, True, True)
