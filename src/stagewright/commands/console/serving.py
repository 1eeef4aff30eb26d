"""How a command ends that goes on until the user has enough."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


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
