"""What a line of a ScyllaDB log begins with: who wrote it, when, and by which logger.

INFO  2024-09-27 22:15:13,717 [shard 0: gms] raft_topology - …      the server's own file
Sep 05 18:37:22.280578 host scylla[8]:  [shard  0: gms] …            journald: no level, no year
2025-03-01T10:00:00.123+00:00 host !INFO | scylla[8]: [shard 0] …    collected by a test framework
node1.log:INFO  2024-09-27 …                                         any of them after grep
scylla-node1-1  | INFO  2024-09-27 …                                 docker compose
[pod/scylla-0/scylla] INFO  2024-09-27 …                             kubectl logs --prefix
scylla-0 scylla INFO  2024-09-27 …                                   stern, or with the namespace before it
<30>1 2024-09-27T22:15:13.717Z host scylla 8 - - [shard 0: gms] …    syslog (RFC 5424)
{"log":"INFO  2024-09-27 …","stream":"stderr","time":…}              collectors, also CSV (`wrapped_line.py`)

The banner with which the server starts is printed before there is a logger: it has no prefix at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from stagewright.traces.readers.text_lines import ENDINGS
from stagewright.traces.readers.wrapped_line import unwrapped

_TAIL = re.compile(
    r"\[shard\s*(?P<shard>\d+)(?:\s*:\s*\S+)?\s*\]\s+(?P<logger>\w+)\s+-\s+"
    r"(?:\(rate limiting dropped \d+ similar messages\)\s+)?(?P<message>.*)$"
)
_BANNER = re.compile(
    r"(?:^|(?<=[\s|:>\"]))Scylla version \d+\.\d+\S* with build-id [0-9a-f]{4,} starting"
)
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d+))?")
_JOURNAL = re.compile(r"\b([A-Z][a-z]{2})\s+(\d{1,2}) (\d\d:\d\d:\d\d)(?:\.(\d+))?")
_HOST = re.compile(r"(\S+)\s+(?:!\w+\s*\|\s*)?scylla(?:\[(\d+)\]:?|:)")
_SYSLOG = re.compile(r"^<\d+>1 \S+ (?P<host>[^\s-]\S*) scylla\S* ")
_POD = re.compile(r"\[pod/(?P<pod>[^/\]\s]+)/[^\]]*\]")
_COMPOSE = re.compile(r"^(?:\S+\s+)?(?P<container>[\w.-]*\w)\s+\|\s")
_STERN = re.compile(
    r"^(?:[a-z][a-z0-9.-]*\s+)?(?P<pod>[a-z][a-z0-9.-]*)\s+(?:\u203a\s+)?[a-z][\w.-]*\s+"
    r"(?=(?:TRACE|DEBUG|INFO|WARN|ERROR)\s|\d{4}-|Scylla |$)"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_GREPPED = re.compile(r"(?P<file>[^\s:]+):(?:\d+:)?\s*(?:[A-Z]+\s+)?$")

# scylla.log.1, scylla.log.2.gz, scylla-20250301.log: one node's log, cut by logrotate
_ROTATED = re.compile(r"(?:\.\d{1,3}|[-.]\d{8}|[-.]\d{4}-\d\d-\d\d)(?=\.log$|$)")

NO_YEAR = "0000"
_OLD_TOPOLOGY = "raft topology: "


@dataclass(frozen=True)
class Prefixed:
    """A line taken apart. `time` sorts as a text; without a year it begins with `NO_YEAR`."""

    time: str
    node: str  # the host and process that wrote the line, or else the file it is in
    logger: str
    message: str
    shard: str = "0"
    named: bool = True  # the line, or its collector, says which node it is of


def has_prefix(text: str) -> bool:
    """Whether a line begins as a ScyllaDB log's lines do."""
    return _TAIL.search(unwrapped(text, "[shard", "")) is not None


def take_apart(text: str, file: str) -> Prefixed | None:
    """The parts of a line; None if it does not begin as a ScyllaDB log's lines do."""
    text = unwrapped(text, "Scylla version " if "[shard" not in text else "[shard", file)
    if "\x1b" in text:
        text = _COLOUR.sub("", text)
    tail = _TAIL.search(text)
    if tail is None:
        return _start_banner(text, file)
    head = text[: tail.start()]
    message, logger = tail["message"].strip(), tail["logger"]
    if message.startswith(_OLD_TOPOLOGY):  # as of 2023: `storage_service - raft topology: …`
        message, logger = message.removeprefix(_OLD_TOPOLOGY), "raft_topology"
    node = _node(head)
    return Prefixed(
        _time(head), node or node_of_file(file), logger, message, tail["shard"], bool(node)
    )


def _start_banner(text: str, file: str) -> Prefixed | None:
    """What the server prints first (`main.cc`, `print_starting_message`), as if its logger had written it."""
    banner = _BANNER.search(text)
    if banner is None:
        return None
    head = text[: banner.start()]
    node = _node(head)
    return Prefixed(_time(head), node or node_of_file(file), "init", banner[0], named=bool(node))


def _time(head: str) -> str:
    if times := _ISO.findall(head):
        date, clock, fraction = times[-1]  # the server's own: a collector's comes before it
    elif found := _JOURNAL.search(head):
        month, day, clock, fraction = found.groups()
        number = _MONTHS.index(month) + 1 if month in _MONTHS else 0
        date = f"{NO_YEAR}-{number:02}-{int(day):02}"
    else:
        return ""
    return f"{date} {clock}.{(fraction or '').ljust(6, '0')[:6]}"


def _node(head: str) -> str:
    """The node that the beginning of a line names; empty if it names none."""
    if found := _HOST.search(head):
        return f"{found[1]}[{found[2]}]" if found[2] else found[1]
    for collected in (_SYSLOG, _POD, _COMPOSE, _STERN):
        if found := collected.search(head):
            return found[1]
    begin = _ISO.search(head)
    grepped = _GREPPED.match(head[: begin.start()]) if begin else None
    return node_of_file(grepped["file"]) if grepped else ""


@lru_cache(1 << 10)
def node_of_file(file: str) -> str:
    """The name of a file without what logrotate and compression have added to it."""
    for ending in ENDINGS:
        file = file.removesuffix(ending)
    folder, slash, name = file.rpartition("/")
    return f"{folder}{slash}{_ROTATED.sub('', name)}"
