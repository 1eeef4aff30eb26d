"""Small runs of the cluster, and a judge for what they record."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from stagewright.impl.simulator.counters import Report
from stagewright.impl.simulator.faults import parse_faults
from stagewright.impl.simulator.options import Options
from stagewright.impl.simulator.simulation import program, run
from stagewright.impl.store.observed import state_of
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.scope import without_budgets
from stagewright.spec.trace import observation
from stagewright.spec.values import FrozenMap, State
from stagewright.spec.verdict import Step

Run = Callable[..., Report]


@pytest.fixture
def small_run(tmp_path: Path) -> Run:
    """Run a small cluster, by default of two tablets; faults as on the command line."""

    def started(faults: str = "none", **options: object) -> Report:
        chosen = {"tablets": 2, "migrations": 4, "writes": 60, **options}
        return run(Options(faults=parse_faults(faults), **chosen), tmp_path)  # type: ignore[arg-type]

    return started


def replay(trace: Path, profile: str = "") -> str | None:
    """What the reference interpreter finds wrong with a recorded trace; None if it explains every event."""
    rules = program(profile)
    interpreter = Interpreter(rules.definition, without_budgets(rules.definition))
    states: dict[str, State] = {}
    for line in trace.read_text("utf-8").splitlines():
        event = json.loads(line)
        entity, action = event["entity"], event["action"]
        if event.get("end"):
            continue
        shown = state_of(rules.definition, without_budgets(rules.definition), event["observed"])
        if action is None:
            expected = next(interpreter.initial_states())
        else:
            params = interpreter.definition.action(action).params
            known = {p.name: {m.name: m for m in p.sort.members} for p in params}  # type: ignore[union-attr]
            arguments = {n: known[n][v] for n, v in event["params"].items()}
            step = Step(action, FrozenMap(arguments))
            failed = interpreter.failed_requirements(step, states[entity])
            if failed:
                return f"{entity} {event['seq']}: {step.label}: not ({failed[0].name})"
            expected = interpreter.take(step, states[entity])
        if observation(shown) != observation(expected):
            return f"{entity} {event['seq']}: {action} led to another state"
        states[entity] = shown
    return None


@pytest.fixture
def judged() -> Callable[..., str | None]:
    """The judge of traces."""
    return replay
