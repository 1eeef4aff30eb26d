"""How much memory of their own processes take together while something goes on."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from types import TracebackType

from tests.benchmarks.processes.__main__ import tree_of

_PAUSE = 0.1  # seconds between looks
_OWN = re.compile(r"^RssAnon:\s+(\d+) kB$", re.MULTILINE)


class Memory:
    """Looks again and again, within a `with`; `most` is in MiB, and 0 if there is no process."""

    def __init__(self, roots: Callable[[], list[int]]) -> None:
        self.most = 0
        self._roots = roots
        self._over = Event()
        self._thread = Thread(target=self._look_again_and_again, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self._look()

    def _look_again_and_again(self) -> None:
        while not self._over.wait(_PAUSE):
            self._look()

    def _look(self) -> None:
        found = sum(own_memory(p) for root in self._roots() for p in tree_of(root))
        self.most = max(self.most, found >> 10)


def own_memory(process: int) -> int:
    """KiB that a process shares with no file; 0 if it is gone."""
    try:
        status = Path(f"/proc/{process}/status").read_text("ascii", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = _OWN.search(status)
    return int(found[1]) if found else 0
