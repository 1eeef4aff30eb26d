"""One line of a YugabyteDB log: where its prefix ends, and what it says of indexes and their backfill."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum, auto

from stagewright.traces.readers.prefilter import any_of

# I0910 18:03:46.441303 17639 backfill_index.cc:1318] …   glog: level and date, no year
# master1.log:W0102 00:00:00.000001 …                      after grep; `vlog1: ` before a message of --v=1
_PREFIX = re.compile(
    r"(?:^|[\s:|])(?P<level>[IWEF])(?P<month>\d\d)(?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d\.\d{6})\s+"
    r"(?P<thread>\d+) (?P<source>[\w./-]+\.(?:cc|h|c|cpp):\d+)\] (?:vlog\d+: )?(?P<message>.*)$"
)
PREFIX = r"(?:^|[\s:|])[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6}\s+\d+ [\w./-]+:\d+\] "
_CREATED = re.compile(r"Log file created at: (\d{4})/(\d\d)/(\d\d) \d\d:\d\d:\d\d\s*$")
_MACHINE = re.compile(r"Running on machine: (\S+)\s*$")

_ID = r"[0-9a-f]{32}"
_TABLE = rf"\S.* \[id=(?P<table>{_ID})\]"
_NAMES = r"\{ (?P<names>.*?) ?\}"
_TASK = rf"Backfill Index Table\(s\) {_NAMES} +"
_TABLET = rf"(?:0x[0-9a-f]+ -> )?(?P<tablet>{_ID})\b"
_CHUNK = rf"Backfilling (?:indexes|index tables?) {_NAMES} for tablet (?P<tablet>{_ID}) from key '(?P<key>[0-9a-f]*)'"
_PHYSICAL = r"\{ physical: (?P<physical>\d+).*?\}"

PERMISSIONS = {
    0: "delete_only",
    2: "write_and_delete",
    4: "do_backfill",
    6: "read_write_and_delete",
    8: "write_and_delete_while_removing",
    10: "delete_only_while_removing",
    12: "index_unused",
}
_NUMBERS = {name: number for number, name in PERMISSIONS.items()}


class Said(Enum):
    """What a line says that matters here."""

    CREATED = auto()  # the year in which the file begins
    HOST = auto()  # the node whose file it is
    WILL_SET = auto()  # an alter round is to write these permissions
    SENT = auto()  # they are written, by the thread that said so
    RACED = auto()  # they are not
    ALTERED = auto()  # every tablet has the version of the table
    PAST = auto()  # the index is past a permission, and keeps the one that it has
    SKIPPED = auto()  # postgres is not as far: it keeps the one that it has
    REMOVED = auto()  # the index is dropped
    LAUNCHED = auto()  # a leader begins with a job, or goes on with it
    SAFE_TIME = auto()  # a job has its read time
    SCANNED = auto()  # a tablet server reads a chunk, at a time
    CHUNK = auto()  # a chunk of a tablet is asked for
    TABLET_DONE = auto()
    TABLET_FAILED = auto()
    ALL_DONE = auto()  # every tablet of a job is done
    FAILED = auto()  # indexes of a job have failed
    NO_TIME = auto()  # a job has failed as there is no read time
    PERMITTED = auto()  # a job has ended: these are the permissions of its indexes
    RETRIED = auto()
    LATE = auto()  # a chunk that comes when the indexes are past the backfill


@dataclass(frozen=True)
class Prefix:
    """What glog says before a message; `time` has no year."""

    level: str
    month: int
    time: str
    thread: str


NO_PREFIX = Prefix("", 0, "", "")


@dataclass(frozen=True)
class LogRecord:
    """One line that matters. `names` of indexes as the line has them: names are not unique, ids are."""

    said: Said
    file: str
    line: int
    prefix: Prefix = NO_PREFIX
    table: str = ""
    tablet: str = ""
    key: str = ""
    names: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    permissions: tuple[tuple[str, str], ...] = ()  # (index, permission)
    text: str = ""  # the year, the host
    physical: str = ""  # the time of a scan, microseconds


_FORMS: tuple[tuple[Said, re.Pattern[str]], ...] = (
    (
        Said.WILL_SET,
        re.compile(
            rf"Updating index permissions for (?P<permissions>\[\{{.*\}}\])(?: on {_TABLE})?$"
        ),
    ),
    (Said.SENT, re.compile(r"Sending alter table request with updated permissions$")),
    (Said.RACED, re.compile(r"The table schema version seems to have already been updated to \d+")),
    (Said.RACED, re.compile(r"Could not update index permissions\.")),
    (Said.RACED, re.compile(r"Index permissions update skipped, leaving schema_version at \d+")),
    (
        Said.ALTERED,
        re.compile(rf"{_TABLE} - Alter table completed version=\d+, state: (?P<state>\w+)$"),
    ),
    (
        Said.PAST,
        re.compile(
            rf"Index (?P<index>{_ID}) on table {_TABLE} has index_permission (?P<now>\w+) already past \w+"
            r"\. Will not update it$"
        ),
    ),
    (
        Said.SKIPPED,
        re.compile(rf"Index (?P<skipped>{_ID}) is not yet \w+, skipping permission update$"),
    ),
    (
        Said.REMOVED,
        re.compile(
            rf"MarkIndexInfoFromTableForDeletion table (?:\S.* \[id=)?(?P<table>{_ID})\]? index "
            rf"(?:\S.* \[id=)?(?P<index>{_ID})\]?,? multi_stage=(?P<stages>1|true)"
        ),
    ),
    (
        Said.LAUNCHED,
        re.compile(
            rf"StartBackfillingData starting backfill on {_TABLE} for (?P<infos>\[.*table_id: .*)$"
        ),
    ),
    (
        Said.SAFE_TIME,
        re.compile(
            rf"{_TASK}Completed fetching SafeTime for the table (?:0x[0-9a-f]+ -> )?{_TABLE} will be "
            rf"using (?:{_PHYSICAL}|\S)"
        ),
    ),
    (
        Said.SCANNED,
        re.compile(
            rf"(?:T (?P<tablet>{_ID}) P \w+: )?Begin BackfillIndexes(?:ForYsql)? at {_PHYSICAL} "
            r"from \S.* for (?P<scanned>\[.*\])$"
        ),
    ),
    (Said.RETRIED, re.compile(rf"{_CHUNK} \(task=.*\): Scheduling retry with a delay of \d+ms")),
    (Said.RETRIED, re.compile(rf"{_CHUNK} \(task=.*\): .*Not enough time left")),
    (Said.CHUNK, re.compile(rf"Started BackfillChunk : {_CHUNK}")),
    (Said.TABLET_DONE, re.compile(rf"Done backfilling the tablet {_TABLET}(?! .*until )")),
    (Said.TABLET_FAILED, re.compile(rf"Failed to backfill the tablet {_TABLET}")),
    (Said.ALL_DONE, re.compile(rf"{_TASK}Completed backfilling the index table\.$")),
    (
        Said.FAILED,
        re.compile(rf"{_TASK}failed to backfill the index: (?P<failed>\[.*?\]) due to \S"),
    ),
    (
        Said.NO_TIME,
        re.compile(
            rf"{_TASK}Failed backfill\. Could not compute safe time for (?:0x[0-9a-f]+ -> )?{_TABLE}"
        ),
    ),
    (
        Said.PERMITTED,
        re.compile(
            rf"Done backfill on {_TABLE} setting permissions to (?P<permissions>\[\{{.*\}}\])$"
        ),
    ),
    (
        Said.LATE,
        re.compile(r"Received BackfillIndex RPC .*after all indexes have moved past DO_BACKFILL"),
    ),
)

# Words by which a relevant line is known before it is taken apart, and how it goes on; whether it does is checked.
_SHAPES = {
    "Updating index permissions for ": "`… [{ID, N}] on NAME [id=ID]`, N an even number up to 12",
    "Sending alter table request with updated permissions": "`…` and no more",
    "The table schema version seems to have already been updated to ": "`… N`",
    "Could not update index permissions": "`… .`",
    "Index permissions update skipped": "`…, leaving schema_version at N`",
    "Alter table completed version=": "`NAME [id=ID] - …N, state: STATE`",
    "Will not update it": "`Index ID on table NAME [id=ID] has index_permission P already past Q. …`",
    "skipping permission update": "`Index ID is not yet STATE, …`",
    "MarkIndexInfoFromTableForDeletion table": "`… T index ID multi_stage=1`",
    "StartBackfillingData starting backfill on ": '`… NAME [id=ID] for [table_id: "ID" …]`',
    "Completed fetching SafeTime for the table ": (
        "`Backfill Index Table(s) { NAMES } … NAME [id=ID] will be using { … }`"
    ),
    "Begin BackfillIndexes": "`T ID P ID: …ForYsql at { physical: N } from KEY for [IDS]`",
    "Scheduling retry with a delay of ": "`Backfilling indexes { NAMES } … : …Nms`",
    "Started BackfillChunk : ": "`… Backfilling indexes { NAMES } for tablet ID from key 'KEY'`",
    "Done backfilling the tablet ": "`… ID (table T)`",
    "Failed to backfill the tablet ": "`… ID (table T)…`",
    "Completed backfilling the index table": "`Backfill Index Table(s) { NAMES } … .`",
    "failed to backfill the index: ": "`Backfill Index Table(s) { NAMES } … [IDS] due to …`",
    "Could not compute safe time for ": "`Backfill Index Table(s) { NAMES } Failed backfill. … NAME [id=ID]`",
    "Done backfill on ": "`… NAME [id=ID] setting permissions to [{ID, N}]`",
    "Received BackfillIndex RPC ": "`… after all indexes have moved past DO_BACKFILL`",
    "Log file created at: ": "`… YYYY/MM/DD hh:mm:ss`",
    "Running on machine: ": "`… HOST`",
}
RELEVANT = any_of(tuple(_SHAPES))

# Lines that have such words and are about something else, or say what another line says, too.
_OTHER = re.compile(
    r"Scheduling retry with a delay of |Done backfilling the tablet .* until |multi_stage=(?:0|false)"
    r"|^Received BackfillIndex RPC "
)


def parse_log_line(text: str, line: int, file: str) -> LogRecord | str | None:
    """What a line says of indexes; None if nothing, a reason if it should but cannot be understood."""
    if found := _CREATED.search(text):
        head_only = Prefix("", int(found[2]), "", "")
        return LogRecord(Said.CREATED, file, line, head_only, text=found[1])
    if found := _MACHINE.search(text):
        return LogRecord(Said.HOST, file, line, text=found[1])
    head = _PREFIX.search(text)
    if head is None:
        return "a line about indexes without the prefix of a YugabyteDB log"
    time = f"{head['month']}-{head['day']} {head['clock']}"
    prefix = Prefix(head["level"], int(head["month"]), time, head["thread"])
    message = head["message"].strip()
    for said, form in _FORMS:
        if found := form.match(message):
            return _record(LogRecord(said, file, line, prefix), found.groupdict())
    if _OTHER.search(message):
        return None
    shapes = [shape for word, shape in _SHAPES.items() if word in message]
    return f"not in a known form: {message[:120]}; known: {' or '.join(shapes)}"


def _record(bare: LogRecord, parts: dict[str, str | None]) -> LogRecord | str:
    """A record with the parts of its message."""
    given = {name: value for name, value in parts.items() if value is not None}
    ids = re.findall(rf"\b{_ID}\b", _ids_of(given))
    pairs: list[tuple[str, str]] = []
    if "infos" in given:
        # of each index: table_id: "…" … indexed_table_id: "…" … index_permissions: INDEX_PERM_…
        infos = re.split(r"(?<!\w)(?=table_id: )", given["infos"])[1:]
        ids = [found[1] for info in infos if (found := re.match(rf'table_id: "({_ID})"', info))]
        if not ids or len(ids) < len(infos):
            return f"an index without an id: {given['infos'][:80]}"
        pairs = [
            (index, found[1])
            for index, info in zip(ids, infos, strict=True)
            if (found := re.search(r"\bindex_permissions: (\w+)", info))
        ]
    if "index" in given:
        pairs = [(given["index"], given.get("now", "8"))]
    for entry in re.findall(r"\{([^{}]*)\}", given.get("permissions", "")):
        index, _, permission = entry.partition(", ")
        pairs.append((index, permission))
    known = tuple((index, _permission(text)) for index, text in pairs)
    if any(not name or not re.fullmatch(_ID, index) for index, name in known):
        return f"an index or a permission that is not known: {pairs}"
    return replace(
        bare,
        table=given.get("table", ""),
        tablet=given.get("tablet", ""),
        key=given.get("key", ""),
        names=tuple(sorted(n for n in given.get("names", "").split(", ") if n)),
        ids=tuple(ids),
        permissions=known,
        text=given.get("state", ""),
        physical=given.get("physical", ""),
    )


def _ids_of(given: dict[str, str]) -> str:
    """The part of a message that lists indexes."""
    return given.get("failed") or given.get("skipped") or given.get("scanned") or ""


def _permission(text: str) -> str:
    """The name of a permission, given by its number or its name in the code; empty if there is none."""
    if text.isdigit():
        return PERMISSIONS.get(int(text), "")
    name = text.removeprefix("INDEX_PERM_").lower()
    return name if name in _NUMBERS else ""
