"""Generates the tables of visited states: exact, in buckets of one cache line, open to several workers.

Three kinds. A *bitmap* has one bit for every state that there could be: for few enough bits nothing is as
small or as fast. A table of *quotients* suits states of one word: the hash is a permutation of the state's
bits, its top bits are the home bucket, and a slot holds the remaining ones with the distance from home:
the state itself need not be stored (Knuth, TAOCP 3, exercise 6.4-13; Cleary 1984). A table of *places* suits
every state: a slot holds 32 bits of the hash and the state's place in the log, where it is compared.

A free slot is 0 and the slots of a bucket are filled from the left, by one compare-and-swap.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from stagewright.checker.explicit.native.llvm_text import I64, POINTER, Function, Value

BUCKET_BYTES = 64
SPARE_BUCKETS = 1024  # after the last home bucket: nothing wraps around
FARTHEST = SPARE_BUCKETS - 2  # buckets from home
_LOW = 2 * SPARE_BUCKETS  # buckets that growing in place must set aside
_SMALLEST_HASH = 30  # bits: more than a table ever has buckets
_LEAST_DISTANCE_BITS = 3
_SMALLEST_BITMAP, _LARGEST_BITMAP = 9, 30  # bits of a state: one cache line, 128 MiB
_LINE_BITS = 9  # a cache line has 2^9 bits
_MULTIPLIERS = (0xD6E8FEB86659FD93, 0x9E3779B97F4A7C15)
FULL = -1

# Places in what all workers share, in 64-bit numbers.
LOG, LENGTH, TABLE, BITS, CURSOR, END, LIMIT, EXPAND = range(8)
SHARED_SIZE = 8


class Storage(Enum):
    """What stands for a visited state."""

    BITMAP = auto()
    QUOTIENTS = auto()
    PLACES = auto()


@dataclass(frozen=True)
class TableKind:
    """How visited states are stored: with `slot` bits each, where a state or its hash has `bits`."""

    words: int
    bits: int
    slot: int
    storage: Storage

    @property
    def knows_places(self) -> bool:
        """Whether a state's place in the log can be asked for."""
        return self.storage is Storage.PLACES

    @property
    def slots(self) -> int:
        """How many slots a bucket has."""
        return BUCKET_BYTES * 8 // self.slot

    def fits(self, log_buckets: int) -> bool:
        """Whether slots can hold what so many buckets leave of a state."""
        if self.storage is not Storage.QUOTIENTS:
            return True
        rest = self.bits - log_buckets
        return 0 < rest <= self.slot - _LEAST_DISTANCE_BITS

    @property
    def vector(self) -> str:
        return f"<{self.slots} x i{self.slot}>"


def kind_for(words: int, bits: int, log_buckets: int, *, ids: bool = False) -> TableKind:
    """The most compact kind for states of so many words and bits; with `ids`, one that knows places."""
    if words > 1 or ids:
        return TableKind(words, bits, 64, Storage.PLACES)
    if bits <= _LARGEST_BITMAP:
        return TableKind(words, max(bits, _SMALLEST_BITMAP), 1, Storage.BITMAP)
    narrow, wide = (
        TableKind(words, max(bits, _SMALLEST_HASH), slot, Storage.QUOTIENTS) for slot in (32, 64)
    )
    return narrow if narrow.fits(log_buckets) else wide


def table_source(kind: TableKind, *, shared: bool) -> str:
    """LLVM text of the functions of one kind; `shared`: several workers use the table at once.

    `hash(words...)`, `insert(shared, spare, shape..., hash, words...)`: 1 new, 0 known, -1 full; for id
    tables also `find(shared, shape..., hash, words...)`, the place in the log or -1.
    """
    match kind.storage:
        case Storage.BITMAP:
            return _DECLARED + _bitmap(shared=shared)
        case Storage.QUOTIENTS:
            return _DECLARED + _permutation(kind) + _quotient(kind, shared=shared)
        case Storage.PLACES:
            return _DECLARED + _hash(kind.words) + _ids(kind, shared=shared)


_DECLARED = """
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i64 @llvm.cttz.i64(i64, i1)
"""


def _state(words: int) -> list[tuple[str, str]]:
    return [(f"w{i}", I64) for i in range(words)]


def _permutation(kind: TableKind) -> str:
    """A permutation of the numbers of so many bits that spreads every bit into the highest ones."""
    f = Function("hash", _state(1))
    half, mask = (kind.bits + 1) // 2, (1 << kind.bits) - 1
    value = f["w0"]
    for multiplier in _MULTIPLIERS:
        value = f.xor(value, f.lshr(value, half))
        value = f.mul(value, multiplier)
        if kind.bits < 64:
            value = f.and_(value, mask)
    f.return_(f.xor(value, f.lshr(value, half)))
    return f.source("alwaysinline")


def _hash(words: int) -> str:
    f = Function("hash", _state(words))
    value = Value("0", I64)
    for i in range(words):
        value = f.mul(f.xor(value, f[f"w{i}"]), _MULTIPLIERS[0])
        value = f.xor(value, f.lshr(value, 32))
    value = f.mul(value, _MULTIPLIERS[1])
    f.return_(f.xor(value, f.lshr(value, 29)))
    return f.source("alwaysinline")


@dataclass(frozen=True)
class Shape:
    """The table as it is until it grows: computed once for many states."""

    table: Value
    rest: Value  # how many bits of a hash lie below those of its home bucket
    distance_bits: Value  # quotient tables: of a slot
    remainder: Value  # quotient tables: a mask of the bits below the home bucket's
    farthest: Value  # quotient tables: how far from home a slot can tell

    @property
    def arguments(self) -> list[Value]:
        """As generated functions take them."""
        return [self.table, self.rest, self.distance_bits, self.remainder, self.farthest]


_SHAPE = [
    ("table", POINTER),
    ("rest", I64),
    ("distance_bits", I64),
    ("remainder", I64),
    ("farthest", I64),
]


def shape_of(f: Function, kind: TableKind, shared: Value) -> Shape:
    """The shape of the table that workers share."""
    return _shape(f, kind, f.load(shared, TABLE, POINTER), f.load(shared, BITS))


def _shape(f: Function, kind: TableKind, table: Value, bits: Value) -> Shape:
    none = Value("0", I64)
    if kind.storage is Storage.BITMAP:
        return Shape(table, Value(str(_LINE_BITS), I64), none, none, none)
    rest = f.sub(kind.bits if kind.storage is Storage.QUOTIENTS else 64, bits)
    if kind.storage is Storage.PLACES:
        return Shape(table, rest, none, none, none)
    distance_bits = f.sub(kind.slot, rest)
    remainder = f.sub(f.shl(Value("1", I64), rest), 1)
    most = f.sub(f.shl(Value("1", I64), distance_bits), 2)
    farthest = f.select(f.compare("ult", most, FARTHEST), most, Value(str(FARTHEST), I64))
    return Shape(table, rest, distance_bits, remainder, farthest)


def _shape_given(f: Function) -> Shape:
    return Shape(*(f[name] for name, _ in _SHAPE))


def prefetch(f: Function, shape: Shape, hashed: Value) -> None:
    """Ask for the home bucket's cache line ahead of its use."""
    address = f.at(shape.table, f.mul(f.lshr(hashed, shape.rest), BUCKET_BYTES), "i8")
    f.statement(f"call void @llvm.prefetch.p0({address}, i32 1, i32 3, i32 1)")


def _matches(f: Function, kind: TableKind, bucket: Value, wanted: Value) -> Value:
    """A mask of the lanes of a bucket that equal a number."""
    lanes, vector = kind.slots, kind.vector
    one = f.op(f"insertelement {vector} poison, {wanted}, i32 0", vector)
    all_ = f.op(f"shufflevector {one}, {vector} poison, <{lanes} x i32> zeroinitializer", vector)
    return _mask(f, kind, f.op(f"icmp eq {bucket}, {all_.text}", f"<{lanes} x i1>"))


def _mask(f: Function, kind: TableKind, lanes: Value) -> Value:
    return f.zext(f.op(f"bitcast {lanes} to i{kind.slots}", f"i{kind.slots}"))


def _free(f: Function, kind: TableKind, bucket: Value) -> Value:
    lanes = f.op(f"icmp eq {bucket}, zeroinitializer", f"<{kind.slots} x i1>")
    return _mask(f, kind, lanes)


def _bucket(f: Function, kind: TableKind, address: Value) -> Value:
    return f.op(f"load {kind.vector}, {address}, align {BUCKET_BYTES}", kind.vector)


def _lowest(f: Function, mask: Value) -> Value:
    return f.call("@llvm.cttz.i64", [mask, Value("true", "i1")])


def _bitmap(*, shared: bool) -> str:
    h = Function("hash", _state(1))
    h.return_(h["w0"])
    parameters = [("shared", POINTER), ("spare", POINTER), *_SHAPE, ("hash", I64), *_state(1)]
    f = Function("insert", parameters)
    address = f.at(f["table"], f.lshr(f["hash"], 6))
    bit = f.shl(Value("1", I64), f.and_(f["hash"], 63))
    if shared:
        before = f.op(f"atomicrmw or {address}, {bit} monotonic", I64)
    else:
        before = f.load(address, 0)
        f.store(address, 0, f.or_(before, bit))
    f.return_(f.zext(f.compare("eq", f.and_(before, bit), 0)))
    return h.source("alwaysinline") + f.source("alwaysinline")


def _quotient(kind: TableKind, *, shared: bool) -> str:
    place = _place_quotient(kind, shared=shared)
    parameters = [("shared", POINTER), ("spare", POINTER), *_SHAPE, ("hash", I64), *_state(1)]
    f = Function("insert", parameters)
    f.return_(f.call("@place", [*_shape_given(f).arguments, f["hash"]]))
    return place + f.source("alwaysinline") + _grow(kind)


def _place_quotient(kind: TableKind, *, shared: bool) -> str:
    """`place(shape..., hash)`: put a hash into the table."""
    slot = f"i{kind.slot}"
    f = Function("place", [*_SHAPE, ("hash", I64)])
    shape = _shape_given(f)
    home = f.lshr(f["hash"], shape.rest)
    key = f.add(f.shl(f.and_(f["hash"], shape.remainder), shape.distance_bits), 1)
    distance = f.variable(0)
    with f.loop(lambda: f.compare("ule", f.get(distance), shape.farthest)):
        at = f.mul(f.add(home, f.get(distance)), BUCKET_BYTES)
        address = f.at(f["table"], at, "i8")
        bucket = _bucket(f, kind, address)
        wanted = f.trunc(f.add(key, f.get(distance)), slot)
        with f.when(f.compare("ne", _matches(f, kind, bucket, wanted), 0)):
            f.return_(0)
        free = _free(f, kind, bucket)
        with f.when(f.compare("eq", free, 0), likely=False):
            f.set(distance, f.add(f.get(distance), 1))
        with f.when(f.compare("ne", free, 0)):
            lane = f.at(address, _lowest(f, free), slot)
            _put(f, slot, lane, wanted, shared=shared)
    f.return_(FULL)
    return f.source("alwaysinline")


def _put(f: Function, slot: str, lane: Value, wanted: Value, *, shared: bool) -> None:
    """Fill a free slot and return 1; if another worker was faster, go on and look again."""
    if not shared:
        f.statement(f"store {wanted}, {lane}")
        f.return_(1)
        return
    pair = f"{{ {slot}, i1 }}"
    swapped = f.op(f"cmpxchg {lane}, {slot} 0, {wanted} acq_rel acquire", pair)
    with f.when(f.op(f"extractvalue {swapped}, 1", "i1")):
        f.return_(1)


def _grow(kind: TableKind) -> str:
    """`grow(table, bits, by)`: 2^by times as many buckets in place; how many states found no place.

    From the last bucket down, states move to where nothing is left to be moved; the lowest buckets,
    for which this is not so, are set aside first. The memory behind the table must be zero.
    """
    slot = f"i{kind.slot}"
    f = Function("grow", [("table", POINTER), ("bits", I64), ("by", I64)], local=False)
    aside = f.op(f"alloca i8, i64 {_LOW * BUCKET_BYTES}, align {BUCKET_BYTES}", POINTER)
    lost = f.variable(0)
    grown = _shape(f, kind, f["table"], f.add(f["bits"], f["by"]))
    buckets = f.add(f.shl(Value("1", I64), f["bits"]), SPARE_BUCKETS)
    left = f.variable(buckets)

    def move(origin: Value, bucket: Value) -> None:
        """Put every state found at `origin`, once the content of a bucket, where it belongs now."""
        rest = f.sub(kind.bits, f["bits"])
        distance_bits = f.sub(kind.slot, rest)
        lane = f.variable(0)
        with f.loop(lambda: f.compare("ult", f.get(lane), kind.slots)):
            key = f.zext(f.load(origin, f.get(lane), slot))
            with f.when(f.compare("ne", key, 0)):
                entry = f.sub(key, 1)
                distance = f.and_(entry, f.sub(f.shl(Value("1", I64), distance_bits), 1))
                home = f.sub(bucket, distance)
                hashed = f.or_(f.shl(home, rest), f.lshr(entry, distance_bits))
                placed = f.call("@place", [*grown.arguments, hashed])
                with f.when(f.compare("slt", placed, 0), likely=False):
                    f.set(lost, f.add(f.get(lost), 1))
            f.set(lane, f.add(f.get(lane), 1))

    def take(source: Value, target: Value) -> None:
        f.statement(f"store {_bucket(f, kind, source)}, {target}, align {BUCKET_BYTES}")
        f.statement(f"store {kind.vector} zeroinitializer, {source}, align {BUCKET_BYTES}")

    with f.loop(lambda: f.compare("ugt", f.get(left), _LOW)):
        f.set(left, f.sub(f.get(left), 1))
        take(f.at(f["table"], f.mul(f.get(left), BUCKET_BYTES), "i8"), aside)
        move(aside, f.get(left))
    low = f.get(left)
    for action in (take, None):
        index = f.variable(0)
        f.set(index, 0)
        with f.loop(lambda: f.compare("ult", f.get(index), low)):  # noqa: B023 - used at once
            at = f.mul(f.get(index), BUCKET_BYTES)
            if action is None:
                move(f.at(aside, at, "i8"), f.get(index))
            else:
                action(f.at(f["table"], at, "i8"), f.at(aside, at, "i8"))
            f.set(index, f.add(f.get(index), 1))
    f.return_(f.get(lost))
    return f.source()


def _ids(kind: TableKind, *, shared: bool) -> str:
    state = _state(kind.words)
    return (
        _search(kind, "find", [("shared", POINTER), *_SHAPE, ("hash", I64), *state], insert=None)
        + _search(
            kind,
            "insert",
            [("shared", POINTER), ("spare", POINTER), *_SHAPE, ("hash", I64), *state],
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
        bucket = _bucket(f, kind, address)
        free = _free(f, kind, bucket)
        tags = _splat_and(f, kind, bucket, -(1 << 32))
        same = f.variable(f.and_(_matches(f, kind, tags, tag), f.xor(free, -1)))
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
                lane = f.at(address, _lowest(f, free), I64)
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
    lane = f.at(address, _lowest(f, lanes), I64)
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
        free = _free(g, kind, _bucket(g, kind, address))
        with g.when(g.compare("ne", free, 0)):
            g.store(address, _lowest(g, free), g["entry"])
            g.return_(0)
        g.set(distance, g.add(g.get(distance), 1))
    g.return_(FULL)
    return g.source("alwaysinline") + f.source() + _rename(kind)


def _rename(kind: TableKind) -> str:
    state = _state(kind.words)
    f = Function("rename", [("shared", POINTER), ("old", I64), ("new", I64), *state], local=False)
    shape = shape_of(f, kind, f["shared"])
    hashed = f.call("@hash", [f[name] for name, _ in state])
    home = f.lshr(hashed, shape.rest)
    old = f.or_(f.shl(hashed, 32), f.add(f["old"], 1))
    distance = f.variable(0)
    with f.loop(lambda: f.compare("ule", f.get(distance), FARTHEST)):
        at = f.mul(f.add(home, f.get(distance)), BUCKET_BYTES)
        address = f.at(shape.table, at, "i8")
        found = _matches(f, kind, _bucket(f, kind, address), old)
        with f.when(f.compare("ne", found, 0)):
            new = f.or_(f.shl(hashed, 32), f.add(f["new"], 1))
            f.store(address, _lowest(f, found), new)
            f.return_(0)
        f.set(distance, f.add(f.get(distance), 1))
    f.return_(FULL)
    return f.source()
