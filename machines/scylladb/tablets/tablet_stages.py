"""The tables of tablet migration: stages with their selectors, kinds of transition, releases.

Sources: design document 001 (topology-over-raft, 2023-07), section "Tablet migration"; ScyllaDB's
`get_selector_for_writes/reads` and the transition table of its tablet coordinator for the releases.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from stagewright.spec import Profile, States, equivalent_value


class Replicas(Enum):
    """Which replica set of a tablet a request, or the storage layer, uses."""

    previous = auto()  # the replicas before the migration
    both = auto()
    next = auto()  # the new replicas


class Run(Enum):
    """What the topology coordinator runs on a replica while a tablet is in a stage."""

    nothing = auto()
    repair = auto()
    streaming = auto()
    cleanup = auto()


PREVIOUS, BOTH, NEXT = Replicas.previous, Replicas.both, Replicas.next


class Stage(States):
    """The stages of a tablet transition; `none` is a tablet at rest.

    "Stage" decides what the coordinator does for the tablet before it can move on, and which replicas
    requests use (001, "Tablet migration").
    """

    # fmt: off
    #                                     writes    reads     storage   barrier  action
    none                                 = PREVIOUS, PREVIOUS, PREVIOUS, False, Run.nothing
    allow_write_both_read_old            = PREVIOUS, PREVIOUS, BOTH,     True,  Run.nothing
    write_both_read_old                  = BOTH,     PREVIOUS, BOTH,     True,  Run.nothing
    rebuild_repair                       = BOTH,     PREVIOUS, BOTH,     False, Run.repair
    streaming                            = BOTH,     PREVIOUS, BOTH,     False, Run.streaming
    write_both_read_new                  = BOTH,     NEXT,     BOTH,     True,  Run.nothing
    use_new                              = NEXT,     NEXT,     BOTH,     True,  Run.nothing
    cleanup                              = NEXT,     NEXT,     BOTH,     False, Run.cleanup
    end_migration                        = NEXT,     NEXT,     NEXT,     True,  Run.nothing
    write_both_read_old_fallback_cleanup = BOTH,     PREVIOUS, BOTH,     True,  Run.nothing
    cleanup_target                       = PREVIOUS, PREVIOUS, BOTH,     True,  Run.cleanup
    revert_migration                     = PREVIOUS, PREVIOUS, PREVIOUS, True,  Run.nothing
    repair                               = PREVIOUS, PREVIOUS, PREVIOUS, True,  Run.repair
    end_repair                           = PREVIOUS, PREVIOUS, PREVIOUS, True,  Run.nothing
    # fmt: on

    def __init__(
        self, writes: Replicas, reads: Replicas, storage: Replicas, barrier: bool, action: Run
    ) -> None:
        self.writes = writes
        self.reads = reads
        self.storage = storage  # replicas with storage allocated once they have learned the stage
        self.barrier = barrier  # a barrier may run after the stage is committed, before the next
        self.action = action


HARMLESS_IN_STAGES = (
    equivalent_value(
        Stage.cleanup,
        lambda stage: stage.storage,
        Replicas.next,
        because="no request uses the leaving replica any more: its storage may go with its rows",
    ),
    equivalent_value(
        Stage.repair,
        lambda stage: stage.storage,
        Replicas.both,
        because="a repair adds no replica: both sets are one",
    ),
    equivalent_value(
        Stage.repair,
        lambda stage: stage.barrier,
        because="a failed repair may be tried again instead of being drained",
    ),
)
"""Entries of the table that could be others, wherever it is used."""


class Kind(States):
    """The kinds of tablet transition, and which replicas they have beside the ones that stay."""

    # fmt: off
    #                     leaving pending
    migration           = True,  True
    intranode_migration = True,  True  # between two shards of one node: its sharder writes to both
    rebuild             = False, True  # a replica more
    rebuild_v2          = False, True  # the same, with a repair before streaming
    repair              = False, False
    # fmt: on

    def __init__(self, leaving: bool, pending: bool) -> None:
        self.leaving = leaving
        self.pending = pending


HARMLESS_BETWEEN_NODES = (
    equivalent_value(
        (Kind.intranode_migration, Kind.repair),
        lambda kind: kind.leaving,
        because="no replica leaves its node here",
    ),
    equivalent_value(
        (Kind.intranode_migration, Kind.repair),
        lambda kind: kind.pending,
        because="no replica comes to a node here",
    ),
)
"""The same where replicas are nodes."""


class Role(Enum):
    """What a replica is to a transition."""

    leaving = auto()  # in the old replica set only
    pending = auto()  # in the new replica set only
    staying = auto()  # in both


@dataclass(frozen=True)
class Release(Profile):
    """What a version of ScyllaDB, or the design document, does about a tablet migration."""

    rollback: bool  # failures lead to cleanup_target and revert_migration (6.0)
    end_migration: bool  # cleanup is an action, followed by a stage of its own (5.4)
    sessions: bool  # streaming is guarded by a session in group0 (5.4)
    repair: bool  # repair, end_repair (2025.1) and rebuild_repair (2025.2)
    reverts_at_once: (
        bool  # from allow_write_both_read_old, without cleanup_target (6.0 to early 2025)
    )
    fallback_cleanup: bool  # write_both_read_old_fallback_cleanup (2026.2)
    barrier_before_target_cleanup: bool  # in cleanup_target (2025-12)


# fmt: off
#                                        rollb. end_m. sess.  repair at_once fallb. barrier
SEED          = Release("seed",          False, False, False, False, False, False, False)
SCYLLA_6_0    = Release("scylla-6.0",    True,  True,  True,  True,  True,  False, False)
SCYLLA_2025_4 = Release("scylla-2025.4", True,  True,  True,  True,  False, False, False)
SCYLLA_2026_2 = Release("scylla-2026.2", True,  True,  True,  True,  False, True,  True)
# fmt: on
