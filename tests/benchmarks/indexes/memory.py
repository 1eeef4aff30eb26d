"""How much memory of their own processes take together while something goes on."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from select import select
from subprocess import PIPE, Popen
from types import TracebackType

from tests.benchmarks.processes.__main__ import tree_of

_PAUSE = 0.2  # seconds between looks
_OWN = re.compile(r"^RssAnon:\s+(\d+) kB$", re.MULTILINE)


class Memory:
    """Looks again and again, within a `with`; `most` is in MiB, and 0 if there is no process.

    It looks from a process of its own: a look reads a file of every process of the machine, for which clients that are
    threads of this one would wait, as they would for a slow database.
    """

    def __init__(self, roots: Callable[[], list[int]]) -> None:
        self.most = 0
        self._roots = roots

    def __enter__(self) -> Memory:
        words = [sys.executable, "-m", __name__, *map(str, self._roots())]
        self._watch = Popen(words, stdin=PIPE, stdout=PIPE, text=True)
        assert self._watch.stdout is not None
        self._watch.stdout.readline()  # it looks
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        said, _ = self._watch.communicate()
        self.most = int(said)


def main(words: list[str]) -> None:
    """Look at processes, by their numbers, and those that descend from them until the input ends."""
    roots, most = [int(word) for word in words], 0
    print(flush=True)
    while True:
        over = select([sys.stdin], [], [], _PAUSE)[0]
        found = sum(own_memory(p) for root in roots for p in tree_of(root))
        most = max(most, found >> 10)
        if over:
            break
    print(most)


def own_memory(process: int) -> int:
    """KiB that a process shares with no file; 0 if it is gone."""
    try:
        status = Path(f"/proc/{process}/status").read_text("ascii", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return 0
    found = _OWN.search(status)
    return int(found[1]) if found else 0


if __name__ == "__main__":
    main(sys.argv[1:])
