"""The process that builds for a tablet server: `python -m stagewright.impl.indexes.bulk.program --fd N`.

It does one work after the other, with the least priority there is, and ends when its server does. Works and answers
are pickled: nobody else has an end of the two sockets between them.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from stagewright.impl.indexes.bulk.slices import USUAL, take_slices

LEAST = 19  # priority of a process
LESS = 5  # of a session: a third of what others get when they want all, so that builds go on
_TRIES = 20


def main(words: list[str] | None = None) -> int:
    """Do works until nobody asks for any."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--fd", type=int, required=True, help="the socket to its server")
    args = parser.parse_args(words)
    _yield_to_others()  # before much is loaded
    modules: dict[str, Any] = sys.modules
    modules.setdefault("scipy", None)  # numba would load it, for linear algebra
    from stagewright.impl.indexes.bulk.doing import Builder
    from stagewright.impl.indexes.bulk.pace import Pace

    builder, server = Builder(), Connection(args.fd)
    with suppress(EOFError, ConnectionError, KeyboardInterrupt):  # the server is gone
        while True:
            share, work = server.recv()
            server.send(builder.do(work, Pace(share)))
    return 0


def _yield_to_others() -> None:
    """Let others go first; where Linux shares processors out among sessions, let other sessions go first."""
    os.nice(LEAST)
    take_slices(USUAL)  # its server's are short
    for _ in range(_TRIES):
        try:
            Path("/proc/self/autogroup").write_text(f"{LESS}\n", "ascii")
        except BlockingIOError:  # one session a tenth of a second
            time.sleep(0.1)
        except OSError:  # elsewhere there is none
            return
        else:
            return


if __name__ == "__main__":
    raise SystemExit(main())
