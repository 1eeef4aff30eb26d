"""A trace as files that `stagewright validate` reads: one of JSON lines for each definition.

Each step is in its file before the next one is taken: a process that is killed leaves all that it did. What it did
after a restart is another trace.
"""

from __future__ import annotations

import json
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
        # a clock that is set does not turn events round
        self._since = time.time_ns() - time.monotonic_ns()

    def take(self, kind: str, entity: str, node: str, action: str, /, **arguments: Any) -> None:
        """Write a step."""
        with self._lock:
            now = (self._since + time.monotonic_ns()) // 1000
            writer = self._writers.get(kind) or self._begin(kind)
            if (kind, entity) not in self._begun:
                self._begun.add((kind, entity))
                writer.start(entity, FrozenMap({}), node=node, time=now)
            writer.record(entity, Step(action, FrozenMap(arguments)), {}, node=node, time=now)

    def _begin(self, kind: str) -> TraceWriter:
        path = self.folder / f"{kind}.jsonl"
        writer = TraceWriter(path, load(OF_VIEW_ENGINE[kind]), self._trace, at_once=True)
        self._writers[kind] = writer
        return writer

    @classmethod
    def of_process(cls, folder: Path, name: str) -> TraceFiles:
        """Those of one more process of this name, in a folder of its own."""
        lives = sum(1 for _ in folder.glob(f"{name}-*"))
        life = f"{name}-{lives + 1}"
        return cls(folder / life, life)

    def close(self) -> None:
        """Nothing more happens."""
        with self._lock:
            for writer in self._writers.values():
                writer.close()


def end_traces(folder: Path) -> None:
    """Mark the end of every entity in the files of a process that has ended, maybe without warning."""
    for path in folder.glob("*.jsonl"):
        last: dict[str, dict[str, Any]] = {}
        for line in path.read_text("utf-8").splitlines():
            event = json.loads(line)
            last[event["entity"]] = event
        with path.open("a", encoding="utf-8") as file:
            for event in last.values():
                if not event.get("end"):
                    seq = event["seq"] + 1
                    ended = {"seq": seq, "action": None, "params": {}, "observed": {}, "end": True}
                    print(json.dumps({**event, **ended}), file=file)
