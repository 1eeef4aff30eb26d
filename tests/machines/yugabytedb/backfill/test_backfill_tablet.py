"""The chunks of a tablet, as a log tells of them, keep their promises, and a log can break each."""

from __future__ import annotations

from tests.machines.violated import broken, checked

from stagewright.machines.yugabytedb.backfill.backfill_tablet import BackfillTablet, Begin, Scan
from stagewright.spec import action, require


def test_chunks_keep_every_promise() -> None:
    report = checked(BackfillTablet)
    assert not broken(report)
    assert report.coverage is not None
    assert not report.coverage.never_fired
    assert report.states == 14


class Twice(BackfillTablet):
    """What is done is not known to be."""

    @action
    def scan_again(self) -> None:
        """A tablet that is done is scanned again."""
        require(self.scan == Scan.done, "the tablet is done")
        self.scan = Scan.chunk
        self.begin = Begin.further


def test_a_master_that_forgets_what_is_done_breaks_a_promise() -> None:
    assert "what_is_done_is_not_scanned_again" in broken(checked(Twice))
