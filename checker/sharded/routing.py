"""Generates `route`: expands a shard's states and puts each successor into the buffer of its shard.

A shard is chosen by a hash of its own, so that the states of one shard still spread over all of its
table. A filter, one place for each of the last bits of that hash, remembers the last successor that
came by, and drops it when it comes again: what slips through is found to be known by its shard.
"""

from __future__ import annotations

from stagewright.checker.explicit.native.code.llvm_text import (
    I64,
    MODULE_END,
    POINTER,
    Function,
    Value,
)

BLOCK = 8  # states expanded at once

# Places in the job, in 64-bit numbers. Addresses: EXPAND (the function), OUT, OBSERVED, BUFFERS (`ROOM`
# states a shard), COUNTS (states a buffer), FILTER.
EXPAND, OUT, OBSERVED, BUFFERS, COUNTS, FILTER = range(6)
FILTER_MASK, SHARDS, ROOM, ENOUGH, FULL, NEXT, TRANSITIONS = range(6, 13)
JOB_SIZE = 13

_MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def routing_source(words: int, canonical: str = "") -> str:
    """LLVM text of `route(states, count, job)` and `send(states, count, job)`.

    `send` puts states into buffers, and sets FULL once one of them holds more than ENOUGH. `route`
    begins with state NEXT and returns when all are expanded or FULL is set. `canonical`: text of a
    function `canonical(states, count)`, if successors are to be replaced before they are sent.
    """
    routing = _send(words) + _route(words, canonical=bool(canonical))
    return _shard_hash(words) + canonical + routing + MODULE_END


def _shard_hash(words: int) -> str:
    f = Function("shard_hash", [(f"w{i}", I64) for i in range(words)])
    value = Value("0", I64)
    for i in range(words):
        value = f.mul(f.xor(value, f[f"w{i}"]), _MULTIPLIERS[0])
        value = f.xor(value, f.lshr(value, 29))
    value = f.mul(value, _MULTIPLIERS[1])
    f.return_(f.xor(value, f.lshr(value, 32)))
    return f.source("alwaysinline")


def _send(words: int) -> str:
    f = Function("send", [("states", POINTER), ("count", I64), ("job", POINTER)], local=False)
    job, index = f["job"], f.variable(0)
    filtered, mask = f.load(job, FILTER, POINTER), f.load(job, FILTER_MASK)
    buffers, counts = f.load(job, BUFFERS, POINTER), f.load(job, COUNTS, POINTER)
    shards, room, enough = f.load(job, SHARDS), f.load(job, ROOM), f.load(job, ENOUGH)
    with f.loop(lambda: f.compare("ult", f.get(index), f["count"])):
        base = f.mul(f.get(index), words)
        state = [f.load(f["states"], f.add(base, w)) for w in range(words)]
        hashed = f.call("@shard_hash", state)
        place = f.at(filtered, f.mul(f.and_(hashed, mask), words))
        new = f.compare("eq", state[0], -1)  # a free place of the filter looks like this
        for w, word in enumerate(state):
            new = f.or_(new, f.compare("ne", word, f.load(place, w)))
        with f.when(new):
            for w, word in enumerate(state):
                f.store(place, w, word)
            shard = f.lshr(f.mul(f.lshr(hashed, 32), shards), 32)
            count = f.load(counts, shard)
            target = f.at(buffers, f.mul(f.add(f.mul(shard, room), count), words))
            for w, word in enumerate(state):
                f.store(target, w, word)
            f.store(counts, shard, f.add(count, 1))
            with f.when(f.compare("uge", count, enough), likely=False):
                f.store(job, FULL, 1)
        f.set(index, f.add(f.get(index), 1))
    f.return_(0)
    return f.source()


def _route(words: int, *, canonical: bool) -> str:
    f = Function("route", [("states", POINTER), ("count", I64), ("job", POINTER)], local=False)
    job = f["job"]
    expand, out = f.load(job, EXPAND, POINTER), f.load(job, OUT, POINTER)
    observed, null = f.load(job, OBSERVED, POINTER), Value("null", POINTER)
    with f.loop(lambda: f.compare("ult", f.load(job, NEXT), f["count"])):
        first = f.load(job, NEXT)
        left = f.sub(f["count"], first)
        count = f.select(f.compare("ult", left, BLOCK), left, Value(str(BLOCK), I64))
        states = f.at(f["states"], f.mul(first, words))
        found = f.call(expand.text, [states, count, out, observed, null, null, null])
        if canonical:
            f.call("@canonical", [out, found])
        f.increase(job, TRANSITIONS, found)
        f.store(job, NEXT, f.add(first, count))
        f.call("@send", [out, found, job])
        with f.when(f.compare("ne", f.load(job, FULL), 0), likely=False):
            f.return_(0)
    f.return_(0)
    return f.source()
