"""Which seeds of the default strategy show a wrong build, to whom, and by which promise.

`python -m stagewright.impl.simulator.campaign.wrong_builds 24` prints the table of all, by the seeds 0 to 23, row by row as
it is found; names after the number are of the builds that it is to have rows of.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from stagewright.impl.node.defects import Defect
from stagewright.impl.recording.failure import RAISED, Failure
from stagewright.impl.simulator.campaign.drawing import draw
from stagewright.impl.simulator.campaign.trial import BY_CLIENTS, BY_TRACE, attempt


@dataclass
class Shown:
    """The first seed at which each check notices a defect, with what it says."""

    defect: Defect
    runs: int = 0
    trace: tuple[int, Failure] | None = None
    clients: tuple[int, Failure] | None = None
    raised: tuple[int, Failure] | None = None

    @property
    def row(self) -> str:
        """A row of the table of wrong builds, in Markdown."""
        return f"| {self.defect.name} | {_cell(self.trace)} | {_cell(self.clients)} | {self.runs} |"


def hunt(defect: Defect, seeds: Iterable[int]) -> Shown:
    """Run seeds until both checks have noticed a defect, or all are run."""
    found = Shown(defect)
    for seed in seeds:
        result = attempt(draw(seed), frozenset({defect}))
        found.runs += 1
        for failure in result.failures:
            if failure.by == BY_TRACE and found.trace is None:
                found.trace = seed, failure
            elif failure.by == BY_CLIENTS and found.clients is None:
                found.clients = seed, failure
            elif failure.by == RAISED and found.raised is None:
                found.raised = seed, failure
        if found.trace is not None and found.clients is not None:
            break
    return found


def rows(defects: Iterable[Defect], seeds: range) -> Iterator[str]:
    """The table of wrong builds: who notices each, by what, at which seed first."""
    yield "| wrong build | the definitions refuse | clients or rows show it | runs |"
    yield "| --- | --- | --- | ---: |"
    for defect in defects:
        yield hunt(defect, seeds).row


def _cell(found: tuple[int, Failure] | None) -> str:
    if found is None:
        return "no"
    text = found[1].text
    said = (
        text.rpartition(" not (")[2].rstrip(")")
        if " not (" in text
        else " ".join(found[1].sort[1:])
    )
    return f"{said.replace('|', '/')} (seed {found[0]})"


if __name__ == "__main__":
    wanted = [Defect[name] for name in sys.argv[2:]] or [*Defect]
    for row in rows(wanted, range(int(sys.argv[1]))):
        print(row, flush=True)
