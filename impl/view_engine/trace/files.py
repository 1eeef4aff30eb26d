"""A trace as files that `stagewright validate` reads: one of JSON lines for each definition."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from stagewright.impl.view_engine.trace.trace import Recorded
from stagewright.machines.recorded import OF_VIEW_ENGINE
from stagewright.spec.loading import load
from stagewright.spec.trace import TraceWriter
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Step


class TraceFiles:
    """The sink of a trace. Any thread may call it; `close` marks the end of every entity."""

    def __init__(self, folder: str | os.PathLike[str], trace: str) -> None:
        """Write to a folder, which is created if it is not there; `trace` names the run."""
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._trace = trace
        self._writers: dict[str, TraceWriter] = {}
        self._begun: set[tuple[str, str]] = set()

    def __call__(self, step: Recorded) -> None:
        """Write a step."""
        with self._lock:
            now = time.time_ns() // 1000
            writer = self._writers.get(step.machine) or self._begin(step.machine)
            if (step.machine, step.entity) not in self._begun:
                self._begun.add((step.machine, step.entity))
                writer.start(step.entity, FrozenMap({}), node=step.node, time=now)
            taken = Step(step.action, FrozenMap(dict(step.arguments)))
            writer.record(step.entity, taken, {}, node=step.node, time=now)

    def _begin(self, machine: str) -> TraceWriter:
        path = self.folder / f"{machine}.jsonl"
        writer = TraceWriter(path, load(OF_VIEW_ENGINE[machine]), self._trace)
        self._writers[machine] = writer
        return writer

    def close(self) -> None:
        """Nothing more happens."""
        with self._lock:
            for writer in self._writers.values():
                writer.close()


def written(steps: Iterable[Recorded], folder: Path, trace: str) -> Path:
    """The folder, with files of these steps."""
    files = TraceFiles(folder, trace)
    for step in steps:
        files(step)
    files.close()
    return folder
