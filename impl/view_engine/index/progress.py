"""How far an index is: which partitions lack changes of the source, or are in a history that it lost."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.impl.view_engine.defects import Defect, has
from stagewright.impl.view_engine.documents.changes import Position
from stagewright.impl.view_engine.file.header import IndexHeader


def is_behind(header: IndexHeader, partition: int, now: Position) -> bool:
    """Whether the source has changes of a partition that the index lacks, or another history."""
    seq = header.seqs[partition]
    log = header.partition_versions.get(partition, ())
    return seq != now.seq or (seq > 0 and bool(log) and log[0][0] != now.uuid)


def has_reached(
    header: IndexHeader, wanted: Mapping[int, Position], *, passive: bool = False
) -> bool:
    """Whether each active indexable partition, or passive one too, is indexed up to what is wanted.

    Pointwise, and in the same history: a larger number in a history that was lost is not enough.
    """
    if has(Defect.positions_compare_as_lists):
        return _as_lists(header, wanted)
    of = header.active | (header.passive if passive else 0)
    return all(
        seq >= wanted[partition].seq and _in_history(header, partition, wanted[partition].uuid)
        for partition, seq in header.seqs.items()
        if of >> partition & 1 and partition in wanted
    )


def still_wanted(
    wanted: Mapping[int, Position], now: Mapping[int, Position]
) -> Mapping[int, Position]:
    """What is wanted of each partition; of one whose history was left meanwhile, what it has now.

    No index will ever be in the old history again: who waits for that waits for ever.
    """
    left = {p: now[p] for p, at in wanted.items() if p in now and now[p].uuid != at.uuid}
    return {**wanted, **left} if left else wanted


def _as_lists(header: IndexHeader, wanted: Mapping[int, Position]) -> bool:
    """Erlang's order of lists: the first partition that differs decides."""
    mine = [p for p in sorted(header.seqs) if p in wanted and header.active >> p & 1]
    return [header.seqs[p] for p in mine] >= [wanted[p].seq for p in mine]


def changes_left(header: IndexHeader, now: Mapping[int, Position]) -> int:
    """How many changes of the source the index does not have yet."""
    return sum(max(now[p].seq - seq, 0) for p, seq in header.seqs.items() if p in now)


def _in_history(header: IndexHeader, partition: int, uuid: bytes) -> bool:
    log = header.partition_versions.get(partition, ())
    return not log or log[0][0] == uuid
