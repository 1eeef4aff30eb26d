"""The table of places: a slot holds part of a state's hash and its place in the log, where it is compared."""

from __future__ import annotations

from stagewright.checker.explicit.native.code.llvm_text import I64, POINTER, Function, Value
from stagewright.checker.explicit.native.visited_set.buckets import (
    BUCKET_BYTES,
    FARTHEST,
    FULL,
    LENGTH,
    LOG,
    MULTIPLIERS,
    SHAPE,
    TableKind,
    free_lanes,
    load_bucket,
    lowest,
    matches,
    shape_of,
    state_parameters,
)


def places_source(kind: TableKind, *, shared: bool) -> str:
    state = state_parameters(kind.words)
    return (
        _search(kind, "find", [("shared", POINTER), *SHAPE, ("hash", I64), *state], insert=None)
        + _search(
            kind,
            "insert",
            [("shared", POINTER), ("spare", POINTER), *SHAPE, ("hash", I64), *state],
            insert=shared,
        )
        + _refill(kind)
    )


def _search(
    kind: TableKind, name: str, parameters: list[tuple[str, str]], *, insert: bool | None
) -> str:
    """The function that looks a state up; `insert`: and adds it, one of several workers or alone."""
    f = Function(name, parameters)
    table, log = f["table"], f.load(f["shared"], LOG, POINTER)
    home, tag = f.lshr(f["hash"], f["rest"]), f.shl(f["hash"], 32)
    distance = f.variable(0)
    with f.loop(lambda: f.compare("ule", f.get(distance), FARTHEST)):
        at = f.mul(f.add(home, f.get(distance)), BUCKET_BYTES)
        address = f.at(table, at, "i8")
        bucket = load_bucket(f, kind, address)
        free = free_lanes(f, kind, bucket)
        tags = _splat_and(f, kind, bucket, -(1 << 32))
        same = f.variable(f.and_(matches(f, kind, tags, tag), f.xor(free, -1)))
        with f.loop(lambda: f.compare("ne", f.get(same), 0)):
            _compare(f, kind, address, log, f.get(same), place=insert is None)
            f.set(same, f.and_(f.get(same), f.sub(f.get(same), 1)))
        if insert is None:
            with f.when(f.compare("ne", free, 0)):
                f.return_(-1)
            f.set(distance, f.add(f.get(distance), 1))
        else:
            with f.when(f.compare("eq", free, 0), likely=False):
                f.set(distance, f.add(f.get(distance), 1))
            with f.when(f.compare("ne", free, 0)):
                lane = f.at(address, lowest(f, free), I64)
                _append(f, kind, lane, tag, log, shared=bool(insert))
    f.return_(FULL)
    return f.source("" if insert is None else "alwaysinline")


def _splat_and(f: Function, kind: TableKind, bucket: Value, number: int) -> Value:
    lanes = ", ".join([f"i64 {number}"] * kind.slots)
    return f.op(f"and {bucket}, <{lanes}>", kind.vector)


def _compare(
    f: Function, kind: TableKind, address: Value, log: Value, lanes: Value, *, place: bool
) -> None:
    """Return if the state at the lowest of the lanes is the one looked for."""
    lane = f.at(address, lowest(f, lanes), I64)
    entry = f.op(f"load atomic i64, {lane} acquire, align 8", I64)
    id_ = f.sub(f.and_(entry, (1 << 32) - 1), 1)
    base = f.mul(id_, kind.words)
    equal = [f.compare("eq", f.load(log, f.add(base, i)), f[f"w{i}"]) for i in range(kind.words)]
    total = equal[0]
    for other in equal[1:]:
        total = f.and_(total, other)
    with f.when(total, likely=True):
        f.return_(id_ if place else 0)


def _append(
    f: Function, kind: TableKind, lane: Value, tag: Value, log: Value, *, shared: bool
) -> None:
    """Write the state to the log and its place into a free slot; return 1.

    A worker whose slot another one filled keeps the place in the log for its next state.
    """
    length = f.at(f["shared"], LENGTH)
    if shared:
        spare = f.variable(f.load(f["spare"], 0))
        with f.when(f.compare("slt", f.get(spare), 0)):
            f.set(spare, f.op(f"atomicrmw add {length}, i64 1 monotonic", I64))
        id_ = f.get(spare)
    else:
        id_ = f.load(length, 0)
    base = f.mul(id_, kind.words)
    for i in range(kind.words):
        f.store(log, f.add(base, i), f[f"w{i}"])
    wanted = f.or_(tag, f.add(id_, 1))
    if not shared:
        f.store(length, 0, f.add(id_, 1))
        f.statement(f"store {wanted}, {lane}")
        f.return_(1)
        return
    swapped = f.op(f"cmpxchg {lane}, i64 0, {wanted} acq_rel acquire", "{ i64, i1 }")
    won = f.op(f"extractvalue {swapped}, 1", "i1")
    f.store(f["spare"], 0, f.select(won, Value("-1", I64), id_))
    with f.when(won):
        f.return_(1)


def _refill(kind: TableKind) -> str:
    """`refill(shared, first, end)`: enter these places of the log, whose states are distinct.

    Returns how many states found no place. `rename(shared, place, words...)` tells the table that a
    state has another place.
    """
    f = Function("refill", [("shared", POINTER), ("first", I64), ("end", I64)], local=False)
    shape, log = shape_of(f, kind, f["shared"]), f.load(f["shared"], LOG, POINTER)
    index, lost = f.variable(f["first"]), f.variable(0)
    with f.loop(lambda: f.compare("ult", f.get(index), f["end"])):
        base = f.mul(f.get(index), kind.words)
        words = [f.load(log, f.add(base, i)) for i in range(kind.words)]
        hashed = f.call("@hash", words)
        entry = f.or_(f.shl(hashed, 32), f.add(f.get(index), 1))
        placed = f.call("@enter", [shape.table, f.lshr(hashed, shape.rest), entry])
        with f.when(f.compare("slt", placed, 0), likely=False):
            f.set(lost, f.add(f.get(lost), 1))
        f.set(index, f.add(f.get(index), 1))
    f.return_(f.get(lost))
    g = Function("enter", [("table", POINTER), ("home", I64), ("entry", I64)])
    distance = g.variable(0)
    with g.loop(lambda: g.compare("ule", g.get(distance), FARTHEST)):
        at = g.mul(g.add(g["home"], g.get(distance)), BUCKET_BYTES)
        address = g.at(g["table"], at, "i8")
        free = free_lanes(g, kind, load_bucket(g, kind, address))
        with g.when(g.compare("ne", free, 0)):
            g.store(address, lowest(g, free), g["entry"])
            g.return_(0)
        g.set(distance, g.add(g.get(distance), 1))
    g.return_(FULL)
    return g.source("alwaysinline") + f.source() + _rename(kind)


def _rename(kind: TableKind) -> str:
    state = state_parameters(kind.words)
    f = Function("rename", [("shared", POINTER), ("old", I64), ("new", I64), *state], local=False)
    shape = shape_of(f, kind, f["shared"])
    hashed = f.call("@hash", [f[name] for name, _ in state])
    home = f.lshr(hashed, shape.rest)
    old = f.or_(f.shl(hashed, 32), f.add(f["old"], 1))
    distance = f.variable(0)
    with f.loop(lambda: f.compare("ule", f.get(distance), FARTHEST)):
        at = f.mul(f.add(home, f.get(distance)), BUCKET_BYTES)
        address = f.at(shape.table, at, "i8")
        found = matches(f, kind, load_bucket(f, kind, address), old)
        with f.when(f.compare("ne", found, 0)):
            new = f.or_(f.shl(hashed, 32), f.add(f["new"], 1))
            f.store(address, lowest(f, found), new)
            f.return_(0)
        f.set(distance, f.add(f.get(distance), 1))
    f.return_(FULL)
    return f.source()


def hash_source(words: int) -> str:
    f = Function("hash", state_parameters(words))
    value = Value("0", I64)
    for i in range(words):
        value = f.mul(f.xor(value, f[f"w{i}"]), MULTIPLIERS[0])
        value = f.xor(value, f.lshr(value, 32))
    value = f.mul(value, MULTIPLIERS[1])
    f.return_(f.xor(value, f.lshr(value, 29)))
    return f.source("alwaysinline")
