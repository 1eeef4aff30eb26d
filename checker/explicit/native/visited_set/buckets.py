"""What all tables of visited states have in common: their kinds, their shape, and buckets of one cache line."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from stagewright.checker.explicit.native.code.llvm_text import I64, POINTER, Function, Value

BUCKET_BYTES = 64
SPARE_BUCKETS = 1024  # after the last home bucket: nothing wraps around
FARTHEST = SPARE_BUCKETS - 2  # buckets from home
FULL = -1
MULTIPLIERS = (0xD6E8FEB86659FD93, 0x9E3779B97F4A7C15)
_SMALLEST_HASH = 30  # bits: more than a table ever has buckets
_LEAST_DISTANCE_BITS = 3
_SMALLEST_BITMAP, _LARGEST_BITMAP = 9, 30  # bits of a state: one cache line, 128 MiB
_LINE_BITS = 9  # a cache line has 2^9 bits

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


def kind_for(
    words: int, bits: int, log_buckets: int, *, ids: bool = False, memory: int = 1 << 62
) -> TableKind:
    """The most compact kind for states of so many words and bits; with `ids`, one that knows places.

    `memory`: so many bytes there are for the table and the states.
    """
    if words > 1 or ids:
        return TableKind(words, bits, 64, Storage.PLACES)
    if bits <= _LARGEST_BITMAP and 1 << bits < 4 * memory:  # half of it, in bits
        return TableKind(words, max(bits, _SMALLEST_BITMAP), 1, Storage.BITMAP)
    narrow, wide = (
        TableKind(words, max(bits, _SMALLEST_HASH), slot, Storage.QUOTIENTS) for slot in (32, 64)
    )
    return narrow if narrow.fits(log_buckets) else wide


def state_parameters(words: int) -> list[tuple[str, str]]:
    return [(f"w{i}", I64) for i in range(words)]


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


SHAPE = [
    ("table", POINTER),
    ("rest", I64),
    ("distance_bits", I64),
    ("remainder", I64),
    ("farthest", I64),
]


def shape_of(f: Function, kind: TableKind, shared: Value) -> Shape:
    """The shape of the table that workers share."""
    return shape_with(f, kind, f.load(shared, TABLE, POINTER), f.load(shared, BITS))


def shape_with(f: Function, kind: TableKind, table: Value, bits: Value) -> Shape:
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


def shape_given(f: Function) -> Shape:
    return Shape(*(f[name] for name, _ in SHAPE))


def prefetch(f: Function, shape: Shape, hashed: Value) -> None:
    """Ask for the home bucket's cache line ahead of its use."""
    address = f.at(shape.table, f.mul(f.lshr(hashed, shape.rest), BUCKET_BYTES), "i8")
    f.statement(f"call void @llvm.prefetch.p0({address}, i32 1, i32 3, i32 1)")


def matches(f: Function, kind: TableKind, bucket: Value, wanted: Value) -> Value:
    """A mask of the lanes of a bucket that equal a number."""
    lanes, vector = kind.slots, kind.vector
    one = f.op(f"insertelement {vector} poison, {wanted}, i32 0", vector)
    all_ = f.op(f"shufflevector {one}, {vector} poison, <{lanes} x i32> zeroinitializer", vector)
    return _mask(f, kind, f.op(f"icmp eq {bucket}, {all_.text}", f"<{lanes} x i1>"))


def _mask(f: Function, kind: TableKind, lanes: Value) -> Value:
    return f.zext(f.op(f"bitcast {lanes} to i{kind.slots}", f"i{kind.slots}"))


def free_lanes(f: Function, kind: TableKind, bucket: Value) -> Value:
    lanes = f.op(f"icmp eq {bucket}, zeroinitializer", f"<{kind.slots} x i1>")
    return _mask(f, kind, lanes)


def load_bucket(f: Function, kind: TableKind, address: Value) -> Value:
    return f.op(f"load {kind.vector}, {address}, align {BUCKET_BYTES}", kind.vector)


def lowest(f: Function, mask: Value) -> Value:
    return f.call("@llvm.cttz.i64", [mask, Value("true", "i1")])
