"""What a trace has is not bounded by what a check needs: numbers that are larger than they are declared."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from pyspark.sql import SparkSession

from stagewright.spec import (
    Bool,
    Entity,
    FlagVar,
    Machine,
    NumberVar,
    Record,
    Term,
    action,
    bounded,
    every,
    flag,
    invariant,
    number,
    per,
    record,
    require,
)
from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.derived.open_ended import LARGEST, open_ended
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import scope_of
from stagewright.spec.sorts import IntSort, MapSort, RecordSort, Sort
from stagewright.spec.trace import TraceVerdict, observation
from stagewright.spec.values import plain
from stagewright.traces.automaton.nfa import automaton
from stagewright.traces.automaton.subset_automaton import DEAD, START, Determinised
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.events.observability import HiddenSteps, Recording
from stagewright.traces.events.symbols import Symbol
from stagewright.traces.explain import failed_guard
from stagewright.traces.explain.replay_window import NotExplainedError, Seen, Window
from stagewright.traces.options import Options
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate


class Member(Entity, scope=2):
    """Who learns of versions."""


class View(Record):
    """What a member knows."""

    version = number(0, 3)


class Versions(Machine):
    """A version grows, a fence follows, members learn; a check looks at three changes."""

    version: NumberVar = number(0, 3)
    fence: NumberVar = number(0, 3)
    moved: FlagVar = flag()
    view = per(Member, record(View))

    @action
    def change(self) -> None:
        """The topology changes."""
        require(self.version < self.fence + 2, "the fence is near")
        self.version = self.version + 1
        self.moved = True

    @action
    def raise_fence(self) -> None:
        """All know the version."""
        require(self.moved, "there is something to fence")
        require(every(self.view[m].version == self.version for m in Member), "all know it")
        self.fence = self.version
        self.moved = False

    @action
    def learn(self, m: Term[Member]) -> None:
        """A member learns the version."""
        require(self.view[m].version < self.version, "there is news")
        self.view[m].version = self.version

    @invariant
    def the_fence_is_behind(self) -> Bool:
        """No request of the current version is fenced off."""
        return self.fence <= self.version


DEFINITION = define(Versions)
SCOPE = scope_of(DEFINITION)
BEYOND_ALL = 1_000


def roomy(definition: Definition) -> Definition:
    """The same machine, declared as large as no trace here gets."""
    return replace(
        definition,
        variables=tuple(replace(v, sort=_roomy(v.sort)) for v in definition.variables),
    )


def _roomy(sort: Sort) -> Sort:
    match sort:
        case IntSort(low):
            return IntSort(low, BEYOND_ALL)
        case MapSort(key, value):
            return MapSort(key, _roomy(value))
        case RecordSort(kind, fields):
            return RecordSort(kind, tuple((name, _roomy(field)) for name, field in fields))
        case _:
            return sort


@dataclass(frozen=True)
class Walk:
    """What happened, as its recorder says it: each step with a part of the state after it."""

    steps: tuple[tuple[str, Mapping[str, object], Mapping[str, object]], ...]

    def symbols(self) -> list[str]:
        first = Symbol(None, {}, {}).text
        return [first, *(Symbol(*step).text for step in self.steps)]


@st.composite
def walks(draw: st.DrawFn) -> Walk:
    """A run of up to sixty steps, of which each is observed in part; in some one number is wrong."""
    interpreter = Interpreter(DEFINITION, SCOPE, bounded=False)
    state = next(interpreter.initial_states())
    rng = draw(st.randoms(use_true_random=False))
    wrong = draw(st.none() | st.integers(0, 59))
    steps: list[tuple[str, Mapping[str, object], Mapping[str, object]]] = []
    for place in range(draw(st.integers(20, 60))):
        step, state = rng.choice(list(interpreter.successors(state)))
        leaves = {k: v for k, v in observation(state).items() if rng.random() < 0.4}
        if place == wrong:
            leaves["version"] = int(str(observation(state)["version"])) + rng.choice([-1, 1, 40])
        said = {name: plain(value) for name, value in step.arguments.items() if rng.random() < 0.8}
        steps.append((step.action, said, leaves))
    return Walk(tuple(steps))


def refused_at(definition: Definition, walk: Walk) -> int | None:
    """The first event that no run of the definition explains."""
    running = Determinised(automaton(definition, SCOPE))
    number = START
    for place, symbol in enumerate(walk.symbols()):
        number = running.advance(number, symbol)
        if number == DEAD:
            return place
        assert running.is_live(number)
    return None


def slowly_refused_at(walk: Walk) -> int | None:
    """The same as the reference interpreter says it."""
    interpreter = Interpreter(DEFINITION, SCOPE, bounded=False)
    possible = list(interpreter.initial_states())
    for place, step in enumerate(walk.steps):
        symbol = Symbol(*step)
        meant = list(failed_guard.steps_meant(interpreter, symbol))
        found = [failed_guard.taken(interpreter, one, s) for s in possible for one in meant]
        possible = [s for s in dict.fromkeys(found) if s and failed_guard.fits(s, symbol.observed)]
        if not possible:
            return place + 1
    return None


@settings(max_examples=25)
@given(walks())
def test_verdicts_are_those_of_a_larger_declaration_and_of_the_interpreter(walk: Walk) -> None:
    found = refused_at(DEFINITION, walk)
    assert found == slowly_refused_at(walk)
    assert found == refused_at(roomy(DEFINITION), walk)


LONG = [
    step
    for n in range(1, 50)
    for step in [
        ("change", {}, {"version": n}),
        ("learn", {"m": "member0"}, {"view[member0].version": n}),
        ("learn", {"m": "member1"}, {}),
        ("raise_fence", {}, {"fence": n}),
    ]
]
LATE: list[tuple[str, dict[str, str], dict[str, int]]] = [*LONG[:-2], *LONG[-1:]]  # not all know it


def written(path: Path) -> Path:
    """One trace that is right, one whose fence is raised too early."""
    lines: list[str] = []
    for entity, steps in {"right": LONG, "wrong": LATE}.items():
        common = {"v": 1, "machine": "Versions", "entity": entity}
        events: list[dict[str, object]] = [{}]
        events += [{"action": a, "params": p, "observed": seen} for a, p, seen in steps]
        events.append({"end": True})
        lines += [json.dumps({**common, "seq": i, **event}) for i, event in enumerate(events)]
    path.write_text("\n".join(lines) + "\n")
    return path


def check(report: TraceReport) -> None:
    wrong = next(e for e in report.entities if e.key.entity == "wrong")
    assert {e.key.entity: e.verdict for e in report.entities} == {"wrong": TraceVerdict.VIOLATION}
    assert report.verdicts[TraceVerdict.OK] == 1
    assert wrong.explanation is not None
    assert [name for name, _ in wrong.explanation.failed] == ["all know it"]
    assert wrong.explanation.window is not None
    version = observation(wrong.explanation.window.run.states[-1])["version"]
    assert version == 49, "states are decoded"


def test_a_long_trace_is_checked_to_its_end(tmp_path: Path) -> None:
    check(validate([written(tmp_path / "t.jsonl")], DEFINITION, Options(), engine=Embedded(1)))


def test_spark_checks_it_to_its_end(tmp_path: Path, spark: SparkSession) -> None:
    check(validate([written(tmp_path / "t.jsonl")], DEFINITION, Options(), spark=spark))


def test_the_test_of_a_violation_replays_numbers_that_are_larger_than_declared(
    tmp_path: Path,
) -> None:
    report = validate([written(tmp_path / "t.jsonl")], DEFINITION, Options(), engine=Embedded(1))
    (entity,) = report.entities
    assert entity.explanation is not None
    window = entity.explanation.window
    assert window is not None
    with pytest.raises(NotExplainedError, match="all know it"):
        Window(DEFINITION).replay([observation(s) for s in window.states or ()], window.events)


HIDDEN = Recording(HiddenSteps(frozenset({"learn", "change"})), end_marked=False)


@pytest.mark.parametrize("begin", [0, 2, 3, 40])
def test_hidden_steps_are_followed_to_what_is_observed(begin: int) -> None:
    """There is no end to changes that nothing records: they are looked for within bounds, or up to what is seen."""
    running = Determinised(automaton(DEFINITION, SCOPE, HIDDEN))
    symbols = [Symbol(None, {}, {})]
    symbols += [Symbol("raise_fence", {}, {"fence": n}) for n in [*range(1, begin + 1), begin + 2]]
    number = START
    for symbol in symbols:
        number = running.advance(number, symbol.text)
        assert running.is_live(number), symbol
    assert running.advance(number, Symbol("raise_fence", {}, {"fence": begin}).text) == DEAD
    seen = [Seen(n, s.action, s.parameters, s.observed) for n, s in enumerate(symbols)]
    Window(DEFINITION, hidden=HIDDEN.hidden).replay(None, seen)


class Kept(Machine):
    """What is kept by its number: a map has an entry for each number that is declared, and no other."""

    last: NumberVar = number(0, 3)
    kept = per(number(0, 3), flag())
    looked: NumberVar = number(0, 3)

    @action
    def keep(self) -> None:
        """One more."""
        bounded(self.last < 3, "there is room")
        self.kept[self.last] = True
        self.last = self.last + 1

    @action
    def look(self) -> None:
        """Somebody looks."""
        self.looked = self.looked + 1


def test_numbers_that_choose_an_entry_stay_within_their_bounds() -> None:
    assert open_ended(define(Kept)) == {"kept", "looked"}
    running = Determinised(automaton(define(Kept), scope_of(define(Kept))))
    largest = running.constraint(Symbol(None, {}, {"looked": LARGEST}).text)
    assert not isinstance(largest, str)
    assert running.constraint(Symbol(None, {}, {"last": 4}).text) == (
        "`last` cannot be 4, only 0, 1, 2, 3"
    )
    assert isinstance(running.constraint(Symbol(None, {}, {"looked": LARGEST + 1}).text), str)
