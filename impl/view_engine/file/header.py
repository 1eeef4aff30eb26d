"""What a header says: which partitions an index has, up to where each is indexed, and the roots."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from stagewright.impl.view_engine.file.chunks import compressed, decompressed
from stagewright.impl.view_engine.file.errors import CorruptFileError
from stagewright.impl.view_engine.file.masks import MASK_BYTES, mask_bytes, partitions_of

LATEST_VERSION = 2
SIGNATURE_BYTES = 16
# (uuid of 8 bytes, from which sequence number), newest first
FailoverLog = tuple[tuple[bytes, int], ...]


class Root(NamedTuple):
    """Where the root of a tree lies, how many bytes the tree has, and its reduction."""

    position: int
    size: int
    reduction: bytes


@dataclass(frozen=True)
class Pending:
    """What partitions in cleanup become when they are clean."""

    active: tuple[int, ...] = ()
    passive: tuple[int, ...] = ()
    unindexable: tuple[int, ...] = ()


@dataclass(frozen=True)
class IndexHeader:
    """One snapshot of an index. Masks are integers (see `masks`), sequence numbers are by partition."""

    signature: bytes
    num_partitions: int
    view_roots: tuple[Root | None, ...]
    id_root: Root | None = None
    active: int = 0
    passive: int = 0
    cleanup: int = 0
    seqs: Mapping[int, int] = field(default_factory=dict)
    unindexable_seqs: Mapping[int, int] = field(default_factory=dict)
    has_replica: bool = False
    replicas_on_transfer: tuple[int, ...] = ()
    pending: Pending = Pending()
    partition_versions: Mapping[int, FailoverLog] = field(default_factory=dict)
    version: int = LATEST_VERSION

    @property
    def tree_bytes(self) -> int:
        """The bytes that the trees of this snapshot have in the file."""
        return sum(root.size for root in (self.id_root, *self.view_roots) if root is not None)


def encode_header(header: IndexHeader) -> bytes:
    """As the original writes it: the signature, then the rest, compressed."""
    if len(header.signature) != SIGNATURE_BYTES:
        raise ValueError(f"a signature has 16 bytes, not {len(header.signature)}")
    parts = [
        struct.pack(">BH", header.version, header.num_partitions),
        mask_bytes(header.active),
        mask_bytes(header.passive),
        mask_bytes(header.cleanup),
        _encode_seqs(header.seqs),
        _encode_root(header.id_root),
        bytes([len(header.view_roots)]),
        *(_encode_root(root) for root in header.view_roots),
        bytes([header.has_replica]),
        _encode_list(header.replicas_on_transfer),
        _encode_list(header.pending.active),
        _encode_list(header.pending.passive),
        _encode_list(header.pending.unindexable),
        _encode_seqs(header.unindexable_seqs),
    ]
    if header.version >= LATEST_VERSION:
        parts.append(_encode_versions(header.partition_versions))
    return header.signature + compressed(b"".join(parts))


def decode_header(body: bytes, position: int = 0) -> IndexHeader:
    """The inverse of `encode_header`; raises CorruptFileError, which names `position`."""
    if len(body) <= SIGNATURE_BYTES:
        raise CorruptFileError(position, "a header is longer than its signature")
    reader = _Reader(decompressed(body[SIGNATURE_BYTES:], position), position)
    version = reader.number(1)
    if not 1 <= version <= LATEST_VERSION:
        raise CorruptFileError(position, f"version {version} of the header is not known")
    header = IndexHeader(
        version=version,
        signature=body[:SIGNATURE_BYTES],
        num_partitions=reader.number(2),
        active=reader.number(MASK_BYTES),
        passive=reader.number(MASK_BYTES),
        cleanup=reader.number(MASK_BYTES),
        seqs=reader.seqs(),
        id_root=reader.root(),
        view_roots=tuple(reader.root() for _ in range(reader.number(1))),
        has_replica=reader.number(1) != 0,
        replicas_on_transfer=reader.list(),
        pending=Pending(reader.list(), reader.list(), reader.list()),
        unindexable_seqs=reader.seqs(),
        partition_versions=reader.versions() if version >= LATEST_VERSION else {},
    )
    reader.end()
    return header


def contradictions(header: IndexHeader) -> list[str]:
    """What a header says that cannot all be so; empty for every header that the engine writes."""
    found: list[str] = []
    for one, other, mask in (
        ("active", "passive", header.active & header.passive),
        ("active", "cleanup", header.active & header.cleanup),
        ("passive", "cleanup", header.passive & header.cleanup),
    ):
        if mask:
            found.append(f"partitions {partitions_of(mask)} are {one} and {other}")
    indexed, frozen = set(header.seqs), set(header.unindexable_seqs)
    if both := sorted(indexed & frozen):
        found.append(f"partitions {both} are indexable and unindexable")
    present = set(partitions_of(header.active | header.passive))
    if missing := sorted(present - indexed - frozen):
        found.append(f"partitions {missing} have no sequence number")
    if extra := sorted((indexed | frozen) - present):
        found.append(
            f"partitions {extra} have a sequence number but are neither active nor passive"
        )
    masks = header.active | header.passive | header.cleanup
    if masks >> header.num_partitions:
        found.append(f"a partition is beyond the {header.num_partitions} of the index")
    return found


def _encode_seqs(seqs: Mapping[int, int]) -> bytes:
    parts = [struct.pack(">H", len(seqs))]
    parts += (
        part.to_bytes(2, "big") + seq.to_bytes(6, "big") for part, seq in sorted(seqs.items())
    )
    return b"".join(parts)


def _encode_root(root: Root | None) -> bytes:
    if root is None:
        return b"\0\0"
    body = root.position.to_bytes(6, "big") + root.size.to_bytes(6, "big") + root.reduction
    return struct.pack(">H", len(body)) + body


def _encode_list(partitions: tuple[int, ...]) -> bytes:
    return struct.pack(f">{len(partitions) + 1}H", len(partitions), *sorted(partitions))


def _encode_versions(versions: Mapping[int, FailoverLog]) -> bytes:
    parts = [struct.pack(">H", len(versions))]
    for partition, log in sorted(versions.items()):
        parts.append(struct.pack(">HH", partition, len(log)))
        parts += (uuid + seq.to_bytes(8, "big") for uuid, seq in log)
    return b"".join(parts)


class _Reader:
    """Takes the fields of a header one after the other."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._at = 0
        self._position = position

    def bytes(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) < size:
            raise CorruptFileError(self._position, "the header is too short for what it counts")
        self._at += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.bytes(size), "big")

    def seqs(self) -> dict[int, int]:
        return {self.number(2): self.number(6) for _ in range(self.number(2))}

    def list(self) -> tuple[int, ...]:
        return tuple(self.number(2) for _ in range(self.number(2)))

    def root(self) -> Root | None:
        size = self.number(2)
        if not size:
            return None
        if size < 12:
            raise CorruptFileError(
                self._position, f"a root of {size} bytes has no room for a pointer"
            )
        return Root(self.number(6), self.number(6), self.bytes(size - 12))

    def versions(self) -> dict[int, FailoverLog]:
        found: dict[int, FailoverLog] = {}
        for _ in range(self.number(2)):
            partition = self.number(2)
            found[partition] = tuple((self.bytes(8), self.number(8)) for _ in range(self.number(2)))
        return found

    def end(self) -> None:
        if self._at != len(self._data):
            raise CorruptFileError(self._position, "the header is longer than what it counts")
