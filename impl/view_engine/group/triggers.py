"""When an index is updated, cleaned and compacted by itself."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from stagewright.impl.view_engine.group.current import IndexNotReadyError
from stagewright.impl.view_engine.group.group import Group
from stagewright.impl.view_engine.index.compactor import CompactionStoppedError


@dataclass(frozen=True)
class Triggers:
    """The thresholds, as the original's cluster manager has them."""

    interval: float = 5.0  # seconds between two looks
    changes: int = 5000  # update from this many changes on
    fragmentation: float = 0.3  # compact from this share of the file on that no tree uses …
    file_size: int = 1 << 20  # … if the file has at least as many bytes


def look_after(group: Group, triggers: Triggers) -> list[str]:
    """Do what is due for one index; gives what was done."""
    done: list[str] = []
    with suppress(IndexNotReadyError, CompactionStoppedError):
        if group.pending_changes() >= triggers.changes:
            group.trigger()
            done.append("update")
        if group.header.cleanup:
            group.clean_up()
            done.append("cleanup")
        if (
            group.file_size() >= triggers.file_size
            and group.fragmentation() >= triggers.fragmentation
        ):
            group.compact()
            done.append("compaction")
    return done
