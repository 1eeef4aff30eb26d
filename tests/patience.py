"""How long a test waits for other processes before it calls them stuck: much longer than a busy machine needs."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

PATIENCE = 240.0
"""Seconds. A loop that is compiled for the first time may alone take a minute where others work, too."""


async def within(seconds: float, work: Coroutine[object, object, None]) -> None:
    """Await it for so long at most.

    Raises:
        TimeoutError: it takes longer.
    """
    async with asyncio.timeout(seconds):
        await work
