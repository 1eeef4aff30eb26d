"""Compiled searches over a graph in arrays: grouping edges, closures, strongly connected parts.

Offsets are 64-bit numbers, states and edge ends 32-bit, flags bytes; for each state, its edges' ends lie
in `ends[offsets[s] .. offsets[s + 1]]`.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from stagewright.checker.explicit.arrays import Bools, Ints, SmallInts
from stagewright.checker.explicit.native.code.jit import Module
from stagewright.checker.explicit.native.code.llvm_text import (
    I32,
    I64,
    MODULE_END,
    POINTER,
    Function,
    Value,
)


def grouped(keys: SmallInts, count: int) -> tuple[Ints, Ints]:
    """Where each key's positions begin, and all positions in the order of their keys."""
    keys = np.ascontiguousarray(keys)
    offsets = np.zeros(count + 1, dtype=np.int64)
    positions = np.empty(keys.size, dtype=np.int64)
    _module().function("group", 5)(
        keys.ctypes.data, keys.size, count, offsets.ctypes.data, positions.ctypes.data
    )
    return offsets, positions


def closure(offsets: Ints, ends: SmallInts, starts: Bools, within: Bools | None) -> Bools:
    """The states that `starts` lead to, never leaving `within`."""
    reached = starts.copy()
    allowed = np.ones(starts.size, dtype=np.bool_) if within is None else within
    queue = np.empty(starts.size, dtype=np.int32)
    waiting = np.flatnonzero(starts)
    queue[: waiting.size] = waiting
    arrays = (offsets, np.ascontiguousarray(ends), allowed, reached, queue)
    _module().function("closure", 6)(*[a.ctypes.data for a in arrays], waiting.size)
    return reached


def components(offsets: Ints, ends: SmallInts, alive: Bools) -> tuple[Ints, int]:
    """The strongly connected parts of the living states (Tarjan 1972): labels, -1 for others."""
    states = alive.size
    labels = np.full(states, -1, dtype=np.int64)
    index, low = np.zeros(states, dtype=np.int32), np.zeros(states, dtype=np.int32)
    stack, calls = np.empty(states, dtype=np.int32), np.empty(states, dtype=np.int32)
    edges = np.empty(states, dtype=np.int64)
    arrays = (offsets, np.ascontiguousarray(ends), alive, labels, index, low, stack, calls, edges)
    count = _module().function("components", 10)(*[a.ctypes.data for a in arrays], states)
    return labels, count


@cache
def _module() -> Module:
    return Module(_group() + _closure() + _components() + MODULE_END)


def _group() -> str:
    f = Function(
        "group",
        [
            ("keys", POINTER),
            ("size", I64),
            ("count", I64),
            ("offsets", POINTER),
            ("positions", POINTER),
        ],
        local=False,
    )
    index = f.variable(0)
    with f.loop(lambda: f.compare("ult", f.get(index), f["size"])):
        key = f.zext(f.load(f["keys"], f.get(index), I32))
        f.increase(f["offsets"], f.add(key, 1), 1)
        f.set(index, f.add(f.get(index), 1))
    # Running totals, each one key late, so that placing the positions leaves the offsets right.
    total, before = f.variable(0), f.variable(0)
    f.set(index, 1)
    with f.loop(lambda: f.compare("ule", f.get(index), f["count"])):
        own = f.load(f["offsets"], f.get(index))
        f.set(before, f.get(total))
        f.set(total, f.add(f.get(total), own))
        f.store(f["offsets"], f.get(index), f.get(before))
        f.set(index, f.add(f.get(index), 1))
    f.set(index, 0)
    with f.loop(lambda: f.compare("ult", f.get(index), f["size"])):
        key = f.add(f.zext(f.load(f["keys"], f.get(index), I32)), 1)
        place = f.load(f["offsets"], key)
        f.store(f["positions"], place, f.get(index))
        f.store(f["offsets"], key, f.add(place, 1))
        f.set(index, f.add(f.get(index), 1))
    f.return_(0)
    return f.source()


def _closure() -> str:
    names = ("offsets", "ends", "within", "reached", "queue")
    f = Function("closure", [*((n, POINTER) for n in names), ("waiting", I64)], local=False)
    first, last = f.variable(0), f.variable(f["waiting"])
    with f.loop(lambda: f.compare("ult", f.get(first), f.get(last))):
        state = f.zext(f.load(f["queue"], f.get(first), I32))
        f.set(first, f.add(f.get(first), 1))
        edge = f.variable(f.load(f["offsets"], state))
        after = f.load(f["offsets"], f.add(state, 1))
        with f.loop(lambda: f.compare("ult", f.get(edge), after)):
            end = f.zext(f.load(f["ends"], f.get(edge), I32))
            new = f.compare("eq", f.load(f["reached"], end, "i8"), Value("0", "i8"))
            inside = f.compare("ne", f.load(f["within"], end, "i8"), Value("0", "i8"))
            with f.when(f.and_(new, inside)):
                f.store(f["reached"], end, 1, "i8")
                f.store(f["queue"], f.get(last), f.trunc(end, I32), I32)
                f.set(last, f.add(f.get(last), 1))
            f.set(edge, f.add(f.get(edge), 1))
    f.return_(0)
    return f.source()


def _components() -> str:
    names = ("offsets", "ends", "alive", "labels", "index", "low", "stack", "calls", "edges")
    f = Function("components", [*((n, POINTER) for n in names), ("states", I64)], local=False)
    root, numbered, height = f.variable(0), f.variable(1), f.variable(0)
    depth, count = f.variable(0), f.variable(0)

    def enter(state: Value) -> None:
        """Number a state, and begin with its first edge."""
        number = f.trunc(f.get(numbered), I32)
        f.store(f["index"], state, number, I32)
        f.store(f["low"], state, number, I32)
        f.set(numbered, f.add(f.get(numbered), 1))
        f.store(f["stack"], f.get(height), f.trunc(state, I32), I32)
        f.set(height, f.add(f.get(height), 1))
        f.store(f["calls"], f.get(depth), f.trunc(state, I32), I32)
        f.store(f["edges"], f.get(depth), f.load(f["offsets"], state))
        f.set(depth, f.add(f.get(depth), 1))

    def lower(state: Value, to: Value) -> None:
        low = f.load(f["low"], state, I32)
        f.store(f["low"], state, f.select(f.compare("ult", to, low), to, low), I32)

    def living(state: Value) -> Value:
        return f.compare("ne", f.load(f["alive"], state, "i8"), Value("0", "i8"))

    def follow(state: Value, end: Value) -> None:
        number = f.load(f["index"], end, I32)
        seen = f.compare("ne", number, Value("0", I32))
        open_ = f.compare("slt", f.load(f["labels"], end), 0)
        with f.when(f.and_(seen, open_)):
            lower(state, number)
        with f.when(f.not_(seen)):
            enter(end)

    def close(state: Value) -> None:
        """All edges are followed: hand on what was reached; perhaps a part is complete."""
        f.set(depth, f.sub(f.get(depth), 1))
        low = f.load(f["low"], state, I32)
        with f.when(f.compare("ugt", f.get(depth), 0)):
            above = f.load(f["calls"], f.sub(f.get(depth), 1), I32)
            lower(f.zext(above), low)
        with f.when(f.compare("eq", low, f.load(f["index"], state, I32))):
            more = f.variable(1)
            with f.loop(lambda: f.compare("ne", f.get(more), 0)):
                f.set(height, f.sub(f.get(height), 1))
                top = f.zext(f.load(f["stack"], f.get(height), I32))
                f.store(f["labels"], top, f.get(count))
                f.set(more, f.zext(f.compare("ne", top, state)))
            f.set(count, f.add(f.get(count), 1))

    with f.loop(lambda: f.compare("ult", f.get(root), f["states"])):
        start = f.get(root)
        fresh = f.compare("eq", f.load(f["index"], start, I32), Value("0", I32))
        with f.when(f.and_(fresh, living(start))):
            enter(start)
        with f.loop(lambda: f.compare("ugt", f.get(depth), 0)):
            top = f.sub(f.get(depth), 1)
            state = f.zext(f.load(f["calls"], top, I32))
            edge = f.load(f["edges"], top)
            left = f.compare("ult", edge, f.load(f["offsets"], f.add(state, 1)))
            with f.when(left):
                f.store(f["edges"], top, f.add(edge, 1))
                end = f.zext(f.load(f["ends"], edge, I32))
                with f.when(living(end)):
                    follow(state, end)
            with f.when(f.not_(left)):
                close(state)
        f.set(root, f.add(f.get(root), 1))
    f.return_(f.get(count))
    return f.source()
