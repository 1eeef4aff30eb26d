"""Which state an index goes back to when a partition of its source lost changes (a failover)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from stagewright.impl.view_engine.defects import Defect, has
from stagewright.impl.view_engine.documents.changes import RollbackError, rollback_point
from stagewright.impl.view_engine.file.header import FailoverLog, IndexHeader
from stagewright.impl.view_engine.file.index_file import Snapshot


def rolled_back(
    now: IndexHeader,
    snapshots: Iterable[Snapshot],
    rollback: RollbackError,
    logs: Mapping[int, FailoverLog],
) -> IndexHeader:
    """The trees of the newest snapshot in which the partition is old enough; else no trees at all.

    `snapshots` come newest first; `logs` are the source's, of each indexable partition. Partitions keep
    the states that they have now; what the old snapshot has of others is to be cleaned up.
    """
    if has(Defect.rollback_keeps_the_trees):
        return replace(now, partition_versions={})
    old = _old_enough(now, snapshots, rollback, logs)
    was: dict[int, int] = {}
    extra = 0
    versions: Mapping[int, FailoverLog] = {}
    mine = now.active | now.passive
    if old is not None:
        was = {**old.seqs, **old.unindexable_seqs}
        extra = (old.active | old.passive) & ~mine
        if has(Defect.rollback_forgets_what_was_there):
            extra = 0
        versions = {p: log for p, log in old.partition_versions.items() if mine >> p & 1}
    return replace(
        now,
        id_root=None if old is None else old.id_root,
        view_roots=(None,) * len(now.view_roots) if old is None else old.view_roots,
        seqs={p: was.get(p, 0) for p in now.seqs},
        unindexable_seqs={p: was.get(p, 0) for p in now.unindexable_seqs},
        cleanup=now.cleanup | extra,
        partition_versions=versions,
    )


def _old_enough(
    now: IndexHeader,
    snapshots: Iterable[Snapshot],
    rollback: RollbackError,
    logs: Mapping[int, FailoverLog],
) -> IndexHeader | None:
    for snapshot in snapshots:
        old = snapshot.header
        enough = old.seqs.get(rollback.partition, rollback.seq + 1) <= rollback.seq
        if enough and not old.cleanup and _leads_back(old, now, logs):
            return old
    return None


def _leads_back(old: IndexHeader, now: IndexHeader, logs: Mapping[int, FailoverLog]) -> bool:
    """Whether no partition of an older snapshot is ahead of now, or in a history that was lost.

    Otherwise going back for one partition would bring back what another one had to leave.
    """
    return has(Defect.rollback_looks_at_one_partition) or all(
        old.seqs.get(p, 0) <= seq
        and rollback_point(old.seqs.get(p, 0), old.partition_versions.get(p, ()), logs[p])
        == old.seqs.get(p, 0)
        for p, seq in now.seqs.items()
    )
