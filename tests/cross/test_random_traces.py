"""Traces of random machines: Spark finds what a slow evaluator over the interpreter's graph finds."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from tests.random_machines.explored import Explored

from stagewright.spec.definition import Definition
from stagewright.spec.scope import Scope
from stagewright.spec.trace import Event, TraceVerdict, observation
from stagewright.spec.values import State, plain
from stagewright.spec.verdict import Step
from stagewright.traces.replay.batch import validate_events

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_STEPS = 8

Verdict = tuple[TraceVerdict, int]  # and the sequence number where it is reached


def event(definition: Definition, number: int, step: Step | None, state: State | None) -> Event:
    """What is recorded of a step and the state after it; of neither, the end marker."""
    parameters = {} if step is None else {n: plain(v) for n, v in step.arguments.items()}
    return Event(
        trace="walk",
        machine=definition.name,
        profile=definition.profile,
        definition=definition.fingerprint(),
        entity="good",
        sequence=number,
        action=None if step is None else step.action,
        parameters=parameters,
        observed={} if state is None else observation(state),
        end=state is None,
    )


def walk(found: Explored, random: Random) -> list[Event]:
    """The events of a random run."""
    definition = found.machine.definition
    state = random.choice(found.initial)
    events = [event(definition, 0, None, state)]
    while len(events) <= MOST_STEPS:
        onwards = [(step, after) for before, step, after in found.edges if before == state]
        if not onwards:
            break
        step, state = random.choice(onwards)
        events.append(event(definition, len(events), step, state))
    return [*events, event(definition, len(events), None, None)]


def spoiled(found: Explored, events: list[Event], random: Random) -> list[Event]:
    """The same with one thing wrong: a value, a step, or an event that is missing."""
    number = random.randrange(len(events) - 1)
    wrong = [replace(e, entity="bad") for e in events]
    match random.choice(("value", "step", "missing")):
        case "value":
            other = observation(random.choice(sorted(found.states, key=repr)))
            # Of a sequence not the length: what is observed of its elements would not fit.
            own = wrong[number].observed
            leaves = [n for n in sorted(other) if n in own and not n.endswith(".length")]
            if not leaves:
                del wrong[number]
                return wrong
            leaf = random.choice(leaves)
            wrong[number] = replace(
                wrong[number], observed={**wrong[number].observed, leaf: other[leaf]}
            )
        case "step" if number > 0:
            step = random.choice(found.steps)
            wrong[number] = replace(
                wrong[number],
                action=step.action,
                parameters={n: plain(v) for n, v in step.arguments.items()},
            )
        case _:
            del wrong[number]
    return wrong


def evaluate(found: Explored, events: list[Event]) -> Verdict:
    """The verdict on completely observed events, by the interpreter's edges alone."""
    possible = {s for s in found.initial if observation(s) == events[0].observed}
    for number, one in enumerate(events):
        if one.sequence != number:
            return TraceVerdict.GAP, number
        if one.end:
            return TraceVerdict.OK, number + 1
        if number > 0:
            possible = {
                after
                for before, step, after in found.edges
                if before in possible
                and step.action == one.action
                and {n: plain(v) for n, v in step.arguments.items()} == one.parameters
                and observation(after) == one.observed
            }
        if not possible:
            return TraceVerdict.VIOLATION, number
    raise AssertionError("a trace without an end marker")


@pytest.mark.spark
@pytest.mark.slow
def test_spark_evaluates_traces_of_random_machines_as_the_interpreter_does(
    spark: SparkSession, all_met: Any
) -> None:
    random = Random(1)
    batch: list[tuple[Definition, Scope, list[Event]]] = []
    expected: list[dict[str, Verdict]] = []
    for found in all_met.machines.values():
        good = walk(found, random)
        bad = spoiled(found, good, random)
        machine = found.machine
        batch.append((machine.definition, machine.scope, [*good, *bad]))
        expected.append({"good": evaluate(found, good), "bad": evaluate(found, bad)})
    results = [
        {f.key.entity: (f.verdict, f.sequence) for f in findings}
        for findings in validate_events(spark, batch)
    ]
    assert [i for i, (r, e) in enumerate(zip(results, expected, strict=True)) if r != e] == []
    assert all(e["good"][0] is TraceVerdict.OK for e in expected)
    seen = Counter(e["bad"][0] for e in expected)
    assert min(seen[TraceVerdict.VIOLATION], seen[TraceVerdict.GAP]) > len(expected) / 10, seen
