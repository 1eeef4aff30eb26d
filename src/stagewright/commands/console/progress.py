"""Progress of a search: one live line on a terminal, elsewhere a plain line every few seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TextIO

from stagewright.checker.limits import Progress

_LIVE_SECONDS = 0.2
_PLAIN_SECONDS = 5.0


@contextmanager
def progress_on(stream: TextIO, title: str) -> Iterator[Callable[[Progress], None]]:
    """Print the title at once, then how the search goes while the block runs."""
    live = stream.isatty()
    with suppress(OSError):
        print(title, file=stream, flush=True)
    lines = _Lines(stream, live=live, pause=_LIVE_SECONDS if live else _PLAIN_SECONDS)
    try:
        yield lines.show
    finally:
        lines.end()


@dataclass
class _Lines:
    """What has been printed so far."""

    stream: TextIO
    live: bool
    pause: float
    last: float = 0.0
    shown: bool = False

    def show(self, progress: Progress) -> None:
        """Print where the search is, if it is time to."""
        if progress.seconds - self.last < self.pause and not progress.deciding:
            return
        self.last, self.shown = progress.seconds, True
        text = line_of(progress)
        with suppress(OSError):  # a full disk behind the stream is no reason to lose the search
            if self.live:
                print(f"\r\x1b[K{text}", end="", file=self.stream, flush=True)
            else:
                print(text, file=self.stream, flush=True)

    def end(self) -> None:
        """Leave the live line clear for what follows."""
        if self.live and self.shown:
            with suppress(OSError):
                print("\r\x1b[K", end="", file=self.stream, flush=True)


def line_of(progress: Progress) -> str:
    """`1,234 states, 5,678 a second, 90 waiting, depth 12, perhaps 1,500 in all, 45 MiB, 3 s`."""
    if progress.candidates is not None:
        return (
            f"initial states: {progress.states:,} found, {progress.candidates:,} candidates looked "
            f"at, {progress.seconds:.0f} s"
        )
    if progress.deciding:
        return f"{progress.states:,} states, {progress.seconds:.0f} s; deciding {progress.deciding}"
    rate = progress.states / progress.seconds if progress.seconds > 0 else 0.0
    expected = progress.expected
    end = "still growing" if expected is None else f"perhaps {_rounded(expected)} in all"
    return (
        f"{progress.states:,} states, {rate:,.0f} a second, {progress.frontier:,} waiting, "
        f"depth {progress.depth}, {end}, {progress.memory / 2**20:,.0f} MiB, "
        f"{progress.seconds:.0f} s"
    )


def _rounded(number: int) -> str:
    """Two digits that mean something."""
    return f"{round(number, 2 - len(str(number))):,}"
