"""How long the slices of processes are, where Linux gives them what they ask for and shows it."""

from __future__ import annotations

import platform
import re
from pathlib import Path


def slice_of(process: int | str = "self") -> int:
    """Nanoseconds; 0: this system does not show it."""
    shows = Path(f"/proc/{process}/sched")
    lines = shows.read_text("ascii").splitlines() if shows.exists() else []
    return next((int(line.split()[-1]) for line in lines if line.startswith("se.slice ")), 0)


_release = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
ARE_GIVEN = slice_of() > 0 and _release >= (6, 12)
