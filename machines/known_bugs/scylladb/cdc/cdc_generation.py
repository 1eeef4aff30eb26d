"""Mistakes put back into `CdcGeneration`: a property breaks with each."""

from __future__ import annotations

from stagewright.machines.scylladb.cdc.cdc_generation import (
    COORDINATOR,
    PUBLISHER,
    CdcGeneration,
    Life,
)
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


@known_bug(
    "003-120",
    "design document 001: a new CDC generation data was written to internal tables earlier",
    breaks=CdcGeneration.generations_are_committed_whatever_clients_can_see,
)
class TheNextCommitWaitsForClients(CdcGeneration):
    """A generation was committed when CDC clients could read of the one before it."""

    @action(by=COORDINATOR)
    def supersede(self) -> None:
        """A newer generation is committed when this one is published."""
        super().supersede()
        require(self.life == Life.published, "it is published")


@known_bug(
    "003-121",
    "design document 003: a generation operates until the following generation's timestamp",
    breaks=CdcGeneration.generations_are_used_until_the_next_one_operates,
)
class NodesUseTheNewestAlone(CdcGeneration):
    """A node that learned of two generations at once began to use the newer one, which did not operate yet."""

    @action
    def start_using(self) -> None:
        """A node has learned of a generation that is the newest."""
        super().start_using()
        require(~self.superseded, "it is the newest")


@known_bug(
    "003-122",
    "design document 003, TODO: a generation that was superseded will soon be removed",
    breaks=CdcGeneration.generations_are_cleared_whoever_used_them,
)
class UnusedGenerationsAreKept(CdcGeneration):
    """A generation that no node had reported to use was taken for one that is still to operate, and never cleared."""

    @CdcGeneration.life.step(Life.published, Life.cleared, by=PUBLISHER)
    def clear(self) -> None:
        """A newer one has operated for long enough, and this one has."""
        require(
            self.superseded & self.used, "a newer generation is committed, and this one was used"
        )


BUGS = known_bugs_in(globals())
