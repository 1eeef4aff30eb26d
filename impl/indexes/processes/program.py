"""The program of one process: `python -m stagewright.impl.indexes.processes.program --dir D --name n1`.

It ends with 0 when it is asked to stop (SIGTERM), with 1 when it cannot go on.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import signal
import sys
from pathlib import Path

from stagewright.impl.indexes.bulk.slices import SHORT, take_slices
from stagewright.impl.indexes.control import programs
from stagewright.impl.indexes.defects import Defects
from stagewright.impl.indexes.processes.host import Host
from stagewright.impl.indexes.processes.layout import IndexLayout
from stagewright.spec.errors import StagewrightError


def main(words: list[str] | None = None, defects: Defects = frozenset()) -> int:
    """Live as a tablet server or a master; with defects, as one that is built wrongly, for tests."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--dir", type=Path, required=True, help="the directory of the cluster")
    parser.add_argument("--name", required=True, help="which of its processes")
    args = parser.parse_args(words)
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    log = logging.getLogger("stagewright.indexes")
    take_slices(SHORT)  # clients wait for it
    try:
        asyncio.run(_live(IndexLayout(args.dir), args.name, defects))
    except StagewrightError as error:
        log.critical("%s cannot go on: %s", args.name, error)
        return 1
    log.info("%s ends: it was asked to", args.name)
    return 0


async def _live(layout: IndexLayout, name: str, defects: Defects) -> None:
    file = layout.file()
    layout.layout.claim(name)  # until this process ends
    if name in file.masters:
        programs()  # before it leads: whoever waits for a master waits for this
    host = Host(layout, name, defects)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, host.end)
    gc.freeze()  # definitions and programs live as long as the process
    path = layout.node(name) / "address"

    def listens(address: str) -> None:
        path.with_suffix(".new").write_text(address, "utf-8")
        path.with_suffix(".new").replace(path)

    try:
        await host.run(listens)
    finally:
        path.unlink(missing_ok=True)
        await loop.shutdown_default_executor()


if __name__ == "__main__":
    raise SystemExit(main())
