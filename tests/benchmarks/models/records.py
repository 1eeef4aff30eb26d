"""The models for `musil`: states are frozen dataclasses, sets are bit masks, steps are actions.

    python -m tests.benchmarks.models.records NAME SIZE...

checks one with musil and prints what it found as JSON. Every state may be a last one: no deadlock is
looked for, as in all peers.
"""

from __future__ import annotations

import importlib
import itertools
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Generic, NamedTuple, TypeVar

from tests.benchmarks.cases import Size

S = TypeVar("S")
MOST_STATES = 1 << 40


class Step(NamedTuple, Generic[S]):
    """A step: its name, whether it is enabled, the state after it."""

    name: str
    enabled: Callable[[S], bool]
    after: Callable[[S], S]


class RecordModel(NamedTuple, Generic[S]):
    """What musil wants to know."""

    initial: Sequence[S]
    steps: Sequence[Step[S]]
    invariant: Callable[[S], bool]


@dataclass(frozen=True, slots=True)
class TwoPhase:
    """A decision is a bit in each of two masks: 00 working, 01 prepared, 10 committed, 11 aborted."""

    deciding: bool = True
    commit_sent: bool = False
    abort_sent: bool = False
    high: int = 0
    low: int = 0
    heard: int = 0
    sent: int = 0


def two_phase_commit(managers: int) -> RecordModel[TwoPhase]:
    """Two-phase commit."""
    every = (1 << managers) - 1

    def steps_of(one: int) -> Iterator[Step[TwoPhase]]:
        yield Step(
            "hear_prepared",
            lambda s: s.deciding and bool(s.sent & one),
            lambda s: replace(s, heard=s.heard | one),
        )
        yield Step(
            "prepare",
            lambda s: not (s.high | s.low) & one,
            lambda s: replace(s, low=s.low | one, sent=s.sent | one),
        )
        yield Step(
            "choose_to_abort",
            lambda s: not (s.high | s.low) & one,
            lambda s: replace(s, high=s.high | one, low=s.low | one),
        )
        yield Step(
            "hear_commit",
            lambda s: s.commit_sent,
            lambda s: replace(s, high=s.high | one, low=s.low & ~one),
        )
        yield Step(
            "hear_abort",
            lambda s: s.abort_sent,
            lambda s: replace(s, high=s.high | one, low=s.low | one),
        )

    steps = [
        Step[TwoPhase](
            "commit",
            lambda s: s.deciding and s.heard == every,
            lambda s: replace(s, deciding=False, commit_sent=True),
        ),
        Step[TwoPhase](
            "abort", lambda s: s.deciding, lambda s: replace(s, deciding=False, abort_sent=True)
        ),
        *itertools.chain.from_iterable(steps_of(1 << m) for m in range(managers)),
    ]
    return RecordModel([TwoPhase()], steps, lambda s: not (s.high & s.low and s.high & ~s.low))


@dataclass(frozen=True, slots=True)
class Ring:
    """Who is busy and who is black, as masks; where the token is."""

    busy: int
    black: int
    token: int
    token_black: bool = True


def ewd840(nodes: int) -> RecordModel[Ring]:
    """Termination detection in a ring."""

    def send(n: int, to: int) -> Step[Ring]:
        darker = 1 << n if to > n else 0
        return Step(
            "send",
            lambda s: bool(s.busy >> n & 1),
            lambda s: replace(s, busy=s.busy | 1 << to, black=s.black | darker),
        )

    def steps_of(n: int) -> Iterator[Step[Ring]]:
        here = 1 << n
        if n > 0:
            yield Step(
                "pass_token",
                lambda s: (
                    s.token == n and (not s.busy & here or bool(s.black & here) or s.token_black)
                ),
                lambda s: replace(
                    s,
                    token=n - 1,
                    black=s.black & ~here,
                    token_black=s.token_black or bool(s.black & here),
                ),
            )
        yield from (send(n, to) for to in range(nodes) if to != n)
        yield Step(
            "deactivate", lambda s: bool(s.busy & here), lambda s: replace(s, busy=s.busy & ~here)
        )

    probe = Step[Ring](
        "initiate_probe",
        lambda s: s.token == 0 and (s.token_black or bool(s.black & 1)),
        lambda s: replace(s, token=nodes - 1, token_black=False, black=s.black & ~1),
    )
    masks = range(1 << nodes)
    initial = [Ring(*values) for values in itertools.product(masks, masks, range(nodes))]
    steps = [probe, *itertools.chain.from_iterable(map(steps_of, range(nodes)))]

    def detection_is_right(s: Ring) -> bool:
        detected = s.token == 0 and not (s.token_black or (s.busy | s.black) & 1)
        return not (detected and s.busy)

    return RecordModel(initial, steps, detection_is_right)


@dataclass(frozen=True, slots=True)
class Tablets:
    """The stages; what each node has learned of each tablet; who is up, as a mask."""

    stage: tuple[int, ...]
    learned: tuple[tuple[int, ...], ...]
    up: int


def _put(values: tuple[S, ...], at: int, value: S) -> tuple[S, ...]:
    return (*values[:at], value, *values[at + 1 :])


def tablet_barrier(tablets: int, nodes: int) -> RecordModel[Tablets]:
    """Tablets behind barriers."""
    last, nothing = 6, (0,) * tablets

    def advance(t: int) -> Step[Tablets]:
        def enabled(s: Tablets) -> bool:
            stage = s.stage[t]
            known = (not s.up >> n & 1 or s.learned[n][t] == stage for n in range(nodes))
            return stage < last and s.up != 0 and all(known)

        return Step(
            "advance", enabled, lambda s: replace(s, stage=_put(s.stage, t, s.stage[t] + 1))
        )

    def learn(n: int, t: int) -> Step[Tablets]:
        def after(s: Tablets) -> Tablets:
            learned = _put(s.learned[n], t, s.stage[t])
            return replace(s, learned=_put(s.learned, n, learned))

        return Step("learn", lambda s: bool(s.up >> n & 1) and s.learned[n][t] != s.stage[t], after)

    def fates(n: int) -> Iterator[Step[Tablets]]:
        yield Step(
            "crash",
            lambda s: bool(s.up >> n & 1),
            lambda s: replace(s, up=s.up & ~(1 << n), learned=_put(s.learned, n, nothing)),
        )
        yield Step(
            "restart",
            lambda s: not s.up >> n & 1,
            lambda s: replace(s, up=s.up | 1 << n, learned=_put(s.learned, n, s.stage)),
        )

    steps = [advance(t) for t in range(tablets)]
    steps += [learn(n, t) for n in range(nodes) for t in range(tablets)]
    steps += itertools.chain.from_iterable(map(fates, range(nodes)))

    def at_most_one_behind(s: Tablets) -> bool:
        return all(
            not s.up >> n & 1 or s.stage[t] <= s.learned[n][t] + 1
            for n in range(nodes)
            for t in range(tablets)
        )

    start = Tablets(nothing, (nothing,) * nodes, (1 << nodes) - 1)
    return RecordModel([start], steps, at_most_one_behind)


def record_model(
    name: str, size: Size
) -> RecordModel[TwoPhase] | RecordModel[Ring] | RecordModel[Tablets]:
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


def count_reachable(name: str, size: Size) -> int:
    """How many states there are in which the invariant holds, by the plainest search; for tests."""
    match name, size:
        case "two_phase_commit", (managers,):
            return _count(two_phase_commit(managers))
        case "ewd840", (nodes,):
            return _count(ewd840(nodes))
        case "tablet_barrier", (tablets, nodes):
            return _count(tablet_barrier(tablets, nodes))
        case _:
            raise AssertionError(name)


def _count(model: RecordModel[S]) -> int:
    seen = set(model.initial)
    waiting = list(model.initial)
    while waiting:
        state = waiting.pop()
        for step in model.steps:
            if step.enabled(state) and (after := step.after(state)) not in seen:
                seen.add(after)
                waiting.append(after)
    return sum(map(model.invariant, seen))


def main(name: str, *size: str) -> None:
    """Check with musil and print what it found."""
    musil = importlib.import_module("musil")  # may not be installed where types are checked
    model = record_model(name, tuple(map(int, size)))
    checked = musil.check(
        musil.Model(
            init=model.initial,
            actions=[musil.Action(*step) for step in model.steps],
            invariants={"promise": model.invariant},
            terminal=lambda _: True,
        ),
        max_states=MOST_STATES,
    )
    print(json.dumps({"states": checked.states_explored, "holds": checked.ok}))


if __name__ == "__main__":
    main(*sys.argv[1:])
