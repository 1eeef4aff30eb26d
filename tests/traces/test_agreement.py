"""The fast replay inside Spark gives the verdicts of a slow validator over the reference interpreter."""

import random
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from stagewright.spec.trace import Event, TraceVerdict
from stagewright.traces.replay.batch import validate_events
from stagewright.traces.replay.exact_verdicts import Cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Mutated = Callable[[str, int], list[Event]]


def test_spark_and_the_interpreter_agree_on_mutated_traces(
    spark: "SparkSession", lease: Any, mutated: Mutated
) -> None:
    traces = {f"lease{i}": mutated(f"lease{i}", i) for i in range(400)}
    events = [event for trace in traces.values() for event in trace]
    random.Random(1).shuffle(events)
    (found,) = validate_events(spark, [(lease.definition, lease.scope, events)])
    verdicts = {f.key.entity: (f.verdict, f.sequence) for f in found}
    assert verdicts == {entity: lease.evaluate(trace) for entity, trace in traces.items()}
    seen = Counter(verdict for verdict, _ in verdicts.values())
    assert min(seen[v] for v in TraceVerdict if v is not TraceVerdict.UNDECIDED) > 10, seen


def test_an_items_events_are_checked_under_its_own_definition(
    spark: "SparkSession", lease: Any
) -> None:
    good = lease.walk("same", 5, 8)
    bad = [e for e in good if e.sequence != 3]
    found = validate_events(
        spark, [(lease.definition, lease.scope, events) for events in (good, bad, [], good)]
    )
    assert [[f.verdict for f in item] for item in found] == [
        [TraceVerdict.OK],
        [TraceVerdict.GAP],
        [],
        [TraceVerdict.OK],
    ]
    assert {f.key.stream.machine for item in found for f in item} == {"Lease"}


def test_a_spent_budget_is_undecided_and_never_ok(spark: "SparkSession", lease: Any) -> None:
    events = lease.walk("lease0", 1, 10)
    (found,) = validate_events(spark, [(lease.definition, lease.scope, events)], max_states=1)
    assert [(f.verdict, f.cause) for f in found] == [(TraceVerdict.UNDECIDED, Cause.BUDGET)]


def test_a_duplicate_is_counted_and_no_violation(spark: "SparkSession", lease: Any) -> None:
    events = lease.walk("lease0", 1, 6)
    (found,) = validate_events(
        spark, [(lease.definition, lease.scope, [*events, events[2], events[2], events[4]])]
    )
    assert [(f.verdict, f.duplicates) for f in found] == [(TraceVerdict.OK, 3)]
