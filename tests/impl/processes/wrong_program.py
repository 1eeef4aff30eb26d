"""A node of a cluster that is built wrongly, or dies: `python wrong_program.py DEFECT EVERY FAMILY …`, else as the right one.

`DEFECT` may be empty. Of its writes with rows of a family it survives one in `EVERY` not: it ends right after it, whatever
was to follow; 0: all.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Iterable

from stagewright.impl.node.defects import Defect
from stagewright.impl.processes.node import main
from stagewright.impl.storage.port import Put
from stagewright.impl.storage.rocks import RocksRows


def die_after(every: int, family: str) -> None:
    """Let this process end at random after a write of the family."""
    kept = RocksRows.write

    def write(self: RocksRows, batch: Iterable[Put]) -> None:
        puts = list(batch)
        kept(self, puts)
        if any(put.family == family for put in puts) and not random.randrange(every):
            os.kill(os.getpid(), signal.SIGKILL)

    RocksRows.write = write  # type: ignore[method-assign]


if __name__ == "__main__":
    _, defect, every, family, *words = sys.argv
    if int(every):
        die_after(int(every), family)
    raise SystemExit(main(words, frozenset({Defect[defect]} if defect else ())))
