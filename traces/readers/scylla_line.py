"""One line of a ScyllaDB log: its prefix in every style that is met, and what it says of tablets."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

# INFO  2024-09-27 22:15:13,717 [shard 0: gms] raft_topology - …      the server's own file
# Sep 05 18:37:22.280578 host scylla[8]:  [shard  0: gms] …            journald: no level, no year
# 2025-03-01T10:00:00.123+00:00 host !INFO | scylla[8]: [shard 0] …    collected by a test framework
# node1.log:INFO  2024-09-27 …                                         any of them after grep
_TAIL = re.compile(
    r"\[shard\s*\d+(?:\s*:\s*\S+)?\s*\]\s+(?P<logger>\w+)\s+-\s+"
    r"(?:\(rate limiting dropped \d+ similar messages\)\s+)?(?P<message>.*)$"
)
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d+))?")
_JOURNAL = re.compile(r"\b([A-Z][a-z]{2})\s+(\d{1,2}) (\d\d:\d\d:\d\d)(?:\.(\d+))?")
_HOST = re.compile(r"(\S+)\s+(?:!\w+\s*\|\s*)?scylla\[(\d+)\]:")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

_GID = r"(?P<table>[0-9a-f-]{36}):(?P<tablet>\d+)"
_STAGE = r"(?P<stage>[a-z]\w*)"


class Said(Enum):
    """What a line says that matters here."""

    WILL_SET = auto()  # the coordinator intends to commit this stage
    IS_IN = auto()  # the tablet is in this stage
    COMMIT = auto()  # the commit of what was intended is attempted
    RACE = auto()  # the commit was lost
    LEADER = auto()  # this node is the coordinator from now on
    RESIZE = auto()  # the tablet ids of a table begin anew


@dataclass(frozen=True)
class LogRecord:
    """One line that matters. `time` sorts as a text; without a year it begins with 0000."""

    said: Said
    time: str
    node: str
    line: int
    table: str = ""
    tablet: str = ""
    stage: str = ""


# Words by which a relevant line is known before it is taken apart; whether it then fits is checked.
RELEVANT = (
    "Will set tablet ",
    "Initiating tablet streaming",
    "Initiating tablet cleanup",
    "Active tablet ",
    "updating topology state: ",
    "race while changing state",
    "start topology coordinator fiber",
    "Finalizing resize decision for table",
    "treaming for tablet ",
)

_FORMS: tuple[tuple[Said, re.Pattern[str], str], ...] = (
    (Said.WILL_SET, re.compile(rf"Will set tablet {_GID} stage to {_STAGE}$"), ""),
    (
        Said.IS_IN,
        re.compile(rf"Initiating tablet streaming (?:\([\w ]+\) )?of {_GID} to \S"),
        "streaming",
    ),
    (
        Said.IS_IN,
        re.compile(rf"Initiating tablet cleanup of {_GID} on .* to revert migration$"),
        "cleanup_target",
    ),
    (Said.IS_IN, re.compile(rf"Initiating tablet cleanup of {_GID} on \S"), "cleanup"),
    (Said.IS_IN, re.compile(rf"Active tablet [\w ]+: tablet={_GID}, stage={_STAGE}(?:,|$)"), ""),
    (Said.IS_IN, re.compile(rf"[Ss]treaming for tablet {_GID} failed: "), "streaming"),
    (Said.COMMIT, re.compile(r"updating topology state: "), ""),
    (Said.RACE, re.compile(r"race while changing state"), ""),
    (Said.LEADER, re.compile(r"start topology coordinator fiber"), ""),
    (Said.RESIZE, re.compile(r"Finalizing resize decision for table (?P<table>[0-9a-f-]{36})"), ""),
)
_LOGGERS = ("raft_topology", "storage_service", "load_balancer")


def has_prefix(text: str) -> bool:
    """Whether a line begins as a ScyllaDB log's lines do."""
    return _TAIL.search(text) is not None


def parse_log_line(text: str, line: int, file: str) -> LogRecord | str | None:
    """What a line says of tablets; None if nothing, a reason if it should but cannot be understood."""
    tail = _TAIL.search(text)
    if tail is None:
        return "a line about tablets without the prefix of a ScyllaDB log"
    if tail["logger"] not in _LOGGERS:
        return None
    message = tail["message"].strip().removeprefix("raft topology: ")
    if not any(word in message for word in RELEVANT):
        return None
    for said, form, stage in _FORMS:
        if found := form.match(message):
            parts = found.groupdict()
            head = text[: tail.start()]
            return LogRecord(
                said,
                _time(head),
                _node(head, file),
                line,
                parts.get("table") or "",
                parts.get("tablet") or "",
                stage or parts.get("stage") or "",
            )
    if "treaming for tablet" in message:  # "… resolved." and the like say nothing of the stage
        return None
    return f"not in a known form: {message[:120]}"


def _time(head: str) -> str:
    if found := _ISO.search(head):
        date, clock, fraction = found.groups()
    elif found := _JOURNAL.search(head):
        month, day, clock, fraction = found.groups()
        number = _MONTHS.index(month) + 1 if month in _MONTHS else 0
        date = f"0000-{number:02}-{int(day):02}"
    else:
        return ""
    return f"{date} {clock}.{(fraction or '').ljust(6, '0')[:6]}"


def _node(head: str, file: str) -> str:
    """The host and process that wrote the line, or else the file it is in."""
    found = _HOST.search(head)
    return f"{found[1]}[{found[2]}]" if found else file
