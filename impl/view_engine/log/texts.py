"""The records of `couchdb.log` as text: what Couchbase's group process says of the partitions of an index.

Each is made of headers as they were committed, not of what was asked for: a header that is wrong is logged as it is.
Sequence numbers stand where Couchbase has them, as `[{0,17},{4,3}]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stagewright.impl.view_engine.file.header import IndexHeader, Pending
from stagewright.impl.view_engine.file.masks import partitions_of


def updated(before: IndexHeader, after: IndexHeader, replicas: Iterable[int]) -> str:
    """The states of all partitions before a request, or a pending transition, and after it."""
    lines = ["partition states updated"]
    for state in ("active", "passive", "cleanup"):
        for when, header in (("before", before), ("after", after)):
            mask: int = getattr(header, state)
            lines.append(_line(f"{state} partitions {when}:", condensed(partitions_of(mask))))
    lines.append(_line("unindexable partitions:", with_seqs(before.unindexable_seqs)))
    there = condensed(replicas)
    lines += [_line(f"replica partitions {when}:", there) for when in ("before", "after")]
    for when, header in (("before", before), ("after", after)):
        moving = condensed(header.replicas_on_transfer)
        lines.append(_line(f"replicas on transfer {when}:", moving))
    for when, header in (("before", before), ("after", after)):
        lines += [f"pending transition {when}:", *_pending(header.pending)]
    return "\n".join([*lines, ""])


def applying(pending: Pending) -> str:
    """What was pending for partitions that are clean by now, and is done with the next record."""
    lists = (pending.active, pending.passive, pending.unindexable)
    names = ("Active partitions: ", "Passive partitions:", "Unindexable:       ")
    lines = [f"  {name} {plain(ids)}" for name, ids in zip(names, lists, strict=True)]
    return "\n".join(["applying state transitions from pending transition:", *lines, ""])


def marked(before: IndexHeader, after: IndexHeader, how: str) -> str:
    """Partitions are unindexable (`how` is "added"), or are so no more ("removed")."""
    return "\n".join(
        [
            f"unindexable partitions {how}.",
            f"Previous set:         {with_seqs(before.unindexable_seqs)}",
            f"New set:              {with_seqs(after.unindexable_seqs)}",
            f"Previous pending set: {condensed(before.pending.unindexable)}",
            f"New pending set:      {condensed(after.pending.unindexable)}",
            "",
        ]
    )


def configured(signature: str, header: IndexHeader) -> str:
    """An index begins, in a new file."""
    return "\n".join(
        [
            f"signature `{signature}', configured with:",
            f"{header.num_partitions} partitions",
            "replica support",
            f"initial active partitions {condensed(partitions_of(header.active))}",
            f"initial passive partitions {condensed(partitions_of(header.passive))}",
        ]
    )


def states_found(header: IndexHeader) -> str:
    """The states that a process finds in the file of its index."""
    lists = {
        state: condensed(partitions_of(getattr(header, state)))
        for state in ("active", "passive", "cleanup")
    }
    lines = [f"{state} partitions:      {ids}" for state, ids in lists.items()]
    return "\n".join([*lines, f"unindexable partitions: {with_seqs(header.unindexable_seqs)}", ""])


def cleaned(before: IndexHeader, after: IndexHeader, removed: int, seconds: float) -> str:
    """The cleaner is done."""
    lines = [f"Removed {removed} values from the index in {seconds:.3f} seconds"]
    for state in ("active", "passive", "cleanup"):
        for when, header in (("before", before), ("after", after)):
            mask: int = getattr(header, state)
            lines.append(_line(f"{state} partitions {when}:", condensed(partitions_of(mask))))
    return "\n".join([*lines, ""])


def rolled_back(before: IndexHeader, after: IndexHeader) -> str:
    """Up to where partitions are indexed before a rollback and after it."""
    lists = {
        "indexable partitions before:": before.seqs,
        "indexable partitions after:": after.seqs,
        "unindexable partitions before:": before.unindexable_seqs,
        "unindexable partitions after:": after.unindexable_seqs,
    }
    return "\n".join([*(f"{name:30} {with_seqs(seqs)}" for name, seqs in lists.items()), ""])


def condensed(partitions: Iterable[int]) -> str:
    """Ranges: `[0-3,7]`."""
    ranges: list[list[int]] = []
    for partition in sorted(partitions):
        if ranges and ranges[-1][1] == partition - 1:
            ranges[-1][1] = partition
        else:
            ranges.append([partition, partition])
    return f"[{','.join(str(a) if a == b else f'{a}-{b}' for a, b in ranges)}]"


def plain(partitions: Iterable[int]) -> str:
    """One by one: `[0,1,2,3,7]`."""
    return f"[{','.join(map(str, sorted(partitions)))}]"


def with_seqs(seqs: Mapping[int, int]) -> str:
    """`[{0,17},{4,3}]`: partitions, and up to where each is indexed."""
    return f"[{','.join(f'{{{p},{seq}}}' for p, seq in sorted(seqs.items()))}]"


def _pending(pending: Pending) -> list[str]:
    lists = (pending.active, pending.passive, pending.unindexable)
    names = ("active:     ", "passive:    ", "unindexable:")
    return [f"  {name} {condensed(ids)}" for name, ids in zip(names, lists, strict=True)]


def _line(name: str, ids: str) -> str:
    return f"{name:28} {ids}"
