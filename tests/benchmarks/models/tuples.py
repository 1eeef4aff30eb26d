"""The models for `minicheck`: states are tuples, sets are bit masks, successors a function.

    python -m tests.benchmarks.models.tuples NAME SIZE...

checks one with minicheck and prints what it found as JSON. A start before all initial states stands
for them where there are several, as minicheck has one initial state.
"""

from __future__ import annotations

import importlib
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from tests.benchmarks.cases import Size

State = tuple[int, ...]
Labelled = list[tuple[str, State]]
MOST_STATES = 1 << 40


class TupleModel(NamedTuple):
    """What minicheck wants to know."""

    fields: tuple[str, ...]
    initial: State
    successors: Callable[[State], Labelled]
    invariant: Callable[[Mapping[str, int]], bool]


def two_phase_commit(managers: int) -> TupleModel:
    """A decision is a bit in each of two masks: 00 working, 01 prepared, 10 committed, 11 aborted."""
    every = (1 << managers) - 1
    ones = [1 << m for m in range(managers)]

    def successors(state: State) -> Labelled:
        deciding, commit_sent, abort_sent, high, low, heard, sent = state
        out: Labelled = []
        if deciding:
            if heard == every:
                out.append(("commit", (0, 1, abort_sent, high, low, heard, sent)))
            out.append(("abort", (0, commit_sent, 1, high, low, heard, sent)))
        for one in ones:
            if deciding and sent & one:
                after = (deciding, commit_sent, abort_sent, high, low, heard | one, sent)
                out.append(("hear_prepared", after))
            if not (high | low) & one:
                after = (deciding, commit_sent, abort_sent, high, low | one, heard, sent | one)
                out.append(("prepare", after))
                after = (deciding, commit_sent, abort_sent, high | one, low | one, heard, sent)
                out.append(("choose_to_abort", after))
            if commit_sent:
                after = (deciding, commit_sent, abort_sent, high | one, low & ~one, heard, sent)
                out.append(("hear_commit", after))
            if abort_sent:
                after = (deciding, commit_sent, abort_sent, high | one, low | one, heard, sent)
                out.append(("hear_abort", after))
        return out

    return TupleModel(
        ("deciding", "commit_sent", "abort_sent", "high", "low", "heard", "sent"),
        (1, 0, 0, 0, 0, 0, 0),
        successors,
        lambda s: not (s["high"] & s["low"] and s["high"] & ~s["low"]),
    )


def ewd840(nodes: int) -> TupleModel:
    """A token of -1 is the start before all initial states."""
    every = (1 << nodes) - 1

    def successors(state: State) -> Labelled:
        busy, black, token, token_black = state
        if token < 0:
            masks = range(every + 1)
            return [("begin", (*s, 1)) for s in itertools.product(masks, masks, range(nodes))]
        out: Labelled = []
        here = 1 << token
        if token == 0:
            if token_black or black & 1:
                out.append(("initiate_probe", (busy, black & ~1, nodes - 1, 0)))
        elif not busy & here or black & here or token_black:
            blackened = token_black | (black >> token & 1)
            out.append(("pass_token", (busy, black & ~here, token - 1, blackened)))
        for n in range(nodes):
            if busy >> n & 1:
                darker = black | 1 << n
                for to in range(nodes):
                    if to != n:
                        after = (busy | 1 << to, darker if to > n else black, token, token_black)
                        out.append(("send", after))
                out.append(("deactivate", (busy & ~(1 << n), black, token, token_black)))
        return out

    def detection_is_right(s: Mapping[str, int]) -> bool:
        detected = s["token"] == 0 and not (s["token_black"] or (s["busy"] | s["black"]) & 1)
        return not (detected and s["busy"])

    fields = ("busy", "black", "token", "token_black")
    return TupleModel(fields, (0, 0, -1, 0), successors, detection_is_right)


def tablet_barrier(tablets: int, nodes: int) -> TupleModel:
    """The stages, then what each node has learned of each tablet, then whether each node is up."""
    first_up = tablets * (1 + nodes)
    last = 6

    def successors(s: State) -> Labelled:
        out: Labelled = []
        live = [n for n in range(nodes) if s[first_up + n]]
        for t in range(tablets):
            stage = s[t]
            ats = [(n + 1) * tablets + t for n in live]
            if live and stage < last and all(s[at] == stage for at in ats):
                out.append(("advance", (*s[:t], stage + 1, *s[t + 1 :])))
            out.extend(("learn", (*s[:at], stage, *s[at + 1 :])) for at in ats if s[at] != stage)
        for n in range(nodes):
            begin, end, up = (n + 1) * tablets, (n + 2) * tablets, first_up + n
            known = (0,) * tablets if s[up] else s[:tablets]
            after = (*s[:begin], *known, *s[end:up], 1 - s[up], *s[up + 1 :])
            out.append(("crash" if s[up] else "restart", after))
        return out

    cells = [(f"s{t}", f"l{n}_{t}", f"up{n}") for n in range(nodes) for t in range(tablets)]

    def at_most_one_behind(s: Mapping[str, int]) -> bool:
        return all(not s[up] or s[stage] <= s[learned] + 1 for stage, learned, up in cells)

    fields = [f"s{t}" for t in range(tablets)]
    fields += [f"l{n}_{t}" for n in range(nodes) for t in range(tablets)]
    fields += [f"up{n}" for n in range(nodes)]
    initial = (0,) * first_up + (1,) * nodes
    return TupleModel(tuple(fields), initial, successors, at_most_one_behind)


def tuple_model(name: str, size: Size) -> TupleModel:
    """The model of that name."""
    match name, size:
        case "two_phase_commit", (managers,):
            return two_phase_commit(managers)
        case "ewd840", (nodes,):
            return ewd840(nodes)
        case "tablet_barrier", (tablets, nodes):
            return tablet_barrier(tablets, nodes)
        case _:
            raise AssertionError(name)


def reachable(model: TupleModel) -> Iterator[State]:
    """All states, by the plainest search; for tests."""
    seen = {model.initial}
    waiting = [model.initial]
    while waiting:
        state = waiting.pop()
        yield state
        for _, after in model.successors(state):
            if after not in seen:
                seen.add(after)
                waiting.append(after)


def main(name: str, *size: str) -> None:
    """Check with minicheck and print what it found."""
    minicheck = importlib.import_module("minicheck")  # may not be installed where types are checked
    model = tuple_model(name, tuple(map(int, size)))
    protocol = minicheck.Protocol(
        name=name,
        candidate=False,
        fields=model.fields,
        initial=model.initial,
        transitions=model.successors,
        invariants={"promise": model.invariant},
    )
    found = minicheck.check_safety(protocol, max_states=MOST_STATES)
    promise = found["properties"]["promise"]
    print(json.dumps({"states": found["reachable_states"], "holds": promise["holds"] is True}))


if __name__ == "__main__":
    main(*sys.argv[1:])
