"""What the page of an indexed table shows: its processes, how far indexes are built, what masters have decided."""

from __future__ import annotations

import time
from typing import ClassVar

from stagewright.impl.indexes.processes.progress import listed, shown_build
from stagewright.impl.indexes.processes.stored_catalog import last_steps
from stagewright.impl.indexes.processes.supervisor import IndexSupervisor, ProcessReport
from stagewright.live.pages import Document
from stagewright.loopback import Query

_SHOWN = 400  # steps


class IndexWatch:
    """One cluster, watched; `look` may be called from one thread at a time."""

    page: ClassVar = "indexes.html"

    def __init__(self, supervisor: IndexSupervisor) -> None:
        self._supervisor = supervisor

    def close(self) -> None:
        """Watch no longer; nothing is kept open between two looks."""

    def look(self, _: Query) -> Document:
        """All that the page shows; times are seconds since 1970. `builds` is None where no master answers."""
        layout = self._supervisor.layout
        report = self._supervisor.status()
        catalog = layout.directory / "catalog.sqlite"
        steps = last_steps(catalog, _SHOWN) if catalog.exists() else []
        return {
            "at": time.time(),
            "processes": [self._process(p) for p in report.processes],
            "builds": None
            if report.builds is None
            else [shown_build(b) for b in listed(report.builds)],
            "steps": [{"term": term, "at": at / 1000, "step": step} for term, at, step in steps],
        }

    def _process(self, process: ProcessReport) -> Document:
        layout = self._supervisor.layout
        places = [p for p in process.leads or () if layout.tablet(p).exists()]
        rows = (f for p in places for f in (layout.tablet(p) / "rows").glob("*"))
        return {
            "name": process.name,
            "process": process.process,
            "answers": process.leads is not None,
            "leads": list(process.leads or ()),
            "bytes": sum(f.stat().st_size for f in rows if f.exists()),
        }
