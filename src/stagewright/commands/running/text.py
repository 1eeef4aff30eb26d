"""What went wrong in a run, and when: a table of states and stages, and what happened before a property was violated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.table import Table

from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.weather import ENTERED, KINDS, at_stage
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.topology.topology_states import TransitionState

SHORT = {
    "message lost": "lost",
    "message late": "late",
    "message repeated": "repeated",
    "barrier lost": "barrier lost",
    "stream lost": "stream lost",
    "node crashes": "crash",
    "coordinator crashes": "crash of the coordinator",
    "unsynced rows lost": "unsynced rows lost",
    "coordinator deposed": "deposed",
    "group0 elects": "election",
    "commit unknown": "commit unknown",
    "action fails": "action failed",
    "node dies": "dead",
    "node cut off": "cut off",
    "node suspended": "suspended",
}
"""Each kind of fault in a list, with its number after it."""
_STATES = (*(s.name for s in TransitionState), *(at_stage(s) for s in Stage))


def list_of(counts: Mapping[str, int]) -> str:
    """The faults that there were, by kind; a column for each of the kinds would be too narrow for its head."""
    return ", ".join(f"{SHORT[kind]} {count}" for kind, count in counts.items() if count) or "none"


def table_of_faults(report: Report) -> Table | None:
    """How often each state of the topology and each stage of a tablet was entered, and what went wrong in it."""
    kinds = [k for k in KINDS if any(what == k for _, what in report.met)]
    if not kinds:
        return None
    table = Table(box=None, padding=(0, 0, 0, 1), header_style="bold")
    table.add_column("state or stage", no_wrap=True)
    table.add_column("entered", justify="right", no_wrap=True)
    table.add_column("faults in it")
    for state in _STATES:
        if entered := report.met.get((state, ENTERED)):
            table.add_row(
                state, str(entered), list_of({k: report.met.get((state, k), 0) for k in kinds})
            )
    return table


def story_of(report: Report) -> Iterator[str]:
    """What happened before the first promise was broken."""
    if report.story:
        yield "what happened before that:"
    for when, what in report.story:
        yield f"  {when / 1000:8.3f} s  {what}"
