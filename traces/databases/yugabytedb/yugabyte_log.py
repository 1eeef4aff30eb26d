"""Reads YugabyteDB's logs: the permissions of indexes, and the jobs that backfill them.

What the master leader says is evaluated: each index against `IndexPermissions` and, while a job builds it, against
`BackfillJob`, each tablet of a job against `BackfillTablet`. With `--v=1` (or `--vmodule=backfill_index=1`) every
permission that an alter round writes is logged; without, only those that a job ends with.

Lines are found and taken apart in parallel (`extract`); what they mean together is decided afterwards, in the
order of time (`interpret`): a line's thread says which write was the one that was sent, its node whether that is
still the leader. `yugabyte_times.py` finds the years, `yugabyte_jobs.py` follows the jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stagewright.machines.yugabytedb.backfill.backfill_job import BackfillJob
from stagewright.machines.yugabytedb.backfill.backfill_states import ReadTime
from stagewright.machines.yugabytedb.backfill.backfill_table import Index, Tablet
from stagewright.machines.yugabytedb.indexes.index_states import Status
from stagewright.spec.errors import InputError
from stagewright.spec.values import FrozenMap
from stagewright.traces.databases.names import leaf, sizes, states
from stagewright.traces.databases.yugabytedb.yugabyte_jobs import (
    IN_JOB,
    IS_BACKFILLING,
    JOB,
    PERMISSION,
    PERMISSIONS,
    SCAN_TIME,
    TABLET,
    JobsReading,
)
from stagewright.traces.databases.yugabytedb.yugabyte_line import (
    PREFIX,
    RELEVANT,
    LogRecord,
    parse_log_line,
)
from stagewright.traces.databases.yugabytedb.yugabyte_times import in_time
from stagewright.traces.events.observability import (
    ALL_HIDDEN,
    NOTHING_HIDDEN,
    Recording,
    hidden_but,
)
from stagewright.traces.readers.prefilter import begins_with, records_in
from stagewright.traces.readers.protocol import Interpreted, Part, Tally
from stagewright.traces.readers.text_lines import line_parts

# Of a job these are logged: that a leader begins or goes on, the read time, that all tablets are done.
_LOGGED_OF_A_JOB: dict[str, frozenset[object]] = {
    IS_BACKFILLING: frozenset({True}),
    leaf(BackfillJob.read_time): states(ReadTime),
    IN_JOB: states([Status.success]),
}
_ONE_INDEX = FrozenMap(sizes({Index: 1, Tablet: 1}))  # all tablets of the table count as one
_NUMBERED = frozenset(sizes({Index: 1, Tablet: 1}))
JOB_RECORDING = Recording(
    hidden_but(_LOGGED_OF_A_JOB), False, False, _ONE_INDEX, numbered=_NUMBERED
)
SCAN_TIME_RECORDING = Recording(NOTHING_HIDDEN, from_start=True, end_marked=False)
TABLET_RECORDING = Recording(NOTHING_HIDDEN, from_start=False, end_marked=False)


def check(path: Path) -> None:
    """Raise an `InputError` if no line in the first megabyte is one of a YugabyteDB log."""
    if not begins_with(path, "yugabyte-log", PREFIX):
        raise InputError(
            f"{path} does not look like a YugabyteDB log",
            help="its lines have `I0910 18:03:46.441303 17639 file.cc:123] …`; is the --format right?",
        )


def parts(path: Path) -> list[tuple[int, int]]:
    """Pieces of whole lines."""
    return line_parts(path)


def extract(part: Part, tally: Tally) -> list[LogRecord]:
    """The lines of a part that say something of indexes; the others count as `other`."""
    return records_in(part, tally, RELEVANT, parse_log_line)


def interpret(files: Sequence[Sequence[tuple[int, LogRecord]]], profile: str = "") -> Interpreted:
    """What the records of all files, each a list of (part, record) in order, mean together."""
    placed = in_time(files)
    reading = JobsReading(profile, [p.record for p in placed])
    for one in placed:
        reading.take(one)
    reading.finish()
    written = frozenset(reading.written)
    hidden = hidden_but({PERMISSION: written}) if written else ALL_HIDDEN
    recordings = {
        PERMISSIONS: Recording(hidden, from_start=False, end_marked=False, numbered=_NUMBERED),
        JOB: JOB_RECORDING,
        TABLET: TABLET_RECORDING,
        SCAN_TIME: SCAN_TIME_RECORDING,
    }
    return Interpreted(reading.events, recordings, reading.notes())
