"""The table of quotients: what its bucket does not hold of a state's hash stands in a slot."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from stagewright.checker.explicit.native.code.llvm_text import I64, POINTER, Function, Value
from stagewright.checker.explicit.native.visited_set.buckets import (
    BUCKET_BYTES,
    FULL,
    MULTIPLIERS,
    SHAPE,
    SPARE_BUCKETS,
    TableKind,
    free_lanes,
    load_bucket,
    lowest,
    matches,
    shape_given,
    shape_with,
    state_parameters,
)

_STRIP = 4 * SPARE_BUCKETS
_WORTH_SHARING = 16 * _STRIP
_LOW = 2 * SPARE_BUCKETS  # buckets that growing in place must set aside


def quotients_source(kind: TableKind, *, shared: bool) -> str:
    place = _place_quotient(kind, shared=shared)
    parameters = [
        ("shared", POINTER),
        ("spare", POINTER),
        *SHAPE,
        ("hash", I64),
        *state_parameters(1),
    ]
    f = Function("insert", parameters)
    f.return_(f.call("@place", [*shape_given(f).arguments, f["hash"]]))
    return place + f.source("alwaysinline") + _grow(kind)


def _place_quotient(kind: TableKind, *, shared: bool) -> str:
    """`place(shape..., hash)`: put a hash into the table."""
    slot = f"i{kind.slot}"
    f = Function("place", [*SHAPE, ("hash", I64)])
    shape = shape_given(f)
    home = f.lshr(f["hash"], shape.rest)
    key = f.add(f.shl(f.and_(f["hash"], shape.remainder), shape.distance_bits), 1)
    distance = f.variable(0)
    with f.loop(lambda: f.compare("ule", f.get(distance), shape.farthest)):
        at = f.mul(f.add(home, f.get(distance)), BUCKET_BYTES)
        address = f.at(f["table"], at, "i8")
        bucket = load_bucket(f, kind, address)
        wanted = f.trunc(f.add(key, f.get(distance)), slot)
        with f.when(f.compare("ne", matches(f, kind, bucket, wanted), 0)):
            f.return_(0)
        free = free_lanes(f, kind, bucket)
        with f.when(f.compare("eq", free, 0), likely=False):
            f.set(distance, f.add(f.get(distance), 1))
        with f.when(f.compare("ne", free, 0)):
            lane = f.at(address, lowest(f, free), slot)
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
    """`grow(table, bits, by, first, after)` moves states to their buckets among 2^by times as many.

    It takes those of the old buckets `first .. after`, and returns how many found no new one.
    From the last bucket down, states move to where nothing is left to be moved; the lowest buckets,
    for which this is not so, are set aside first (with `first` 0). Memory behind the table must be zero.
    """
    slot = f"i{kind.slot}"
    numbers = ("bits", "by", "first", "after")
    f = Function("grow", [("table", POINTER), *((name, I64) for name in numbers)], local=False)
    aside = f.op(f"alloca i8, i64 {_LOW * BUCKET_BYTES}, align {BUCKET_BYTES}", POINTER)
    lost = f.variable(0)
    grown = shape_with(f, kind, f["table"], f.add(f["bits"], f["by"]))
    left = f.variable(f["after"])
    whole = f.compare("eq", f["first"], 0)
    down_to = f.select(whole, _LOW, f["first"])

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
        f.statement(f"store {load_bucket(f, kind, source)}, {target}, align {BUCKET_BYTES}")
        f.statement(f"store {kind.vector} zeroinitializer, {source}, align {BUCKET_BYTES}")

    with f.loop(lambda: f.compare("ugt", f.get(left), down_to)):
        f.set(left, f.sub(f.get(left), 1))
        take(f.at(f["table"], f.mul(f.get(left), BUCKET_BYTES), "i8"), aside)
        move(aside, f.get(left))
    low = f.select(whole, f.get(left), Value("0", I64))
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


def stages(bits: int, shares: int) -> Iterator[list[tuple[int, int]]]:
    """In what order to grow a table of 2^bits buckets: ranges of buckets that may move at once.

    The upper half of what is left moves to where nothing is left, but for a strip at its end, which must
    have gone before; then the next half.
    """
    end = (1 << bits) + SPARE_BUCKETS
    while shares > 1 and end > _WORTH_SHARING:
        strip, half = end - _STRIP, end // 2
        yield [(strip, end)]
        cuts = [half + (strip - half) * i // shares for i in range(shares + 1)]
        yield list(pairwise(cuts))
        end = half
    yield [(0, end)]


def permutation_source(kind: TableKind) -> str:
    """A permutation of the numbers of so many bits that spreads every bit into the highest ones."""
    f = Function("hash", state_parameters(1))
    half, mask = (kind.bits + 1) // 2, (1 << kind.bits) - 1
    value = f["w0"]
    for multiplier in MULTIPLIERS:
        value = f.xor(value, f.lshr(value, half))
        value = f.mul(value, multiplier)
        if kind.bits < 64:
            value = f.and_(value, mask)
    f.return_(f.xor(value, f.lshr(value, half)))
    return f.source("alwaysinline")
