"""The file in which `cluster tail` keeps how far it has printed; one process at a time goes on from there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.spec.errors import InputError

if TYPE_CHECKING:
    from stagewright.impl.cdc.consumer import Position


class PositionFile:
    """A file with a position, or none yet."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> Position | None:
        """What was stored last; None: nothing was.

        Raises:
            InputError: the file has something else.
        """
        from stagewright.impl.cdc.consumer import Position

        if not self.path.exists():
            return None
        try:
            return Position.from_json(self.path.read_text("utf-8", errors="replace"))
        except InputError as error:
            problem = f"--position {self.path}: {error.problem}"
            raise InputError(problem, help=f"{error.help}: remove the file") from None

    def store(self, position: Position) -> None:
        """Keep a position; whoever reads the file finds this one or the one before."""
        beside = self.path.with_name(self.path.name + ".new")
        beside.write_text(position.to_json(), "utf-8")
        beside.replace(self.path)


@contextmanager
def position_file(path: Path) -> Iterator[PositionFile]:
    """The file, which nobody else may use meanwhile: of two, each would print what the other has printed.

    Raises:
        InputError: another process uses it.
    """
    from stagewright.impl.processes.held_files import hold

    handle = hold(path.with_name(path.name + ".lock"), str(os.getpid()))
    if handle is None:
        raise InputError(
            f"--position {path}: another `cluster tail` goes on from this file",
            help="end it, or let each have a file of its own",
        )
    try:
        yield PositionFile(path)
    finally:
        os.close(handle)
