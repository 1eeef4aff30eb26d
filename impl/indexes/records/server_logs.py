"""The logs of all servers of a simulated run in YugabyteDB's form, a file for each of them.

Each life of a master is a file of its own, as another server is elected.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

from stagewright.impl.indexes.catalog import Catalog
from stagewright.impl.indexes.control import JOB
from stagewright.impl.indexes.records.notes import ChunkBegun, ChunkEnded, Note, Stepped
from stagewright.impl.indexes.records.server_lines import MasterLines, TabletServerLines, head, line

BEGIN = 1_767_312_000_000_000  # 2026-01-02, microseconds


class ServerLogs:
    """Of all servers of a run."""

    def __init__(self, now: Callable[[], int], catalog: Callable[[], Catalog]) -> None:
        """`now` says milliseconds."""
        self._now = now
        self._catalog = catalog
        self._lines: dict[str, list[str]] = defaultdict(list)
        self._last = 0
        self._lives = 0  # of masters
        self._master = self._elected()

    def _elected(self) -> MasterLines:
        self._lives += 1
        return MasterLines(partial(self._say, f"yb-master-{self._lives}"), self._catalog)

    def hear(self, note: Note, server: str) -> None:
        """A process of a server has done something."""
        if isinstance(note, Stepped) and (note.kind, note.action) == (JOB, "fail_over"):
            self._master = self._elected()
        if isinstance(note, ChunkBegun | ChunkEnded):
            TabletServerLines(partial(self._say, f"yb-tserver-{server}"), server).hear(note)
        else:
            self._master.hear(note)

    def write(self, directory: Path) -> tuple[Path, ...]:
        """A file a server; what an earlier run has left goes."""
        directory.mkdir(parents=True, exist_ok=True)
        for old in directory.glob("yb-*.log"):
            old.unlink()
        paths: list[Path] = []
        for server, lines in sorted(self._lines.items()):
            path = directory / f"{server}.log"
            path.write_text("\n".join([*head(server, BEGIN), *lines, ""]), "utf-8")
            paths.append(path)
        return tuple(paths)

    def _say(self, server: str, message: str) -> None:
        self._last = max(self._last + 1, self._now() * 1000)
        self._lines[server].append(line(BEGIN + self._last, message))
