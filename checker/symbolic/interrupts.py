"""Ctrl-C during a proof: it is noted at once, and the query that is being answered is given up.

Neither Python nor Z3 does this by itself. A `KeyboardInterrupt` that happens to be raised while a term is freed is
printed and forgotten, as every exception in a `__del__` is, and Z3's own handler tells only the query that is running:
it is lost if that one is answered in the same moment, as most are within milliseconds.
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from stagewright.checker.symbolic.z3_terms import Clock

_AGAIN = 0.05  # seconds: a query that has not begun yet when it is given up is given up again


@contextmanager
def interruptible(clock: Clock) -> Iterator[None]:
    """While this lasts, the first Ctrl-C asks the queries under this clock to stop; the second one breaks them off."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(_signal: int, _frame: FrameType | None) -> None:
        if clock.interrupted:
            raise KeyboardInterrupt
        clock.interrupted = True

    # While Z3 computes, no handler runs that is written in Python; what is written to this socket is read all the same.
    told, tells = socket.socketpair()
    tells.setblocking(False)
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(told, clock, done), daemon=True)
    before = signal.signal(signal.SIGINT, ask)
    wakes = signal.set_wakeup_fd(tells.fileno(), warn_on_full_buffer=False)
    clock.watched = True
    watcher.start()
    try:
        yield
    finally:
        clock.watched = False
        signal.set_wakeup_fd(wakes)
        signal.signal(signal.SIGINT, before)
        done.set()
        tells.close()
        watcher.join()
        told.close()


def _watch(told: socket.socket, clock: Clock, done: threading.Event) -> None:
    while numbers := told.recv(64):
        if signal.SIGINT in numbers:
            while not done.wait(_AGAIN):
                clock.give_up()
            return
