"""Where a command writes: its two streams, the terminal of people, and the directories that users name."""

from __future__ import annotations

import io
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

PLAIN_WIDTH = 100  # columns, where the output is no terminal
_FILLED = re.compile(r" +(?=\n)")


def prepare_streams() -> None:
    """Let both streams take any text: closed ones drop it, others escape what they cannot encode."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open to the end
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open to the end
    for stream in (sys.stdout, sys.stderr):
        lossless = stream.errors in ("strict", "surrogateescape")
        if lossless and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def silence_output() -> None:
    """Where a stream takes nothing any more, let Python's last flush of it go nowhere: it would exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, stream.fileno())
            os.close(devnull)


def console() -> Console:
    """The terminal at its width; plain text of 100 columns elsewhere, and no styles with NO_COLOR."""
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))
    terminal = sys.stdout.isatty()
    return Console(
        file=None if terminal else cast("IO[str]", _Trimmed(sys.stdout)),
        width=None if terminal else PLAIN_WIDTH,
        highlight=False,
        color_system=None if plain else "auto",
    )


class _Trimmed(io.TextIOBase):
    """What is no terminal, written to without the blanks with which tables fill their lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of the stream itself."""
        return self._stream.encoding

    def write(self, text: str, /) -> int:
        """Write whole lines without the blanks at their ends."""
        self._stream.write(_FILLED.sub("", text))
        return len(text)

    def flush(self) -> None:
        """Flush the stream itself."""
        self._stream.flush()


def to_copy(text: str) -> Text:
    """A line that people copy, as a command or a path: it is not broken. To be printed with `crop=False`."""
    from rich.text import Text

    return Text(text, style="dim", no_wrap=True, overflow="ignore")


def check_directory(flag: str, directory: Path | None) -> None:
    """Refuse a directory that cannot be made or written to before any work is done for it.

    Raises:
        InputError: names the flag and what is in the way.
    """
    if directory is None:
        return
    from stagewright.spec.errors import InputError

    there = next(place for place in (directory, *directory.absolute().parents) if place.exists())
    if not there.is_dir():
        raise InputError(
            f"{flag} {directory}: {there} is not a directory", help="name another directory"
        )
    if not takes_files(there):
        raise InputError(
            f"{flag} {directory}: {there} cannot be written to", help="name another directory"
        )


def takes_files(directory: Path) -> bool:
    """Whether a file can be made there: permissions alone do not tell, nor do they bind every user."""
    try:
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False
