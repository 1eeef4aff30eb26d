"""How soon a process goes on that wakes while another one runs: those that others wait for ask Linux for short slices.

Since Linux 6.12, who wakes with a shorter slice than the one that runs goes first at once, and not at the end of a slice or of a
tick. All in all it gets no more of the processor for that.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

SHORT = 100_000  # nanoseconds, the least that there is
USUAL = 0  # as the system has it
_CALLS = {"x86_64": 314, "aarch64": 274}  # of `sched_setattr`, which Python has not
# size, policy, flags, nice, priority, runtime, deadline, period
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")


def take_slices(nanoseconds: int) -> bool:
    """Of this thread, and of threads and processes that it begins from now on; whether the system has been asked."""
    if sys.platform != "linux" or platform.machine() not in _CALLS:
        return False
    if os.sched_getscheduler(0) != os.SCHED_OTHER:
        return False  # whoever started it knows better
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    size, policy = _ATTRIBUTES.size, os.SCHED_OTHER
    attributes = _ATTRIBUTES.pack(size, policy, 0, nice, 0, nanoseconds, 0, 0)
    call: int = ctypes.CDLL(None).syscall(_CALLS[platform.machine()], 0, attributes, 0)
    return call == 0
