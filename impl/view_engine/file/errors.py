"""What can be wrong with the file of an index, with the place where it is."""

from __future__ import annotations


class CorruptFileError(Exception):
    """The bytes at a position of an index file are not what the format says.

    `position` is the offset in the file, in bytes; `reason` says what was expected and what is there.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"at byte {position}: {reason}")
        self.position = position
        self.reason = reason


class NoHeaderError(Exception):
    """The file holds no valid header: its creation was never finished, or it is no index file."""
