"""State ids: a position in the log, with a time UUID that identifies the command that stands there."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

_TICKS = 10  # of a time UUID in a microsecond
_EPOCH = 0x01B21DD213814000  # ticks from 1582-10-15, where a time UUID begins, to 1970
_NODES = (1 << 48) - 1
_SEQUENCES = (1 << 14) - 1


@dataclass(frozen=True, slots=True)
class StateId:
    """The state after the command at a position, which no other command can ever take."""

    position: int
    id: UUID

    def __str__(self) -> str:
        return f"{self.position:012d}.{self.id}"

    @classmethod
    def parse(cls, text: str) -> StateId:
        """The inverse of `str`.

        Raises:
            ValueError: the text is no state id.
        """
        position, _, command = text.partition(".")
        return cls(int(position), UUID(command))


EMPTY = StateId(0, UUID(int=0))
"""The state before the first command."""


def id_after(previous: UUID, microseconds: int, node: int, sequence: int) -> UUID:
    """A time UUID later than another one, though the clock (since 1970) may be behind it.

    `node` and `sequence` tell the ids of two writers, or of two lives of one, apart.
    """
    ticks = max(microseconds * _TICKS + _EPOCH, previous.time + 1)
    low, middle, high = ticks & 0xFFFFFFFF, (ticks >> 32) & 0xFFFF, (ticks >> 48) & 0x0FFF
    sequence &= _SEQUENCES
    of_node = node & _NODES
    return UUID(
        fields=(low, middle, high | 0x1000, (sequence >> 8) | 0x80, sequence & 0xFF, of_node)
    )


def microseconds_of(state: UUID) -> int:
    """When a time UUID was made, since 1970."""
    return (state.time - _EPOCH) // _TICKS
