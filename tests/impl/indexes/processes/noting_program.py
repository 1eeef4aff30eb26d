"""A process of a cluster that keeps what it notes in `nodes/NAME/notes`: `python noting_program.py --defect NAME …`.

Each note has the millisecond of the turn of the process in which it was taken; all clocks are those of one machine, so
what caused something comes before it. A turn has one time: what happens in it has not waited.
"""

from __future__ import annotations

import asyncio
import pickle
import sys
import time
from dataclasses import replace
from pathlib import Path

from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.processes.lives import Life
from stagewright.impl.indexes.processes.program import main
from stagewright.impl.indexes.records.notes import EntriesBackfilled, EntriesStored, Note

NOTES = "notes"


class Turn:
    """The nanosecond at which this turn of the loop began."""

    def __init__(self) -> None:
        self._began: int | None = None

    def time(self) -> int:
        if self._began is None:
            self._began = time.time_ns()
            asyncio.get_running_loop().call_soon(self._end)
        return self._began

    def _end(self) -> None:
        self._began = None


def keep(path: Path) -> None:
    """Let all lives of this process write their notes to a file."""
    turn, said = Turn(), Life.note
    file = path.open("ab", buffering=0)

    def note(self: Life, note: Note) -> None:
        kept = note
        if isinstance(note, EntriesBackfilled | EntriesStored):  # files of entries do not last
            kept = replace(note, entries=note.entries.held())
        file.write(pickle.dumps((turn.time(), kept)))
        said(self, note)

    def now(self: Life) -> int:
        return turn.time() // 1_000_000

    Life.note = note  # type: ignore[method-assign]
    Life.now = now  # type: ignore[method-assign]


if __name__ == "__main__":
    _, defects, *words = sys.argv[1:]
    directory, name = Path(words[words.index("--dir") + 1]), words[words.index("--name") + 1]
    keep(directory / "nodes" / name / NOTES)
    raise SystemExit(main(words, frozenset(Defect[d] for d in defects.split(",") if d)))
