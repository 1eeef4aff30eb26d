"""How a command ends that goes on until the user has enough."""

from __future__ import annotations

import argparse
import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode

if TYPE_CHECKING:
    from stagewright.loopback import LoopbackServer


@contextmanager
def until_interrupted() -> Iterator[None]:
    """While this lasts, SIGINT (Ctrl-C) ends the body without an error.

    Scripts start background jobs with SIGINT ignored, and a process inherits that: a server that was started so
    could not be ended as it says that it can be.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGINT, before)


def serve_page(args: argparse.Namespace, made: Callable[[], LoopbackServer]) -> ExitCode:
    """Serve the page of the cluster in `args.dir` until the user has enough.

    Raises:
        InputError: there is no such port, or another program has it.
    """
    from stagewright.spec.errors import InputError

    try:
        served = made()
    except (OSError, OverflowError) as error:
        raise InputError(f"--port {args.port}: {error}", help="choose another port") from None
    if args.json:
        print(json.dumps({"action": "watch", "address": served.address}), flush=True)
    else:
        print(f"the cluster in {args.dir} is at {served.address} (Ctrl-C to end)", flush=True)
    if args.browser:
        import webbrowser

        webbrowser.open(served.address)
    try:
        with until_interrupted():
            served.serve_forever()
    finally:
        served.server_close()
    return ExitCode.HOLDS
