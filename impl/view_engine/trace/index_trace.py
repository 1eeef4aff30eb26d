"""What is recorded of one index: from its headers as they were committed, not from what was meant."""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.impl.view_engine.documents.changes import Position
from stagewright.impl.view_engine.file.header import IndexHeader, Root
from stagewright.impl.view_engine.trace.trace import Trace
from stagewright.impl.view_engine.tree.nodes import Pointer

MACHINE = "engine-indexes"


class IndexTrace:
    """Of one group process. Called with the group's lock held, or by its updater."""

    def __init__(self, trace: Trace, index: str) -> None:
        self._trace = trace
        self._entity = f"{trace.node} {index}"
        self._partial: set[int] = set()  # partitions of which the trees have a part of a snapshot

    @property
    def is_kept(self) -> bool:
        """Whether what is recorded goes anywhere."""
        return self._trace.is_kept

    def did(self, action: str, **arguments: bool) -> None:
        """A step whose arguments are known."""
        self._trace.record(MACHINE, self._entity, action, **arguments)

    def committed(self, header: IndexHeader) -> None:
        """A header is in the file."""
        if not self.is_kept:
            return
        rows = 0
        for root in (header.id_root, *header.view_roots):
            rows |= _tree(root).mask
        states = header.active | header.passive | header.cleanup
        pending = (*header.pending.active, *header.pending.passive)
        self.did(
            "write_header",
            listed=not rows & ~states,
            whole=not self._partial,
            waiting=all(header.cleanup >> p & 1 for p in pending),
        )

    def update_started(self) -> None:
        """The updater begins at a whole snapshot."""
        self._partial.clear()
        self.did("start_update")

    def update_ended(self) -> None:
        """What it did after its last header never happened."""
        self._partial.clear()
        self.did("end_update")

    def loaded(self, partition: int, *, whole: bool) -> None:
        """The updater goes on with documents of a partition; `whole`: they are the last ones of a snapshot."""
        if whole:
            self._partial.discard(partition)
        else:
            self._partial.add(partition)

    def replaced(self, all_of_it: bool) -> None:
        """Documents went into the trees, in place of what was there of them, or not of all of it."""
        self.did("write_documents", replaced=all_of_it)

    def went_back(self, partition: int, seq: int, old: IndexHeader, new: IndexHeader) -> None:
        """The index goes back to these sequence numbers as a partition goes back to `seq`."""
        self._partial.clear()
        self.did(
            "go_back",
            old_enough=new.seqs.get(partition, 0) <= seq,
            none_ahead=all(to <= old.seqs.get(p, to) for p, to in new.seqs.items()),
        )

    def switched(self, old: IndexHeader, new: IndexHeader) -> None:
        """A compacted file takes the place of the old one."""
        if not self.is_kept:
            return
        trees = zip((old.id_root, *old.view_roots), (new.id_root, *new.view_roots), strict=True)
        same = all(
            _tree(a).values == _tree(b).values for a, b in trees if not _tree(a).mask & old.cleanup
        )
        numbers = old.seqs.items() <= new.seqs.items()  # what was pending may be new there
        self.did("switch_file", numbers=numbers, rows=same)

    def answered(self, header: IndexHeader, wanted: Mapping[int, Position], *, once: bool) -> None:
        """A query gets the snapshot of a header; of partitions that are indexed it wants these positions."""
        if not self.is_kept:
            return
        behind = [
            p
            for p, seq in header.seqs.items()
            if header.active >> p & 1 and p in wanted and seq < wanted[p].seq
        ]
        self.did("answer", current=not behind, once=once)


def _tree(root: Root | None) -> Pointer:
    return Pointer(b"", 0, 0, b"") if root is None else Pointer(b"", *root)
