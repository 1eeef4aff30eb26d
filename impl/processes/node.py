"""The program of one node: `python -m stagewright.impl.processes.node --dir D --name n1`.

It ends with 0 when it is asked to stop (SIGTERM) or has left the cluster, with 1 when it cannot go on.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import ipaddress
import logging
import signal
import sys
from pathlib import Path

from stagewright.impl.node.defects import Defect
from stagewright.impl.processes.host import Host
from stagewright.impl.processes.layout import Layout
from stagewright.impl.processes.links import split
from stagewright.impl.processes.log import group0_of
from stagewright.impl.storage.rocks import RocksRows
from stagewright.spec.errors import StagewrightError


def main(words: list[str] | None = None, defects: frozenset[Defect] = frozenset()) -> int:
    """Live as a node of a cluster; with defects, as one that is built wrongly, for tests."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--dir", type=Path, required=True, help="the directory of the cluster")
    parser.add_argument("--name", required=True, help="which of its nodes")
    args = parser.parse_args(words)
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s"
    )
    log = logging.getLogger("stagewright.node")
    try:
        reason = asyncio.run(_live(Layout(args.dir), args.name, defects))
    except StagewrightError as error:
        log.critical("%s cannot go on: %s", args.name, error)
        return 1
    log.info("%s ends: %s", args.name, reason or "it was asked to")
    return 0


async def _live(layout: Layout, name: str, defects: frozenset[Defect]) -> str:
    settings, file = layout.settings(), layout.node_file(name)
    _warn_of_open_doors(file.identity.host.address)
    layout.claim(name)  # until this process ends
    rows = RocksRows(layout.node(name) / "rows")
    group0 = group0_of(layout)
    host = Host(file, layout.secret(), settings.timing, rows, group0, defects)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, host.end)
    gc.freeze()  # definitions and programs live as long as the process
    try:
        reason = await host.run()
        if reason:
            layout.stop_for_good(name, reason)
        return reason
    finally:
        await group0.close()
        await loop.shutdown_default_executor()  # a sync that runs must end before the store does
        rows.sync()
        rows.close()


def _warn_of_open_doors(address: str) -> None:
    """Whoever listens beyond this machine's loopback was asked to, and ought to know what it means."""
    host, _ = split(address)
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback:
        logging.getLogger("stagewright.node").warning(
            "listening beyond this machine, at %s: callers must know the secret, but what is said "
            "is not hidden",
            address,
        )


if __name__ == "__main__":
    raise SystemExit(main())
