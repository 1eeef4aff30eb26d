"""The tables of Couchbase's view engine: the states of a partition in an index, and what to do about them.

Sources: design document 004 (view engine internals), sections "Partition states" and "Queries during
rebalance"; the server's `couch_set_view_group` for the bitmasks of the header and the pending transition.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from stagewright.spec import Entity, Profile, States


class Partition(Entity, scope=2):
    """A partition of the key space (a vBucket)."""


class Seqs(Enum):
    """Which list of an index header has a partition's sequence number."""

    nowhere = auto()
    seqs = auto()  # it is indexed, and moves on
    unindexable_seqs = auto()  # it stays what it was when the partition was paused


class PartitionState(States):
    """What a partition is to an index: the bits of the header that say so, and what follows from them.

    Indexable or unindexable is, says the document, "independent of the state the partition is in"; only
    what is active or passive has something to pause.
    """

    # fmt: off
    #                     abit   pbit   cbit   seq in                 indexed queried
    not_present         = False, False, False, Seqs.nowhere,          False,  False
    active              = True,  False, False, Seqs.seqs,             True,   True
    passive             = False, True,  False, Seqs.seqs,             True,   False
    active_unindexable  = True,  False, False, Seqs.unindexable_seqs, False,  True  # what it has
    passive_unindexable = False, True,  False, Seqs.unindexable_seqs, False,  False
    cleanup             = False, False, True,  Seqs.nowhere,          False,  False  # rows are filtered
    # fmt: on

    def __init__(
        self, abit: bool, pbit: bool, cbit: bool, seq: Seqs, indexed: bool, queried: bool
    ) -> None:
        self.abit = abit
        self.pbit = pbit
        self.cbit = cbit
        self.seq = seq
        self.indexed = indexed
        self.queried = queried


class Role(Enum):
    """What the cluster manager wants a partition to be on a node (`set_state` and its three lists)."""

    none = auto()
    active = auto()
    passive = auto()


@dataclass(frozen=True)
class Engine(Profile):
    """What the design document, or the server's code, does about partitions whose state changes."""

    pending_transition: bool  # a partition still in cleanup is added again only when it is clean
    pauses_first: bool  # an unindexable partition keeps its state until it is indexable again
    pauses_after_backfill: (
        bool  # the old index is paused when the new node has the documents, not before
    )
    stops_updater_for_switch: bool  # a compaction does not wait for it to be done
    lists_wanted_partitions: bool  # a query says which partitions it wants from a node


SEED = Engine("seed", False, False, False, False, False)
COUCHBASE = Engine("couchbase", True, True, True, True, True)
