"""What the processes of a cluster have noted, checked as the notes of a simulated run are: by rows, and by records."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

from tests.impl.indexes.processes.noting_program import NOTES

from stagewright.impl.indexes.processes.layout import IndexLayout
from stagewright.impl.indexes.records.notes import Note
from stagewright.impl.indexes.records.recorder import IndexRecorder
from stagewright.impl.indexes.simulated.oracle import Oracle


class Noted:
    """All notes in the order of their times."""

    def __init__(self, layout: IndexLayout) -> None:
        self._settings = layout.file().settings
        self._now = 0
        self.oracle = Oracle()
        self.recorder = IndexRecorder(self._settings, lambda: self._now)
        for at, note in sorted(_notes(layout), key=lambda one: one[0]):
            self._now = self.oracle.now = at // 1_000_000
            self.oracle.hear(note)
            self.recorder.hear(note)
        self.recorder.end()

    def breaches(self, faults: int = 0) -> list[str]:
        """Rows that were read more often than once a job, or faster than may be; SUCCESS that was told too early.

        After each fault a chunk of a tablet may be read again.
        """
        jobs = {note.job: faults for _, note in self.oracle.scanned}
        most = self._settings.chunk_rows + self._settings.batch - 1
        found = [*self.oracle.wrongly_reported, *self.oracle.scans(jobs, most)]
        if self._settings.rows_per_second:
            found += self.oracle.rate(self._settings.rows_per_second)
        return found

    def refused(self) -> list[str]:
        """What the definitions of records do not allow."""
        return self.recorder.problems


def _notes(layout: IndexLayout) -> Iterator[tuple[int, Note]]:
    for path in sorted(layout.directory.glob(f"nodes/*/{NOTES}")):
        with path.open("rb") as file:
            while True:
                try:
                    one: Any = pickle.load(file)
                except EOFError:
                    break
                yield one
