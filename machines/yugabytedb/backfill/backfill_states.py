"""The tables of the backfill job: its steps, what the catalog records of it, and the eras of YugabyteDB.

Sources: design document 002 (online-index-backfill), sections "The index backfill algorithm" and "Fault
tolerance using checkpointing"; YugabyteDB's `BackfillTable` and `BackfillJobPB` for the releases.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from stagewright.machines.yugabytedb.indexes.index_states import Permission
from stagewright.spec import Profile


class Step(Enum):
    """Where the master leader is with the job of a table (`BackfillTable`); only its memory knows."""

    none = auto()
    launch = auto()  # J0: record the job
    wait_for_splits = auto()  # J1: tablet splitting is off; wait for splits that have begun
    get_safe_time = auto()  # J2: ask every tablet, record the largest answer
    # J3: chunk by chunk, a checkpoint after each; J4: all tablets are done
    backfill_tablets = auto()
    allow_gc = auto()  # J5: the index tables may reclaim delete markers
    write_permissions = auto()  # J6
    clear_checkpoints = auto()  # J7a
    clear_job = auto()  # J7b
    finish = auto()  # J8: splitting is on again, alter requests are sent


class Checkpoint(Enum):
    """`backfilled_until` of a tablet and an index: no entry, a key in the tablet, or the empty key: done."""

    never_begun = auto()
    in_the_middle = auto()
    done = auto()


class TableState(Enum):
    """The state of the indexed table in the sys catalog."""

    running = auto()
    altering = auto()


class ReadTime(Enum):
    """The master's clock when it chooses a read time: it goes on, so a second choice is another time."""

    first = auto()
    later = auto()


@dataclass(frozen=True)
class Era(Profile):
    """What a version of YugabyteDB, or the design document, does about the job."""

    batching: bool  # one job for all indexes that wait; the document has it as future work
    removal_states: bool  # a failed index goes through two more permissions before it is deleted
    read_time_recorded: (
        bool  # `backfilling_timestamp` is written before the first chunk (yugabyte-db #3611)
    )
    splits_excluded: bool  # tablets do not split during a job; the document does not speak of it
    cleared_at_once: bool  # checkpoints and job go in one write (yugabyte-db #33133)

    @property
    def removal(self) -> Permission:
        """The first permission of an index that is to go."""
        if self.removal_states:
            return Permission.write_and_delete_while_removing
        return Permission.index_unused


SEED = Era("seed", False, False, False, False, True)
YUGABYTE_2 = Era("yugabyte-2.x", True, True, True, True, False)
YUGABYTE_2026 = Era("yugabyte-2026", True, True, True, True, True)
