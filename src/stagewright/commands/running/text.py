"""What went wrong in a run, and when: a table of states and stages, and what happened before a property was violated."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from stagewright.impl.simulator.database.report import Report
from stagewright.impl.simulator.database.weather import ENTERED, KINDS, at_stage
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.machines.scylladb.topology.topology_states import TransitionState

SHORT = {
    "message lost": "lost",
    "message late": "late",
    "message repeated": "again",
    "barrier lost": "barrier",
    "stream lost": "stream",
    "node crashes": "crash",
    "coordinator crashes": "coord.",
    "unsynced rows lost": "disk",
    "coordinator deposed": "deposed",
    "group0 elects": "elects",
    "commit unknown": "commit",
    "action fails": "action",
    "node dies": "dead",
    "node cut off": "cut off",
    "node suspended": "asleep",
}
"""Heads of columns."""
_STATES = (*(s.name for s in TransitionState), *(at_stage(s) for s in Stage))


def table_of_faults(report: Report) -> Table | None:
    """How often each state of the topology and each stage of a tablet was entered, and what went wrong in it."""
    kinds = [k for k in KINDS if any(what == k for _, what in report.met)]
    if not kinds:
        return None
    table = Table(box=None, padding=(0, 0, 0, 1), header_style="bold")
    table.add_column("state or stage", no_wrap=True)
    table.add_column("entered", justify="right", no_wrap=True)
    for kind in kinds:
        table.add_column(SHORT[kind], justify="right", no_wrap=True)
    for state in _STATES:
        if entered := report.met.get((state, ENTERED)):
            met = (str(report.met.get((state, k)) or "·") for k in kinds)
            table.add_row(state, str(entered), *met)
    return table


def story_of(report: Report) -> Iterator[str]:
    """What happened before the first promise was broken."""
    if report.story:
        yield "what happened before that:"
    for when, what in report.story:
        yield f"  {when / 1000:8.3f} s  {what}"
