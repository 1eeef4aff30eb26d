"""The stages that a change of a tablet's replicas goes through, with their selectors.

They are those of `tablet_stages.py` without what happens to a transition whose nodes are gone.
"""

from __future__ import annotations

from enum import Enum, auto

from stagewright.spec import States


class Replicas(Enum):
    """Which replica set a request uses."""

    previous = auto()
    both = auto()
    next = auto()


PREVIOUS, BOTH, NEXT = Replicas.previous, Replicas.both, Replicas.next


class Stage(States):
    """The stages that a change of the replicas goes through (`tablet_stages.py` has them all)."""

    # fmt: off
    #                           writes    reads
    none                      = PREVIOUS, PREVIOUS
    allow_write_both_read_old = PREVIOUS, PREVIOUS
    write_both_read_old       = BOTH,     PREVIOUS
    rebuild_repair            = BOTH,     PREVIOUS
    streaming                 = BOTH,     PREVIOUS
    write_both_read_new       = BOTH,     NEXT
    use_new                   = NEXT,     NEXT
    cleanup                   = NEXT,     NEXT
    end_migration             = NEXT,     NEXT
    cleanup_target            = PREVIOUS, PREVIOUS
    revert_migration          = PREVIOUS, PREVIOUS
    # fmt: on

    def __init__(self, writes: Replicas, reads: Replicas) -> None:
        self.writes = writes
        self.reads = reads


BEFORE = {
    Stage.none: {Stage.end_migration, Stage.revert_migration},
    Stage.allow_write_both_read_old: {Stage.none},
    Stage.write_both_read_old: {Stage.allow_write_both_read_old},
    Stage.rebuild_repair: {Stage.write_both_read_old},
    Stage.streaming: {Stage.write_both_read_old, Stage.rebuild_repair},
    Stage.write_both_read_new: {Stage.write_both_read_old, Stage.rebuild_repair, Stage.streaming},
    Stage.use_new: {Stage.write_both_read_new},
    Stage.cleanup: {Stage.use_new},
    Stage.end_migration: {Stage.use_new, Stage.cleanup},
    Stage.cleanup_target: {
        Stage.allow_write_both_read_old,
        Stage.write_both_read_old,
        Stage.rebuild_repair,
        Stage.streaming,
    },
    Stage.revert_migration: {Stage.cleanup_target},
}
"""Stages that nodes may still be in when one is committed: those since the last barrier."""
