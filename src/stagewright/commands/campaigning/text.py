"""The report of a campaign of the database as text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from stagewright.commands.running.text import list_of
from stagewright.impl.simulator.campaign.tally import DatabaseTally
from stagewright.impl.simulator.campaign.trial import READS, WRITES
from stagewright.spec.text.counting import counted


def parts(tally: DatabaseTally) -> Iterator[RenderableType]:
    """What was met in which state, and what never was."""
    rate = tally.runs / tally.cpu if tally.cpu else 0.0
    yield Text(
        f"{counted(tally.counts[WRITES], 'write')} acknowledged, {counted(tally.counts[READS], 'read')} checked; {rate:.1f} runs a second "
        "and core"
    )
    yield Text("")
    yield _table(tally)
    yield Text("")
    if tally.never_entered:
        yield Text(f"never entered: {', '.join(tally.never_entered)}")
    for state, pairs in groupby(tally.never_met, key=lambda pair: pair[0]):
        yield Text(f"never met in {state}: {', '.join(kind for _, kind in pairs)}")
    if tally.never_taken:
        yield Text(
            f"edges never taken (of the topology: in any release): {'; '.join(tally.never_taken)}"
        )


def _table(tally: DatabaseTally) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("state or stage", no_wrap=True)
    table.add_column("entered", justify="right")
    table.add_column("faults in it")
    for state, entered, kinds in tally.rows():
        if entered:
            table.add_row(state, str(entered), list_of(kinds))
    return table
