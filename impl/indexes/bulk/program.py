"""The process that builds for a tablet server: `python -m stagewright.impl.indexes.bulk.program --fd N`.

It does one work after the other, with the least priority there is, and ends when its server does. Works and answers
are pickled: nobody else has an end of the two sockets between them.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from stagewright.impl.indexes.bulk.doing import Builder

LEAST = 19  # priority of a process


def main(words: list[str] | None = None) -> int:
    """Do works until nobody asks for any."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--fd", type=int, required=True, help="the socket to its server")
    args = parser.parse_args(words)
    os.nice(LEAST)
    modules: dict[str, Any] = sys.modules
    modules.setdefault("scipy", None)  # numba would load it, for linear algebra
    builder, server = Builder(), Connection(args.fd)
    with suppress(EOFError, ConnectionError, KeyboardInterrupt):  # the server is gone
        while True:
            work: Any = server.recv()
            server.send(builder.do(work))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
