"""Properties over several entities are found broken, kept or undecided, wherever and in whatever order events lie."""

import dataclasses
import random
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pytest
from tests.thorough import some_of

from stagewright.spec.trace import Event, TraceVerdict
from stagewright.traces.cross_entity.verdicts import GroupReport, PropertyReport
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.engines.spark_engine import OnSpark
from stagewright.traces.readers import text_lines
from stagewright.traces.replay import segments
from stagewright.traces.report.results import TraceReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OK, VIOLATION, UNDECIDED = TraceVerdict.OK, TraceVerdict.VIOLATION, TraceVerdict.UNDECIDED
Evaluator = Callable[..., TraceReport]


def of(report: TraceReport, name: str) -> PropertyReport:
    assert report.together is not None
    return next(p for p in report.together.properties if p.name == name)


def verdicts(report: TraceReport) -> dict[str, TraceVerdict]:
    assert report.together is not None
    return {p.name: p.verdict for p in report.together.properties}


def broken(report: TraceReport, name: str) -> GroupReport:
    assert report.together is not None
    return next(g for g in report.together.broken if g.name == name)


def test_a_table_that_keeps_everything_is_ok(recorder: Any, evaluate: Evaluator) -> None:
    recorder.start("r0", "r1", "t0")
    for replica, node in (("r0", "node0"), ("r1", "node1")):
        recorder.do(replica, "begin", n=node)
        recorder.do(replica, "copy")
        recorder.do(replica, "finish")
    recorder.do("t0", "turn", to="splitting")
    report = evaluate(recorder.end())
    assert set(verdicts(report).values()) == {OK}
    assert report.exit_code == 0


def test_two_pending_replicas_are_named_with_the_events_that_made_them_so(
    recorder: Any, evaluate: Evaluator
) -> None:
    recorder.start("r0", "r1", "r2", "t0")
    recorder.do("r0", "begin", n="node0")
    recorder.do("r0", "copy")
    recorder.do("r2", "begin", n="node1")  # line 7
    report = evaluate(recorder.end())
    assert of(report, "one_is_pending").verdict is VIOLATION
    found = broken(report, "one_is_pending")
    assert [(m.key.entity, m.where.line) for m in found.members] == [("r2", 7), ("r0", 5)]
    assert (found.where.line, found.time, found.times) == (7, 3, 1)
    assert found.doc == "At most one replica is built at a time."
    assert report.verdicts[VIOLATION] == 0
    assert report.exit_code == 1


def test_states_of_two_machines_exclude_each_other(recorder: Any, evaluate: Evaluator) -> None:
    recorder.start("r0", "t0", "t1")
    recorder.do("r0", "begin", n="node0")
    recorder.do("t1", "turn", to="splitting")
    report = evaluate(recorder.end())
    found = broken(report, "nothing_is_built_while_splitting")
    assert [m.key.entity for m in found.members] == ["t1", "r0"]
    assert of(report, "tracks_agree").verdict is VIOLATION
    assert of(report, "one_is_pending").verdict is OK


def test_what_is_of_each_entity_by_itself_needs_no_time(
    recorder: Any, evaluate: Evaluator, untimed: Callable[[Iterable[Event]], list[Event]]
) -> None:
    recorder.start("r0", "r1")
    recorder.do("r0", "begin", n="node0")
    recorder.do("r0", "finish")
    report = evaluate(untimed(recorder.end()))
    local = of(report, "ready_is_complete")
    assert (local.ordered, local.verdict, local.evaluated, local.broken) == (False, VIOLATION, 2, 1)
    assert broken(report, "ready_is_complete").members[0].key.entity == "r0"
    ordered = of(report, "one_is_pending")
    assert (ordered.ordered, ordered.verdict, ordered.open) == (True, UNDECIDED, 1)
    assert "without a time" in ordered.why[0]


def test_a_time_that_runs_backwards_is_no_order(recorder: Any, evaluate: Evaluator) -> None:
    recorder.start("r0")
    recorder.do("r0", "begin", n="node0", at=9)
    recorder.do("r0", "finish", at=5)
    found = of(evaluate(recorder.end()), "one_is_pending")
    assert found.verdict is UNDECIDED
    assert "backwards" in found.why[0]


def test_events_of_one_time_are_simultaneous(recorder: Any, evaluate: Evaluator) -> None:
    recorder.start("r0", "r1")
    recorder.do("r0", "begin", n="node0", at=5)
    recorder.do("r1", "begin", n="node1", at=8)
    recorder.do("r0", "finish", at=8)
    assert of(evaluate(recorder.end()), "one_is_pending").verdict is OK


def test_entities_of_other_groups_do_not_count(recorder: Any, evaluate: Evaluator) -> None:
    recorder.start("a:r0", "b:r0", "b:r1", "other")
    recorder.do("a:r0", "begin", n="node0")
    recorder.do("b:r0", "begin", n="node1")
    report = evaluate(recorder.events + recorder.end()[len(recorder.events) :], group="^(.*):")
    assert of(report, "one_is_pending").verdict is OK
    assert of(report, "one_is_pending").evaluated == 2
    assert report.together is not None
    assert report.together.ungrouped == 1


def test_missing_events_leave_open_what_they_may_have_broken(
    recorder: Any, evaluate: Evaluator
) -> None:
    recorder.start("r0", "r1", "t0")
    recorder.do("r0", "begin", n="node0")
    lost = len(recorder.events)
    recorder.do("r1", "begin", n="node1")
    recorder.do("r0", "finish")
    recorder.do("r1", "finish")
    events = recorder.end()
    report = evaluate([e for i, e in enumerate(events) if i != lost])
    assert of(report, "one_is_pending").verdict is UNDECIDED
    assert of(report, "tracks_agree").verdict is OK  # of the tracks nothing is missing


def test_what_is_broken_for_sure_is_found_beside_what_is_not_known(
    recorder: Any, evaluate: Evaluator
) -> None:
    recorder.start("r0", "r1", "r2")
    lost = len(recorder.events)
    recorder.do("r2", "begin", n="node0")
    recorder.do("r2", "finish")
    recorder.do("r0", "begin", n="node0")
    recorder.do("r1", "begin", n="node1")
    events = recorder.end()
    report = evaluate([e for i, e in enumerate(events) if i != lost])
    assert of(report, "one_is_pending").verdict is VIOLATION


def test_a_step_that_no_run_explains_counts_as_it_was_observed(
    recorder: Any, evaluate: Evaluator
) -> None:
    recorder.start("r0", "r1")
    recorder.do("r0", "begin", n="node0")
    events = recorder.end()
    jump = {"phase": "pending", "host": "node1", "complete": False}
    last = events[-1]
    events[-1:] = [
        dataclasses.replace(last, action="finish", observed=jump, end=False, sequence=1),
        dataclasses.replace(last, sequence=2),
    ]
    report = evaluate(events)
    assert report.verdicts[VIOLATION] == 1
    assert [m.key.entity for m in broken(report, "one_is_pending").members] == ["r1", "r0"]


def outcome(report: TraceReport) -> object:
    """All that must not depend on where events lie."""
    assert report.together is not None
    counted = {
        (p.name, p.verdict, p.evaluated, p.broken, p.open) for p in report.together.properties
    }
    first = {(g.name, g.group, g.time, g.times, len(g.members)) for g in report.together.broken}
    return report.verdicts, counted, first


@pytest.mark.parametrize("seed", some_of(range(3)))
def test_parts_order_and_number_of_files_change_nothing(
    recorders: Any, evaluate: Evaluator, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng, recorder = random.Random(seed), recorders()
    recorder.start(*(f"{group}:{one}" for group in "abcd" for one in ("r0", "r1", "r2", "t0")))
    recorder.walk(rng, 200)
    events: list[Event] = recorder.end()
    for _ in range(3 * seed):
        events.pop(rng.randrange(len(events)))
    events += rng.sample(events, 5)
    once = outcome(evaluate(events, group="^(.):"))
    for number in range(5):
        monkeypatch.setattr(text_lines, "PART_SIZE", rng.choice([900, 20_000, 1 << 25]))
        monkeypatch.setattr(segments, "ENTITIES_MAX", rng.choice([1, 5, 1 << 20]))
        mixed = rng.sample(events, len(events)) if number % 2 else events
        cut = rng.randrange(1, len(mixed))
        assert outcome(evaluate(mixed[:cut], mixed[cut:], group="^(.):")) == once


@pytest.mark.parametrize("seed", range(4))
def test_random_traces_get_the_verdicts_of_a_slow_and_obvious_evaluate(
    recorders: Any, evaluate: Evaluator, seed: int
) -> None:
    rng, recorder = random.Random(seed), recorders()
    recorder.start("r0", "r1", "r2", "t0", "t1")
    recorder.walk(rng, 12)
    events: list[Event] = recorder.end()
    report = evaluate(events)
    for name, holds in slow(events).items():
        assert (of(report, name).verdict is OK) == holds, name


def slow(events: list[Event]) -> dict[str, bool]:
    """Whether some properties hold after all events of each time."""
    states: dict[str, dict[str, Any]] = {
        e.entity: dict(e.observed) for e in events if e.sequence == 0
    }
    names = (
        "one_is_pending",
        "nothing_is_built_while_splitting",
        "tracks_agree",
        "hosts_differ",
        "ready_is_complete",
    )
    found: dict[str, bool] = dict.fromkeys(names, True)
    for time in sorted({e.time for e in events if e.time is not None}):
        for e in events:
            if e.time == time:
                states[e.entity] |= e.observed
                here = states[e.entity]
                if here.get("phase") == "ready" and not here["complete"]:
                    found["ready_is_complete"] = False
        replicas = [s for n, s in states.items() if n.startswith("r")]
        modes = [s["mode"] for n, s in states.items() if n.startswith("t")]
        pending = sum(s["phase"] == "pending" for s in replicas)
        hosts = [s["host"] for s in replicas if s["host"]]
        found["one_is_pending"] &= pending <= 1
        found["nothing_is_built_while_splitting"] &= not (pending and "splitting" in modes)
        found["tracks_agree"] &= len(set(modes)) == 1
        found["hosts_differ"] &= len(set(hosts)) == len(hosts)
    return found


def test_without_systems_nothing_is_said_of_them(recorder: Any, evaluate: Evaluator) -> None:
    recorder.start("r0")
    assert evaluate(recorder.end(), together=()).together is None


def test_threads_and_their_number_change_nothing(recorders: Any, evaluate: Evaluator) -> None:
    recorder = recorders()
    recorder.start("a:r0", "a:r1", "b:r0", "b:t0")
    recorder.walk(random.Random(5), 60)
    events = recorder.end()
    one, other = (evaluate(events, group="^(.):", engine=Embedded(n)) for n in (1, 3))
    assert outcome(one) == outcome(other)


@pytest.mark.spark
@pytest.mark.long
def test_on_spark_the_same_is_found(
    spark: "SparkSession", recorders: Any, evaluate: Evaluator
) -> None:
    recorder = recorders()
    recorder.start("a:r0", "a:r1", "b:r0", "b:t0")
    recorder.walk(random.Random(7), 60)
    events = recorder.end()
    here = evaluate(events[:70], events[70:], group="^(.):")
    there = evaluate(events[:70], events[70:], group="^(.):", engine=OnSpark(spark))
    assert outcome(there) == outcome(here)
    assert of(there, "one_is_pending").verdict is VIOLATION
