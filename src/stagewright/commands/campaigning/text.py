"""The report of a campaign of the database as text."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stagewright.impl.simulator.campaign.tally import Tally
from stagewright.impl.simulator.database.world import KINDS


def render(tally: Tally, asked: int) -> RenderableType:
    """What was run and met, and what never was."""
    return Group(*_parts(tally, asked))


def _parts(tally: Tally, asked: int) -> Iterator[RenderableType]:
    drawn = ", ".join(f"{n} {s}" for s, n in tally.strategies.most_common())
    rate = tally.runs / tally.cpu if tally.cpu else 0.0
    yield Text(f"{tally.runs:,} runs of {asked:,} ({drawn}); {tally.failed} failed")
    yield Text(
        f"{tally.writes:,} writes acknowledged, {tally.reads:,} reads checked; {rate:.1f} runs a second "
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


def _table(tally: Tally) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("state or stage", no_wrap=True)
    table.add_column("entered", justify="right")
    for kind in KINDS:
        table.add_column(kind.replace(" ", "\n", 1), justify="right")
    for state, entered, kinds in tally.rows():
        if entered:
            table.add_row(state, str(entered), *(str(n or "·") for n in kinds.values()))
    return table
