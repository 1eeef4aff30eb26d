"""A trace as files that `stagewright validate` reads: one of JSON lines for each definition."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

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

    def take(self, kind: str, entity: str, node: str, action: str, /, **arguments: Any) -> None:
        """Write a step."""
        with self._lock:
            now = time.time_ns() // 1000
            writer = self._writers.get(kind) or self._begin(kind)
            if (kind, entity) not in self._begun:
                self._begun.add((kind, entity))
                writer.start(entity, FrozenMap({}), node=node, time=now)
            writer.record(entity, Step(action, FrozenMap(arguments)), {}, node=node, time=now)

    def _begin(self, kind: str) -> TraceWriter:
        path = self.folder / f"{kind}.jsonl"
        writer = TraceWriter(path, load(OF_VIEW_ENGINE[kind]), self._trace)
        self._writers[kind] = writer
        return writer

    def close(self) -> None:
        """Nothing more happens."""
        with self._lock:
            for writer in self._writers.values():
                writer.close()
