"""The bitmap: one bit for every state that there could be."""

from __future__ import annotations

from stagewright.checker.explicit.native.code.llvm_text import I64, POINTER, Function, Value
from stagewright.checker.explicit.native.visited_set.buckets import SHAPE, state_parameters


def bitmap_source(*, shared: bool) -> str:
    h = Function("hash", state_parameters(1))
    h.return_(h["w0"])
    parameters = [
        ("shared", POINTER),
        ("spare", POINTER),
        *SHAPE,
        ("hash", I64),
        *state_parameters(1),
    ]
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
