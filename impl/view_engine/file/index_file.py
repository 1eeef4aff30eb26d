"""The append-only file of one index: chunks are appended, a header makes them part of a snapshot.

Nothing that was written is ever overwritten. `commit` syncs the nodes, writes the header and syncs
again: a header that is found after a crash has all its nodes.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

from stagewright.impl.view_engine.file.chunks import (
    BLOCK,
    HEADER_BLOCK,
    chunks,
    header_blocks,
    read_chunk,
    read_chunks,
    read_header,
)
from stagewright.impl.view_engine.file.disk import Disk
from stagewright.impl.view_engine.file.errors import CorruptFileError, NoHeaderError
from stagewright.impl.view_engine.file.header import IndexHeader, decode_header, encode_header

_COMPRESSED_TOGETHER = 64  # chunks
WRITE_SIZE = 1 << 20  # bytes: smaller appends are gathered
NODES_KEPT = 2048  # decoded nodes: a position never changes its content, so none gets stale

_Node = TypeVar("_Node")


@dataclass(frozen=True)
class Snapshot:
    """A header and where it stands: everything below it stays readable as long as the file is open."""

    position: int
    header: IndexHeader


class NodeCache(Generic[_Node]):
    """The nodes that were decoded last, by position; safe for several threads."""

    def __init__(self, size: int = NODES_KEPT) -> None:
        self._size = size
        self._nodes: OrderedDict[int, _Node] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, position: int) -> _Node | None:
        with self._lock:
            node = self._nodes.get(position)
            if node is not None:
                self._nodes.move_to_end(position)
            return node

    def get_all(self, positions: Iterable[int]) -> list[_Node | None]:
        """Those of several positions; they count as old as they were."""
        with self._lock:
            return [*map(self._nodes.get, positions)]

    def keep(self, position: int, node: _Node) -> None:
        with self._lock:
            self._nodes[position] = node
            if len(self._nodes) > self._size:
                self._nodes.popitem(last=False)


class IndexFile:
    """Appends chunks and headers to a disk, and reads them; one writer, any number of readers."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.inner_nodes: NodeCache[object] = NodeCache()
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._written = _next_block(disk.size())  # what a crash left behind stays outside
        self._close_lock = threading.Lock()
        self._users = 1

    @property
    def end(self) -> int:
        """Where the next chunk goes."""
        return self._written + self._pending_bytes

    def append(self, payload: bytes) -> tuple[int, int]:
        """Append a chunk; gives its position and its size in the file, in bytes."""
        [place] = self.append_many([payload])
        return place

    def append_many(self, payloads: Iterable[bytes]) -> list[tuple[int, int]]:
        """Append several chunks; gives position and size in the file of each, in bytes."""
        places: list[tuple[int, int]] = []
        waiting = iter(payloads)
        while together := [*islice(waiting, _COMPRESSED_TOGETHER)]:
            data, made = chunks(together, self.end)
            places += made
            self._pending.append(data)
            self._pending_bytes += len(data)
            if self._pending_bytes >= WRITE_SIZE:
                self.flush()
        return places

    def flush(self) -> None:
        """Hand what was gathered to the disk; does not sync."""
        if self._pending:
            self.disk.write(self._written, b"".join(self._pending))
            self._written += self._pending_bytes
            self._pending, self._pending_bytes = [], 0

    def commit(self, header: IndexHeader) -> Snapshot:
        """Make all that was appended durable, then the header; after the return it is acknowledged."""
        self.flush()
        self.disk.sync()
        position = _next_block(self._written)
        data = header_blocks(encode_header(header))
        self.disk.write(position, data)
        self._written = position + len(data)
        self.disk.sync()
        return Snapshot(position, header)

    def read(self, position: int) -> bytes:
        """The payload of a chunk; raises CorruptFileError."""
        if position >= self._written and self._pending:
            self.flush()
        return read_chunk(self.disk.read, position)

    def read_many(self, places: Sequence[tuple[int, int]]) -> list[bytes]:
        """The payloads of several chunks, by position and size in the file, in the order given.

        Those that lie close together come with one call. Raises CorruptFileError.
        """
        found: dict[int, bytes] = {}
        for first, last, near in _spans(places):
            if last > self._written and self._pending:
                self.flush()
            stored = self.disk.read(first, last - first)
            for position, payload in zip(near, read_chunks(stored, first, near), strict=True):
                if payload is None:  # the size may be what is wrong
                    payload = read_chunk(self.disk.read, position)
                found[position] = payload
        return [found[position] for position, _ in places]

    def last_snapshot(self) -> Snapshot:
        """The last valid header, looked for from the end backwards; raises NoHeaderError."""
        for snapshot in self.snapshots():
            return snapshot
        raise NoHeaderError("no valid header from the end of the file to its start")

    def snapshots(self) -> Iterator[Snapshot]:
        """All valid headers, the newest first. Blocks that only look like a header are passed over."""
        for position in header_positions(self.disk):
            try:
                header = decode_header(read_header(self.disk.read, position), position)
            except CorruptFileError:
                continue
            yield Snapshot(position, header)

    def hold(self) -> None:
        """Keep the file open for one more user, who calls `close` in the end."""
        with self._close_lock:
            if not self._users:
                raise ValueError("the file is closed")
            self._users += 1

    def close(self) -> None:
        """Closes the disk when the last user is gone; what was not committed is dropped."""
        with self._close_lock:
            self._users -= 1
            if self._users == 0:
                self.disk.close()


def _spans(
    places: Sequence[tuple[int, int]],
) -> Iterator[tuple[int, int, list[int]]]:
    """Chunks that lie close together: from where, to where, and the position of each."""
    near: list[int] = []
    first = last = 0
    for position, size in sorted(places):
        if near and (position > last + BLOCK or position - first > WRITE_SIZE):
            yield first, last, near
            near = []
        if not near:
            first = last = position
        near.append(position)
        last = max(last, position + size)
    if near:
        yield first, last, near


def header_positions(disk: Disk) -> Iterator[int]:
    """The blocks that say that a header starts in them, from the end backwards."""
    for position in range((disk.size() - 1) // BLOCK * BLOCK, -1, -BLOCK):
        if disk.read(position, 1) == HEADER_BLOCK:
            yield position


def _next_block(position: int) -> int:
    return position + -position % BLOCK
