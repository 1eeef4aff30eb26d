"""The report of a run as text: what happened, what went wrong where, and whether the promises were kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stagewright.impl.cluster.settings import Consistency
from stagewright.impl.simulator.counters import Report
from stagewright.impl.simulator.faults import FaultKind
from stagewright.impl.simulator.oracle import Breach
from stagewright.machines.scylladb.tablets.tablet_stages import Stage

_REFUSALS_SHOWN = 6


def render_run(report: Report) -> RenderableType:
    """The whole report, except for its closing lines."""
    return Group(*_parts(report))


def _parts(report: Report) -> Iterator[RenderableType]:
    yield from _title(report)
    yield Text("")
    yield _facts(report)
    yield Text("")
    yield _stages(report)
    yield Text("")
    yield from _verdict(report)


def closing_lines(report: Report, reproduce: str) -> Iterator[str]:
    """What a person may want to copy, a line each."""
    if report.trace is not None:
        yield f"trace: {report.trace}"
        yield f"check it again: stagewright validate {' '.join(map(str, report.traces))}"
    yield f"reproduce: {reproduce}"


def _title(report: Report) -> Iterator[Text]:
    options = report.options
    all_replicas = options.settings().consistency is Consistency.all
    how = "writes wait for all, reads for one" if all_replicas else "reads and writes by quorum"
    yield Text(
        f"{options.nodes} nodes, {options.tablets} tablets of {options.replicas} replicas ({how}), "
        f"{report.keys} keys"
    )
    faults = ", ".join(map(str, options.faults)) or "none"
    yield Text(
        f"definition: TabletMigration ({report.profile}); seed {options.seed}; faults: {faults}"
    )


def _facts(report: Report) -> RenderableType:
    table = Table.grid(padding=(0, 3, 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in _rows(report):
        table.add_row(name, text)
    return table


def _rows(report: Report) -> Iterator[tuple[str, str]]:
    c = report.counters
    kinds = _listed(c.started)
    started = f"{sum(c.started.values())} started" + (f" ({kinds})" if kinds else "")
    yield "transitions", f"{started}; {c.done} done, {c.reverted} reverted"
    refused = sum(c.refused.values())
    yield (
        "steps",
        f"{sum(c.steps.values())} taken, each enabled by the definition; {refused} refused",
    )
    for (action, requirement), times in c.refused.most_common(_REFUSALS_SHOWN):
        yield "", f"  {times} x {action}: not ({requirement})"
    yield "barriers", f"{c.barriers['passed']} passed, {c.barriers['failed']} failed"
    r = c.requests
    yield (
        "writes",
        f"{r['writes sent']} sent, {r['writes acknowledged']} acknowledged, {r['writes failed']} failed",
    )
    yield (
        "reads",
        f"{r['reads sent']} sent, {report.reads_checked} returned and checked, {r['reads failed']} failed",
    )
    yield "fence", f"{c.fenced} requests of older versions refused by replicas"
    yield (
        "coordinator",
        f"{c.failovers} failovers, {c.deposed} deposed coordinators stopped, {report.commits} commits",
    )
    yield "nodes", f"{c.crashes} crashes, {c.rows_written} rows written"
    yield "messages", _listed(c.messages)
    yield "time", f"{report.simulated_ms / 1000:.1f} s simulated"


def _listed(counted: Counter[str]) -> str:
    return ", ".join(f"{n} {name}" for name, n in sorted(counted.items()))


def _stages(report: Report) -> RenderableType:
    """How often each stage was entered, and what went wrong in it."""
    c = report.counters
    kinds = [k for k in FaultKind if any(fault == k.name for _, fault in c.faults)]
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("stage", no_wrap=True)
    table.add_column("entered", justify="right")
    for kind in kinds:
        table.add_column(kind.name, justify="right", no_wrap=True)
    for stage in Stage:
        if c.stages[stage.name]:
            met = (str(c.faults[stage.name, k.name] or "·") for k in kinds)
            table.add_row(stage.name, str(c.stages[stage.name]), *met)
    return table


def _verdict(report: Report) -> Iterator[RenderableType]:
    if report.kept:
        yield Text("every promise was kept", style="bold green")
        return
    ordered = sorted(report.breaches, key=lambda b: b.promise.name)
    for promise, group in groupby(ordered, key=lambda b: b.promise):
        breaches = list(group)
        yield Text(f"broken: {promise.value} ({len(breaches)} times)", style="bold red")
        yield from _story(breaches[0])
        yield Text("")


def _story(breach: Breach) -> Iterator[Text]:
    yield Text(f"  {breach.text}", style="red")
    if breach.story:
        yield Text("  what happened before:")
    for line in breach.story:
        yield Text(f"    {line}", style="dim")
