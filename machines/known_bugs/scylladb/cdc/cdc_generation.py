"""Mistakes put back into `CdcGeneration`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.cdc.cdc_generation import COORDINATOR, CdcGeneration, Life
from stagewright.spec import action, require
from stagewright.spec.known_bugs import known_bug, known_bugs_in


@known_bug(
    "003-51",
    "design document 003: a generation starts operating at its timestamp",
    breaks=CdcGeneration.generations_are_used_before_they_are_published,
)
class NodesUseWhatClientsSee(CdcGeneration):
    """Nodes began to use a generation when CDC clients could read of it, however long that took after its timestamp."""

    @action
    def start_using(self) -> None:
        """A node has learned of a generation that is published."""
        super().start_using()
        require(self.life != Life.committed, "it is published")


@known_bug(
    "003-61",
    "design document 001: a new CDC generation data was written to internal tables earlier",
    breaks=CdcGeneration.data_is_written_before_the_commit,
)
class DataComesWithTheTimestamp(CdcGeneration):
    """One command wrote the data and the timestamp: a node that was slow to apply the large one used the generation before."""

    @CdcGeneration.life.step(Life.absent, Life.committed, by=COORDINATOR)
    def write_data(self) -> None:
        """The data is written, and the generation has a timestamp."""


BUGS = known_bugs_in(globals())
