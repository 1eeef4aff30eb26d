"""In which order coordinators led: by the terms in which they asked their own nodes, which clocks do not show.

A coordinator asks its own node, too, which writes the term; the line follows the one that says what is executed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from stagewright.traces.databases.scylladb import versions
from stagewright.traces.databases.scylladb.lines import barriers, topology
from stagewright.traces.databases.scylladb.log.line import LogRecord


@dataclass
class Reign:
    """The lines of one coordinator in one file, from its first to the last; `term` is 0 if it is not known."""

    file: int
    first: int
    last: int
    terms: set[int] = field(default_factory=set[int])
    term: int = 0


def reigns_in(files: Sequence[Sequence[LogRecord]], written: frozenset[str]) -> list[Reign]:
    """The reigns whose terms are known, in that order; `written` are the lines that only a coordinator writes."""
    found = [r for n, records in enumerate(files) for r in _of(n, records, written)]
    for reign in found:
        reign.term = reign.terms.pop() if len(reign.terms) == 1 else 0
    claimed = Counter(r.term for r in found)
    known = [r for r in found if r.term and claimed[r.term] == 1]
    latest: dict[int, int] = {}
    odd: set[int] = set()  # files in which terms fall: they are not of one cluster
    for reign in known:
        if reign.term < latest.get(reign.file, 0):
            odd.add(reign.file)
        latest[reign.file] = reign.term
    return sorted((r for r in known if r.file not in odd), key=lambda r: r.term)


def _of(number: int, records: Sequence[LogRecord], written: frozenset[str]) -> list[Reign]:
    found: list[Reign] = []
    reign: Reign | None = None
    asks = leads = False
    for place, record in enumerate(records):
        if record.says == topology.LEADER:
            reign, leads = Reign(number, place, place), True
            found.append(reign)
        elif record.says == versions.STARTS:
            reign = None
        if reign is None:
            continue
        if record.says in written:
            reign.last = place
        match record.says:
            case barriers.LOST:
                leads = False
            case barriers.EXECUTED | barriers.FENCE_EXECUTED:
                asks = leads
            case barriers.TERM if asks:
                asks = False
                reign.terms.add(int(record.words["term"]))
            case _:
                pass
    return found
