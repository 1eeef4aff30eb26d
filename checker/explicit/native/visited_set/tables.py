"""Generates the tables of visited states: exact, in buckets of one cache line, open to several workers.

Three kinds. A *bitmap* has one bit for every state that there could be: for few enough bits nothing is as
small or as fast. A table of *quotients* suits states of one word: the hash is a permutation of the state's
bits, its top bits are the home bucket, and a slot holds the remaining ones with the distance from home:
the state itself need not be stored (Knuth, TAOCP 3, exercise 6.4-13; Cleary 1984). A table of *places* suits
every state: a slot holds 32 bits of the hash and the state's place in the log, where it is compared.

A free slot is 0 and the slots of a bucket are filled from the left, by one compare-and-swap.
"""

from __future__ import annotations

from stagewright.checker.explicit.native.visited_set.bitmap import bitmap_source
from stagewright.checker.explicit.native.visited_set.buckets import Storage, TableKind
from stagewright.checker.explicit.native.visited_set.places import hash_source, places_source
from stagewright.checker.explicit.native.visited_set.quotients import (
    permutation_source,
    quotients_source,
)


def table_source(kind: TableKind, *, shared: bool) -> str:
    """LLVM text of the functions of one kind; `shared`: several workers use the table at once.

    `hash(words...)`, `insert(shared, spare, shape..., hash, words...)`: 1 new, 0 known, -1 full; for
    tables of places also `find(shared, shape..., hash, words...)`, the place in the log or -1.
    """
    match kind.storage:
        case Storage.BITMAP:
            return _DECLARED + bitmap_source(shared=shared)
        case Storage.QUOTIENTS:
            return _DECLARED + permutation_source(kind) + quotients_source(kind, shared=shared)
        case Storage.PLACES:
            return _DECLARED + hash_source(kind.words) + places_source(kind, shared=shared)


_DECLARED = """
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i64 @llvm.cttz.i64(i64, i1)
"""
