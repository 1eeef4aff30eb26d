"""Frames: four bytes of length, most significant first, and so many bytes."""

from __future__ import annotations

from stagewright.impl.processes.errors import WireError

MOST = 256 << 20  # bytes in a frame: more than the largest page of the largest rows
MOST_OF_A_STRANGER = 1 << 10

_HEAD = 4


def framed(body: bytes) -> bytes:
    """A frame with this in it."""
    if len(body) > MOST:
        raise WireError(f"{len(body)} bytes are too long for a frame", help="send them in parts")
    return len(body).to_bytes(_HEAD, "big") + body


class Frames:
    """Cuts what arrives into frames. Until `trusts` is set, no frame may be longer than a greeting."""

    def __init__(self) -> None:
        self.trusts = False
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The frames that are complete now.

        Raises:
            WireError: one is said to be longer than a frame may be.
        """
        self._buffer += data
        found: list[bytes] = []
        start = 0
        with memoryview(self._buffer) as there:  # of a large frame there is one copy more, not two
            while len(there) - start >= _HEAD:
                length = int.from_bytes(there[start : start + _HEAD], "big")
                if length > (MOST if self.trusts else MOST_OF_A_STRANGER):
                    raise WireError(
                        f"a frame of {length} bytes", help="speak this program's protocol"
                    )
                if len(there) - start - _HEAD < length:
                    break
                start += _HEAD
                found.append(bytes(there[start : start + length]))
                start += length
                if not self.trusts:
                    break  # what follows is checked when the greeting is
        del self._buffer[:start]
        return found
