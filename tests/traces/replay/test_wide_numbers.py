"""Numbers up to a million, and bounds that only a check has: what is recorded is checked without a list of steps."""

import json
import tracemalloc
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import pytest
from pyspark.sql import SparkSession

from stagewright.spec import (
    FlagVar,
    Machine,
    Number,
    NumberVar,
    action,
    between,
    bounded,
    flag,
    number,
    require,
)
from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.errors import ScopeError
from stagewright.spec.grounding.families import Families
from stagewright.spec.grounding.ground_eval import enabled, take
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.scope import scope_of
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.automaton.nfa import of_model
from stagewright.traces.automaton.subset_automaton import Determinised
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.events.observability import Recording
from stagewright.traces.options import Options
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

TOP = 1_000_000


class Log(Machine):
    """Entries are appended in any amount, or as a pair of numbers says; the end never goes back."""

    end: NumberVar = number(0, TOP)
    closed: FlagVar = flag()

    @action
    def advance(self, to: Annotated[Number, between(0, TOP)]) -> None:
        """The end goes forward."""
        require(to > self.end, "forward")
        require(~self.closed, "open")
        self.end = to

    @action
    def copy(
        self,
        begin: Annotated[Number, between(1, TOP)],
        size: Annotated[Number, between(1, TOP)],
    ) -> None:
        """Entries of another log are appended: so many, from its begin on."""
        require(begin == self.end + 1, "no gap")
        require(self.end + size <= TOP, "there is room")
        self.end = self.end + size

    @action
    def close(self) -> None:
        """It ends."""
        self.closed = True


class Small(Machine):
    """The same with few numbers: both ways of making steps are compared."""

    end: NumberVar = number(0, 40)

    @action
    def advance(self, to: Annotated[Number, between(-3, 36)]) -> None:
        """The end goes forward."""
        require(to > self.end, "forward")
        self.end = to

    @action
    def copy(
        self, begin: Annotated[Number, between(1, 40)], size: Annotated[Number, between(1, 30)]
    ) -> None:
        """Entries of another log are appended."""
        require(begin == self.end + 1, "no gap")
        require(self.end + size <= 40, "there is room")
        self.end = self.end + size


class Calls(Machine):
    """Calls are counted as far as a check goes."""

    calls: NumberVar = number(0, 3)
    up: FlagVar = flag(init=True)

    @action
    def call(self) -> None:
        """One call more."""
        require(self.up, "it is up")
        bounded(self.calls < 3, "a call is left")
        self.calls = self.calls + 1

    @action
    def look(self) -> None:
        """Nothing happens, as far as a check looks."""
        bounded(self.calls < 1, "it looks at the beginning only")
        self.up = True

    @action
    def stop(self) -> None:
        """It is down."""
        self.up = False


Step = tuple[str, Mapping[str, object], Mapping[str, object]]


def written(path: Path, machine: type[Machine], traces: Mapping[str, Iterable[Step]]) -> Path:
    """Traces from the initial state, each with its end."""
    lines: list[str] = []
    for entity, steps in traces.items():
        common = {"v": 1, "machine": machine.__name__, "entity": entity}
        events: list[dict[str, object]] = [{}]
        for name, given, seen in steps:
            events.append({"action": name, "params": given, "observed": seen})
        events.append({"end": True})
        lines += [json.dumps({**common, "seq": i, **event}) for i, event in enumerate(events)]
    path.write_text("\n".join(lines) + "\n")
    return path


TRACES: dict[str, list[Step]] = {
    "ok": [
        ("advance", {"to": 777_777}, {}),
        ("copy", {"begin": 777_778, "size": 5}, {"end": 777_782}),
        ("close", {}, {}),
    ],
    "back": [("advance", {"to": 999}, {}), ("advance", {"to": 998}, {})],
    "gap": [("copy", {"begin": 3, "size": 1}, {})],
    "other": [("advance", {"to": 12}, {"end": 13})],
    "beyond": [("advance", {"to": TOP + 1}, {})],
    "open": [("advance", {}, {"end": 7})],
    "any": [("advance", {"to": 5}, {}), ("copy", {"begin": 6}, {})],
}


def by_entity(report: TraceReport) -> dict[str, str]:
    return {e.key.entity: e.verdict.value for e in report.entities}


def of(definition: Definition, path: Path, **how: object) -> TraceReport:
    return validate([path], definition, Options(), **how)  # type: ignore[arg-type]


EXPECTED = {
    "back": "violation",
    "gap": "violation",
    "other": "violation",
    "beyond": "unparsed",
    "open": "undecided",
    "any": "undecided",
}


def test_a_parameter_of_a_million_values_is_checked_by_what_events_say(tmp_path: Path) -> None:
    path = written(tmp_path / "log.jsonl", Log, TRACES)
    report = of(define(Log), path, engine=Embedded(2))
    sound = written(tmp_path / "sound.jsonl", Log, {"ok": TRACES["ok"]})
    tracemalloc.start()  # of modules that were imported the first time, nothing counts
    assert of(define(Log), sound, engine=Embedded(2)).exit_code == 0
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert by_entity(report) == EXPECTED
    assert report.verdicts[TraceVerdict.OK] == 1
    assert peak < 100e6, "the steps, or the values, are listed"
    back = next(e for e in report.entities if e.key.entity == "back")
    assert back.explanation is not None
    assert back.explanation.failed[0][0] == "forward"
    assert "advance(1000)" in back.explanation.enabled
    assert back.explanation.window is not None, "an excerpt and a test are written of it"


def test_spark_says_the_same(tmp_path: Path, spark: SparkSession) -> None:
    path = written(tmp_path / "log.jsonl", Log, TRACES)
    report = of(define(Log), path, spark=spark)
    assert by_entity(report) == EXPECTED
    assert report.verdicts[TraceVerdict.OK] == 1


def test_a_check_still_refuses_so_many_steps() -> None:
    definition = define(Log)
    with pytest.raises(ScopeError, match="together at most"):
        ground(definition, scope_of(definition))


def test_steps_that_are_made_when_they_are_asked_for_are_those_of_a_list() -> None:
    definition = define(Small)
    listed = ground(definition, scope_of(definition), bounded=False)
    made = ground(definition, scope_of(definition), bounded=False, wide=True)
    assert isinstance(made.steps, Families)
    assert made.steps.wide, "the pair of numbers has more than a thousand choices"
    assert len(made.steps.templates) < 50
    assert [made.steps.index(*made.steps.located(i)) for i in range(len(made.steps))] == list(
        range(len(made.steps))
    )
    by_label = {step.label: step for step in listed.steps}
    assert {s.label for s in made.steps} >= by_label.keys()
    for state in [(0,), (7,), (39,), (40,)]:
        expected = {s.label: take(s, state) for s in listed.steps if enabled(s, state)}
        running = Determinised(of_model(made, Recording()))
        at = running.state_number(state)
        found = running.taken(range(len(made.steps)), at)
        assert {made.steps[i].label: running.states[n] for i, n in found} == expected


def test_a_bound_of_checks_refuses_no_event(tmp_path: Path) -> None:
    calls: list[Step] = [("call", {}, {})] * 2
    traces: dict[str, list[Step]] = {
        "ok": [*calls, ("look", {}, {})],
        "more": [*calls, *calls, *calls],
        "down": [*calls, ("stop", {}, {}), ("call", {}, {})],
        "wrong": [*calls, ("stop", {}, {"up": True}), *calls],
    }
    report = of(define(Calls), written(tmp_path / "t.jsonl", Calls, traces), engine=Embedded(1))
    assert by_entity(report) == {"down": "violation", "wrong": "violation"}
    down = next(e for e in report.entities if e.key.entity == "down")
    assert down.explanation is not None
    assert [name for name, _ in down.explanation.failed] == ["it is up"]
