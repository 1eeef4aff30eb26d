"""One record of a Couchbase log, which may have many lines: what it says of the partitions of an index."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum, auto
from functools import lru_cache

from stagewright.traces.readers.prefilter import any_of

# [couchdb:info,2012-08-20T15:21:13.150,n_1@host:<0.6234.0>:couch_log:info:39]Set view `default`, …
# [couchdb:info,2017-07-18T12:00:00.123Z,ns_1@127.0.0.1:<0.512.0>:couch_log:info:41]Set view …   +02:00, -07:00
PREFIX = r"^\[\w+:[a-z]+,\d{4}-\d\d?-\d\d?T"
_PREFIX = re.compile(
    r"^\[(?P<logger>\w+):(?P<level>[a-z]+),(?P<time>\d{4}-\d\d?-\d\d?T[\d:.]+)(?P<zone>Z|[+-]\d\d:\d\d)?,"
    r"(?P<node>[^,\[\]]+?):(?P<process>[^:\[\]]*<[\d.]+>):[^:\]]+:[^\]]+:\d+\] ?(?P<message>.*)$"
)

_GROUP = (
    r"`(?P<set>[^`]*)`, (?P<type>main|replica)(?: \((?P<category>\w+)\))? group `(?P<group>[^`]*)`"
)
_LIST = re.compile(r"^\[(?:[\d{},\s-]*)\]$")
_IDS = re.compile(r"\{(\d+),[^{}]*\}|(\d+)-(\d+)|(\d+)")
_WITH_SEQ = re.compile(r"\{(\d+),(\d+)\}")
_DETAIL = re.compile(r"^(?P<indent>\s*)(?P<name>[A-Za-z#][^:\[\]]*?):?\s+(?P<value>\[.*\])\s*$")
_SECTION = re.compile(r"^(?P<name>pending transition (?:before|after)):\s*$")


class Said(Enum):
    """What a record says that matters here."""

    UPDATED = auto()  # the state of all partitions, before and after
    APPLYING = auto()  # what was pending is applied; the next of its group's records is of that
    MARKED = auto()  # partitions are unindexable
    UNMARKED = auto()  # partitions are indexable again
    CLEANED = auto()  # the cleaner is done
    CLEANER_STOPPED = auto()  # … or not, but with some partitions
    TRANSFERRED = auto()  # the main index has caught up with replicas, which become active
    REPLICAS_ADDED = auto()
    REPLICAS_REMOVED = auto()
    CONFIGURED = auto()  # an index begins
    STARTED = auto()  # its process begins with what is in the file
    ROLLED_BACK = auto()  # to what was indexed earlier; what follows does not go on from here
    LEFT = auto()  # what follows does not go on from here: reset, end of the process


@dataclass(frozen=True)
class GroupName:
    """Which index of a node: its bucket, whether it is the main or the replica index, the design document."""

    node: str
    bucket: str
    kind: str
    category: str
    document: str

    def __str__(self) -> str:
        kind = f"{self.kind} ({self.category})" if self.category else self.kind
        return f"{self.node}/{self.bucket}/{kind}/{self.document}"


@dataclass(frozen=True)
class Record:
    """One record that matters. `lists`: the partitions that it names, by what it says of them.

    `seqs`: up to where they are indexed, of the lists that say so.
    """

    said: Said
    line: int
    time: str
    group: GroupName
    process: str
    lists: Mapping[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])
    seqs: Mapping[str, Mapping[int, int]] = field(default_factory=dict[str, Mapping[int, int]])


_BEFORE_AFTER = tuple(
    f"{state} partitions {when}"
    for state in ("active", "passive", "cleanup")
    for when in ("before", "after")
)
_PENDING = tuple(
    f"pending transition {when}/{state}"
    for when in ("before", "after")
    for state in ("active", "passive")
)
# What a record begins with, and the lists that it has to have.
_FORMS: tuple[tuple[Said, re.Pattern[str], tuple[str, ...]], ...] = (
    (
        Said.UPDATED,
        re.compile(rf"Set view {_GROUP}, partition states updated$"),
        (*_BEFORE_AFTER, "unindexable partitions", *_PENDING),
    ),
    (
        Said.APPLYING,
        re.compile(rf"Set view {_GROUP}, applying state transitions from pending transition:$"),
        ("Active partitions", "Passive partitions"),
    ),
    (
        Said.MARKED,
        re.compile(rf"Set view {_GROUP}, unindexable partitions added\.$"),
        ("Previous set", "New set"),
    ),
    (
        Said.UNMARKED,
        re.compile(rf"Set view {_GROUP}, unindexable partitions removed\.$"),
        ("Previous set", "New set"),
    ),
    (Said.CLEANED, re.compile(rf"Cleanup finished for set view {_GROUP}$"), _BEFORE_AFTER),
    (
        Said.CLEANER_STOPPED,
        re.compile(rf"Stopped cleanup process for set view {_GROUP}\.$"),
        ("New set of partitions to cleanup", "Old set of partitions to cleanup"),
    ),
    (
        Said.TRANSFERRED,
        re.compile(
            rf"Set view {_GROUP}, completed transferral of replica partitions (?P<ids>\[.*\])$"
        ),
        (),
    ),
    (
        Said.REPLICAS_ADDED,
        re.compile(rf"Set view {_GROUP}, defined new replica partitions: (?P<ids>\[.*\])$"),
        (),
    ),
    (
        Said.REPLICAS_REMOVED,
        re.compile(
            rf"Set view {_GROUP}, marked the following replica partitions for removal: (?P<ids>\[.*\])$"
        ),
        (),
    ),
    (
        Said.CONFIGURED,
        re.compile(rf"Set view {_GROUP}, signature `\w+', configured with:$"),
        ("initial active partitions", "initial passive partitions"),
    ),
    (
        Said.STARTED,
        re.compile(
            r"Started (?P<type>main|replica) (?:\((?P<category>\w+)\) )?set view group `(?P<set>[^`]*)`, "
            r"group `(?P<group>[^`]*)`, +signature `\w+', view count \d+$"
        ),
        ("active partitions", "passive partitions", "cleanup partitions", "unindexable partitions"),
    ),
    (Said.ROLLED_BACK, re.compile(rf"Rollback of set view {_GROUP} to (?P<ids>\[.*\])$"), ()),
    (Said.LEFT, re.compile(rf"Set view {_GROUP}, group reset because "), ()),
    (Said.LEFT, re.compile(rf"Set view {_GROUP}, signature `\w+[`'], terminating with reason"), ()),
)

# What the list is called that stands in a record's first line.
_NAMED = {
    Said.TRANSFERRED: "transferred",
    Said.REPLICAS_ADDED: "replicas",
    Said.REPLICAS_REMOVED: "replicas",
    Said.ROLLED_BACK: "rolled back to",
}

# Words by which a record's first line is known before it is taken apart; whether it then fits is checked.
RELEVANT = any_of(
    (
        ", partition states updated",
        ", applying state transitions from pending transition",
        ", unindexable partitions added",
        ", unindexable partitions removed",
        "Cleanup finished for set view ",
        "Stopped cleanup process for set view ",
        ", completed transferral of replica partitions ",
        ", defined new replica partitions: ",
        ", marked the following replica partitions for removal: ",
        "', configured with:",
        "Started main ",
        "Started replica ",
        "Rollback of set view ",
        ", group reset because ",
        ", terminating with reason",
    )
)


def parse_record(texts: Sequence[str], line: int) -> Record | str | None:
    """What a record of some lines says; None if nothing, a reason if it should but cannot be understood."""
    head = _PREFIX.match(texts[0])
    if head is None:
        return "a line about partitions without the prefix of a Couchbase log"
    details = texts[1:]
    if details and details[0].startswith("partition versions before:"):
        return None  # the same once more, for who debugs failover logs
    for said, form, wanted in _FORMS:
        found = form.match(head["message"].rstrip())
        if found is None:
            continue
        parts = found.groupdict()
        lists = _lists(details)
        if isinstance(lists, str):
            return lists
        if ids := parts.get("ids"):
            named = _ids(ids)
            if named is None:
                return f"not a list of partitions: {ids[:80]}"
            lists[_NAMED[said]] = named
            details = [*details, f"{_NAMED[said]}: {ids}"]
        if missing := [name for name in wanted if name not in lists]:
            return f"the record does not say `{missing[0]}`: it is cut off, or of another version"
        group = GroupName(
            head["node"],
            parts["set"] or "",
            parts["type"] or "",
            parts.get("category") or "",
            parts["group"] or "",
        )
        time = _time(head["time"], head["zone"])
        return Record(said, line, time, group, head["process"], lists, _seqs(details))
    return None if "Set view" not in head["message"] else f"not in a known form: {texts[0][:160]}"


def _seqs(details: Sequence[str]) -> dict[str, dict[int, int]]:
    """The sequence numbers of the lists that have them."""
    return {
        found["name"].strip(): {int(p): int(seq) for p, seq in _WITH_SEQ.findall(found["value"])}
        for text in details
        if "{" in text and (found := _DETAIL.match(text))
    }


def _lists(details: Sequence[str]) -> dict[str, frozenset[int]] | str:
    """The lists of a record's lines; those of a pending transition by the line above them."""
    lists: dict[str, frozenset[int]] = {}
    section = ""
    for text in details:
        if found := _SECTION.match(text):
            section = found["name"]
        elif found := _DETAIL.match(text):
            if not found["indent"]:
                section = ""
            ids = _ids(found["value"])
            if ids is None:
                return f"not a list of partitions: {text.strip()[:80]}"
            name = found["name"].strip()
            lists[f"{section}/{name}" if section else name] = ids
    return lists


@lru_cache(maxsize=1 << 12)  # one record has much of the next one's: what is equal is kept once
def _ids(text: str) -> frozenset[int] | None:
    """[0,1,2], [0-2,7] or [{0,100},{1,7}]: the partitions; `_seqs` has their sequence numbers."""
    if not _LIST.match(text):
        return None
    ids: set[int] = set()
    for with_seq, first, last, alone in _IDS.findall(text):
        if first:
            ids.update(range(int(first), int(last) + 1))
        else:
            ids.add(int(with_seq or alone))
    return frozenset(ids)


def _time(text: str, zone: str | None) -> str:
    """A text that sorts by time: in UTC, where the log says which zone it is of."""
    try:
        when = datetime.fromisoformat(text + (zone or ""))
    except ValueError:
        return text
    return (when.astimezone(UTC) if zone else when).strftime("%Y-%m-%d %H:%M:%S.%f")
