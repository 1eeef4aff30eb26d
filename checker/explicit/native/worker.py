"""Generates what a worker does: takes blocks of the level, expands them, and enters the new states.

What all workers share lies in one block of 64-bit numbers (`tables.py` names the places), what is one
worker's own in another. The generated `work` runs without Python until the level ends, the table fills
or its budget is spent; a table that fills in the middle of a block is grown, and the block goes on
where it stopped.
"""

from __future__ import annotations

from stagewright.checker.explicit.native.code.llvm_text import (
    I64,
    MODULE_END,
    POINTER,
    Function,
    Value,
)
from stagewright.checker.explicit.native.visited_set.buckets import (
    CURSOR,
    END,
    EXPAND,
    FULL,
    LENGTH,
    LIMIT,
    LOG,
    TableKind,
    prefetch,
    shape_of,
)
from stagewright.checker.explicit.native.visited_set.tables import table_source

BLOCK = 8  # states: their successors' table lines are under way all at once

# Places in a worker's own block.
BUDGET, TRANSITIONS, NEXT, COUNT, SPARE, OUT, HASHES, NEW, OBSERVED = range(9)
OWN_SIZE = 9

# What `work` returns.
LEVEL_DONE, TABLE_FULL, BUDGET_SPENT = range(3)


def worker_source(kind: TableKind, *, shared: bool, canonical: str = "") -> str:
    """LLVM text of the table's functions and of `work(shared, own)`.

    `canonical`: text of a function `canonical(states, count)` that replaces states by others, if
    successors are to be replaced before they are looked up.
    """
    text = table_source(kind, shared=shared) + canonical
    text += _work(kind, shared=shared, canonical=bool(canonical)) + _enter(kind, shared=shared)
    if kind.knows_places:
        text += _find_all(kind)
    return text + MODULE_END


def _work(kind: TableKind, *, shared: bool, canonical: bool) -> str:
    f = Function("work", [("shared", POINTER), ("own", POINTER)], local=False)
    with f.when(f.compare("ult", f.load(f["own"], NEXT), f.load(f["own"], COUNT))):
        _insert_block(f, kind, shared=shared)
    with f.loop(lambda: f.compare("sgt", f.load(f["own"], BUDGET), 0)):
        full = f.compare("uge", f.load(f["shared"], LENGTH), f.load(f["shared"], LIMIT))
        with f.when(full, likely=False):
            f.return_(TABLE_FULL)
        first = _take(f, shared=shared)
        end = f.load(f["shared"], END)
        with f.when(f.compare("uge", first, end), likely=False):
            f.return_(LEVEL_DONE)
        left = f.sub(end, first)
        count = f.select(f.compare("ult", left, BLOCK), left, Value(str(BLOCK), I64))
        _expand_block(f, kind, first, count, canonical=canonical)
        f.increase(f["own"], BUDGET, f.sub(Value("0", I64), count))
        _insert_block(f, kind, shared=shared)
    f.return_(BUDGET_SPENT)
    return f.source()


def _take(f: Function, *, shared: bool) -> Value:
    """The first state of the next block."""
    cursor = f.at(f["shared"], CURSOR)
    if shared:
        return f.op(f"atomicrmw add {cursor}, i64 {BLOCK} monotonic", I64)
    first = f.load(cursor, 0)
    f.store(cursor, 0, f.add(first, BLOCK))
    return first


def _expand_block(
    f: Function, kind: TableKind, first: Value, count: Value, *, canonical: bool
) -> None:
    """All successors of the block and their hashes; the table's lines are asked for."""
    own = f["own"]
    states = f.at(f.load(f["shared"], LOG, POINTER), f.mul(first, kind.words))
    out, observed = f.load(own, OUT, POINTER), f.load(own, OBSERVED, POINTER)
    expand = f.load(f["shared"], EXPAND, POINTER)
    null = Value("null", POINTER)
    found = f.call(expand.text, [states, count, out, observed, null, null, null])
    if canonical:
        f.call("@canonical", [out, found])
    f.increase(own, TRANSITIONS, found)
    f.store(own, NEXT, 0)
    f.store(own, COUNT, found)
    hashes, shape = f.load(own, HASHES, POINTER), shape_of(f, kind, f["shared"])
    index = f.variable(0)
    with f.loop(lambda: f.compare("ult", f.get(index), found)):
        base = f.mul(f.get(index), kind.words)
        words = [f.load(out, f.add(base, w)) for w in range(kind.words)]
        hashed = f.call("@hash", words)
        f.store(hashes, f.get(index), hashed)
        prefetch(f, shape, hashed)
        f.set(index, f.add(f.get(index), 1))


def _insert_block(f: Function, kind: TableKind, *, shared: bool) -> None:
    """Enter the block's successors from NEXT on; leaves the function if the table is full."""
    own = f["own"]
    out, hashes = f.load(own, OUT, POINTER), f.load(own, HASHES, POINTER)
    new, count = f.load(own, NEW, POINTER), f.load(own, COUNT)
    spare, shape = f.at(own, SPARE), shape_of(f, kind, f["shared"]).arguments
    index, fresh = f.variable(f.load(own, NEXT)), f.variable(0)
    with f.loop(lambda: f.compare("ult", f.get(index), count)):
        base = f.mul(f.get(index), kind.words)
        words = [f.load(out, f.add(base, w)) for w in range(kind.words)]
        hashed = f.load(hashes, f.get(index))
        entered = f.call("@insert", [f["shared"], spare, *shape, hashed, *words])
        with f.when(f.compare("eq", entered, FULL), likely=False):
            f.store(own, NEXT, f.get(index))
            if not kind.knows_places:
                _log_new(f, new, f.get(fresh), shared=shared)
            f.return_(TABLE_FULL)
        if not kind.knows_places:
            f.store(new, f.get(fresh), words[0])
            f.set(fresh, f.add(f.get(fresh), entered))
        f.set(index, f.add(f.get(index), 1))
    f.store(own, NEXT, count)
    if not kind.knows_places:
        _log_new(f, new, f.get(fresh), shared=shared)


def _log_new(f: Function, new: Value, count: Value, *, shared: bool) -> None:
    """Append new states to the log (a table of places does so itself)."""
    first = _room(f, count, shared=shared)
    log = f.load(f["shared"], LOG, POINTER)
    index = f.variable(0)
    with f.loop(lambda: f.compare("ult", f.get(index), count)):
        f.store(log, f.add(first, f.get(index)), f.load(new, f.get(index)))
        f.set(index, f.add(f.get(index), 1))


def _room(f: Function, count: Value, *, shared: bool) -> Value:
    """The first of so many free places at the log's end, now taken."""
    length = f.at(f["shared"], LENGTH)
    if shared:
        return f.op(f"atomicrmw add {length}, {count} monotonic", I64)
    first = f.load(length, 0)
    f.store(length, 0, f.add(first, count))
    return first


def _enter(kind: TableKind, *, shared: bool) -> str:
    """`enter_all(shared, own, states, count)`: enter states, new ones at the log's end; 0, or FULL."""
    f = Function(
        "enter_all",
        [("shared", POINTER), ("own", POINTER), ("states", POINTER), ("count", I64)],
        local=False,
    )
    spare, shape = f.at(f["own"], SPARE), shape_of(f, kind, f["shared"])
    index = f.variable(0)
    with f.loop(lambda: f.compare("ult", f.get(index), f["count"])):
        later = f.add(f.get(index), BLOCK)
        with f.when(f.compare("ult", later, f["count"])):
            prefetch(f, shape, f.call("@hash", _at(f, kind, later)))
        words = _at(f, kind, f.get(index))
        hashed = f.call("@hash", words)
        entered = f.call("@insert", [f["shared"], spare, *shape.arguments, hashed, *words])
        with f.when(f.compare("eq", entered, FULL), likely=False):
            f.return_(FULL)
        if not kind.knows_places:
            with f.when(f.compare("eq", entered, 1)):
                place = _room(f, Value("1", I64), shared=shared)
                f.store(f.load(f["shared"], LOG, POINTER), place, words[0])
        f.set(index, f.add(f.get(index), 1))
    f.return_(0)
    return f.source()


def _find_all(kind: TableKind) -> str:
    """`find_all(shared, states, count, places)`: the place in the log of each state, 32 bits, or -1."""
    f = Function(
        "find_all",
        [("shared", POINTER), ("states", POINTER), ("count", I64), ("places", POINTER)],
        local=False,
    )
    ahead, shape = BLOCK, shape_of(f, kind, f["shared"])
    index = f.variable(0)
    with f.loop(lambda: f.compare("ult", f.get(index), f["count"])):
        later = f.add(f.get(index), ahead)
        with f.when(f.compare("ult", later, f["count"])):
            prefetch(f, shape, f.call("@hash", _at(f, kind, later)))
        words = _at(f, kind, f.get(index))
        hashed = f.call("@hash", words)
        place = f.call("@find", [f["shared"], *shape.arguments, hashed, *words])
        f.store(f["places"], f.get(index), f.trunc(place, "i32"), "i32")
        f.set(index, f.add(f.get(index), 1))
    f.return_(0)
    return f.source()


def _at(f: Function, kind: TableKind, index: Value) -> list[Value]:
    base = f.mul(index, kind.words)
    return [f.load(f["states"], f.add(base, w)) for w in range(kind.words)]
