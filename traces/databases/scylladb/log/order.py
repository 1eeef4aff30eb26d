"""In which order the lines of several ScyllaDB logs are taken, and which of them are believed.

All files are merged by time; the lines of one file keep their order, whatever its clock says, and coordinators
follow each other as their terms do, where these are known. Only one
node at a time is the topology coordinator: its tenure begins with its own line, and ends where another's
begins; what the old one writes later is not believed. A commit is lost if a later line of the same tenure
says so, and in doubt if the tenure ends before anything shows that it succeeded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from stagewright.spec.text.counting import counted
from stagewright.traces.databases.scylladb.lines import tablets, topology, views
from stagewright.traces.databases.scylladb.log.copies import as_written
from stagewright.traces.databases.scylladb.log.line import LogRecord
from stagewright.traces.databases.scylladb.log.prefix import NO_YEAR
from stagewright.traces.databases.scylladb.log.terms import reigns_in

COORDINATORS = frozenset(
    {
        topology.LEADER,
        topology.COMMIT,
        topology.RACE,
        topology.UNKNOWN,
        topology.FAILED,
        topology.DEPOSED,
        topology.ENTERED,
        topology.FOUND,
        topology.LEFT,
        tablets.WILL_SET,
        tablets.IS_IN,
        tablets.CLEANS_UP,
        tablets.CLEANUP_FAILED,
        tablets.CLEANUP_ENDED,
        tablets.BARRIER_FAILED,
    }
)
"""Lines that only the topology coordinator writes."""

# Lines of the main fiber: what it attempted to commit before has succeeded.
GOES_ON = frozenset({topology.ENTERED, topology.FOUND, topology.LEFT, tablets.WILL_SET})
_API = "api"
_ONE_RUN = 100_000  # microseconds: lines that are written in one go
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass
class Placed:
    """A record in its place. `tenure`: of which coordinator, -1 if it is not believed, None if of any node."""

    part: int
    record: LogRecord
    time: int | None
    tenure: int | None = None
    lost: bool = False  # by a race
    unknown: bool = False  # the coordinator itself does not know what became of its commit
    left_open: bool = False  # the tenure ended before anything showed that it succeeded
    apart: bool = False  # where its tenure belongs among those of other nodes only clocks say


def in_order(files: Iterable[Sequence[tuple[int, LogRecord]]]) -> tuple[list[Placed], list[str]]:
    """All records, merged, with what is known of each; and what was noticed of their clocks."""
    times: list[list[str]] = []
    turns = back = 0
    written, notes = as_written(files)
    for records in written:
        latest, year = "", 0
        times.append([])
        for _, record in records:
            time = record.time
            if time.startswith(NO_YEAR):
                if latest[5:7] == "12" and time[5:7] == "01":
                    year, turns = year + 1, turns + 1
                time = f"{year:04}{time[4:]}"
            back += bool(time) and time < latest
            latest = max(latest, time)
            times[-1].append(latest)
    placed = _merged(written, times)
    if back:
        notes.append(
            f"{counted(back, 'line')} with an earlier time than the line before: the order in the file counts"
        )
    if turns:
        notes.append("there is no year in the times: January after December is taken for the next")
    _find_lost_commits(placed)
    _find_lost_runs(placed, views.GC_WILL, views.GC_RACE)
    _find_lost_runs(placed, views.CREATE_STAGING, views.STAGING_RACE)
    return placed, notes


def _merged(
    files: Sequence[Sequence[tuple[int, LogRecord]]], times: Sequence[Sequence[str]]
) -> list[Placed]:
    """All records by their times, with their tenures; a reign is moved behind those of earlier terms."""
    moved = [[*of_file] for of_file in times]
    terms = [[0] * len(of_file) for of_file in times]
    reigns = reigns_in([[record for _, record in records] for records in files], COORDINATORS)
    ended = ""
    for reign in reigns:
        here = moved[reign.file]
        for place in range(reign.first, len(here)):
            here[place] = max(here[place], ended)
            terms[reign.file][place] = reign.term
        ended = max(ended, here[reign.last])
    places = [
        (moved[n][i], terms[n][i], n, i)
        for n, records in enumerate(files)
        for i in range(len(records))
    ]
    found: dict[tuple[int, int], Placed] = {}
    for _, _, number, i in sorted(places):
        part, record = files[number][i]
        found[number, i] = Placed(part, record, _microseconds(times[number][i]))
    placed = [*found.values()]
    _set_tenures(placed)
    known = {found[r.file, i].tenure for r in reigns for i in range(r.first, r.last + 1)}
    leaders = {one.record.node for one in placed if one.tenure not in (None, -1)}
    for one in placed:
        one.apart = len(leaders) > 1 and one.tenure not in known
    return placed


def _microseconds(time: str) -> int | None:
    """Since 1970; None without a year, or without a time."""
    try:
        return (datetime.fromisoformat(f"{time}+00:00") - _BEGIN) // timedelta(microseconds=1)
    except ValueError:
        return None


def _set_tenures(placed: list[Placed]) -> None:
    tenure, leader, replaced = 0, "", set[str]()
    for one in placed:
        record = one.record
        if record.says not in COORDINATORS:
            continue
        if record.says != topology.LEADER and record.node in replaced:
            one.tenure = -1
            continue
        if record.says == topology.LEADER or record.node != leader:
            tenure += bool(leader)
            replaced.add(leader)
            leader = record.node
            replaced.discard(leader)
        one.tenure = tenure


def _find_lost_commits(placed: list[Placed]) -> None:
    open_: dict[tuple[str, str], Placed] = {}  # by node and fiber
    tenure = 0
    for one in placed:
        record = one.record
        if one.tenure is not None and one.tenure > tenure:
            for (_, fiber), commit in open_.items():
                commit.left_open = fiber != _API
            tenure, open_ = one.tenure, {}
        if record.says == views.API_COMMIT:
            open_[record.node, _API] = one
        elif record.says == views.API_RACE:
            if by_hand := open_.pop((record.node, _API), None):
                by_hand.lost = True
        elif one.tenure in (None, -1):
            continue
        elif record.says == topology.COMMIT:
            open_[record.node, topology.fiber_of(record.words["reason"])] = one
        elif record.says == topology.RACE:
            if lost := _taken_back(open_, record):
                lost.lost = True
        elif record.says in (topology.UNKNOWN, topology.DEPOSED):
            if doubtful := open_.pop((record.node, ""), None):
                doubtful.unknown = record.says == topology.UNKNOWN
                doubtful.left_open = record.says == topology.DEPOSED
        elif record.says in GOES_ON:
            open_.pop((record.node, ""), None)


def _taken_back(open_: dict[tuple[str, str], Placed], race: LogRecord) -> Placed | None:
    """The commit of the same reason; if there is none, the one of the main fiber."""
    reason = race.words.get("reason", "").rstrip(" .,")
    for (node, fiber), commit in open_.items():
        if node == race.node and commit.record.words.get("reason", "").rstrip(" .,") == reason:
            return open_.pop((node, fiber))
    return open_.pop((race.node, ""), None)


def _find_lost_runs(placed: list[Placed], will: str, race: str) -> None:
    """Lines written in one go, before a commit without a line of its own: a race takes back the last of them."""
    runs: dict[str, list[Placed]] = {}
    for one in placed:
        record = one.record
        if record.says == will:
            run = runs.setdefault(record.node, [])
            if run and (one.time or 0) - (run[-1].time or 0) > _ONE_RUN:
                run.clear()
            run.append(one)
        elif record.says == race:
            for lost in runs.pop(record.node, []):
                lost.lost = True
