"""The log of one process in YugabyteDB's form, between the lines of the process itself."""

from __future__ import annotations

import sys
import threading
import time

from stagewright.impl.indexes.records.server_lines import head, line


class Log:
    """Of one life of a process, with a head as each file of glog has."""

    def __init__(self, name: str, kind: str) -> None:
        self._last = time.time_ns() // 1000
        for text in head(name, self._last):
            _write(text)
        self.say(f"Initializing {kind}...")

    def say(self, message: str) -> None:
        """A line of now; none has the time of the one before."""
        self._last = max(self._last + 1, time.time_ns() // 1000)
        _write(line(self._last, message, threading.get_native_id()))


def _write(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
