"""The broken models, and the runs by which the reference interpreter finds them broken."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stagewright.spec.define import define
from stagewright.spec.definition import Definition, PropertyKind
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.loading import find
from stagewright.spec.scope import scope_of
from stagewright.spec.values import FrozenMap, State
from stagewright.spec.verdict import Outcome, PropertyVerdict, Run, Step

MODEL = Path(__file__).resolve().parents[2] / "models" / "broken.py"

Found = Callable[[Interpreter, Run], bool]


def search(definition: Definition, found: Found) -> Run:
    """The shortest run for which `found` holds, by breadth-first search with the interpreter."""
    interpreter = Interpreter(definition, scope_of(definition))
    queue = deque(Run((state,), ()) for state in interpreter.initial_states())
    seen: set[State] = {run.states[0] for run in queue}
    while queue:
        run = queue.popleft()
        if found(interpreter, run):
            return run
        for step, state in interpreter.successors(run.states[-1]):
            longer = Run((*run.states, state), (*run.steps, step))
            if found(interpreter, longer):
                return longer
            if state not in seen:
                seen.add(state)
                queue.append(longer)
    raise AssertionError("no such run")


def violation(definition: Definition, name: str) -> PropertyVerdict:
    """The verdict that a check gives on a broken invariant or step property."""
    prop = definition.property(name)
    broken: dict[str, Any] = {}

    def breaks(interpreter: Interpreter, run: Run) -> bool:
        if prop.kind is not PropertyKind.STEP:
            holds, values = interpreter.holds(prop, run.states[-1])
        elif run.steps:
            holds, values = interpreter.holds(prop, run.states[-2], run.states[-1])
        else:
            return False
        broken.update({bound.name: value for bound, value in values.items()})
        return not holds

    run = search(definition, breaks)
    return PropertyVerdict(
        name, Outcome.VIOLATED, "exhaustive search", run=run, arguments=FrozenMap(broken)
    )


@pytest.fixture(scope="session")
def broken() -> Any:
    """The module with the machines and their entities, loaded once."""
    return sys.modules[find(f"{MODEL}:Migration", {}).__module__]


@pytest.fixture(scope="session")
def migration(broken: Any) -> Definition:
    return define(broken.Migration)


@pytest.fixture(scope="session")
def workers(broken: Any) -> Definition:
    return define(broken.Workers)


@pytest.fixture(scope="session")
def find_violation() -> Callable[[Definition, str], PropertyVerdict]:
    return violation


@pytest.fixture(scope="session")
def incomplete(migration: Definition) -> PropertyVerdict:
    """A broken invariant: two steps of the coordinator, then a late node writes."""
    return violation(migration, "reads_are_complete")


@pytest.fixture(scope="session")
def no_way_back(migration: Definition) -> PropertyVerdict:
    """A goal that is out of reach after one step."""
    rest = migration.variable("stage").initial
    run = search(migration, lambda _, run: run.states[-1]["stage"] is not rest)
    return PropertyVerdict("back_to_rest", Outcome.VIOLATED, "exhaustive search", run=run)


@pytest.fixture(scope="session")
def lasso(broken: Any, migration: Definition) -> PropertyVerdict:
    """The stage stays `write_both` for ever, while a node writes."""
    interpreter = Interpreter(migration, scope_of(migration))
    start = next(interpreter.initial_states())
    begin, write = Step("write_both"), Step("write", FrozenMap({"n": broken.Node(0)}))
    begun = interpreter.take(begin, start)
    fallen = interpreter.take(write, begun)
    run = Run((start, begun, fallen), (begin, write), 2, write)
    return PropertyVerdict("every_migration_ends", Outcome.VIOLATED, "search", run=run)


@pytest.fixture(scope="session")
def done(broken: Any, workers: Definition) -> PropertyVerdict:
    """A run that ends where `hurry` would leave the bounds of `patience`."""
    tasks = frozenset(broken.Task(i) for i in range(2))
    run = search(workers, lambda _, run: run.states[-1]["done"] == tasks)
    return PropertyVerdict("assigned values stay in bounds", Outcome.VIOLATED, "search", run=run)


@pytest.fixture(scope="session")
def stuck(workers: Definition) -> tuple[Definition, PropertyVerdict]:
    """A deadlock: nobody hurries, so nothing happens when all is done."""
    calm = tuple(a for a in workers.actions if a.name != "hurry")
    definition = replace(workers, actions=calm)
    run = search(definition, lambda i, run: not list(i.successors(run.states[-1])))
    return definition, PropertyVerdict("no deadlock", Outcome.VIOLATED, "search", run=run)


@pytest.fixture(scope="session")
def all_cases(
    migration: Definition,
    workers: Definition,
    incomplete: PropertyVerdict,
    no_way_back: PropertyVerdict,
    lasso: PropertyVerdict,
    done: PropertyVerdict,
    stuck: tuple[Definition, PropertyVerdict],
) -> list[tuple[Definition, PropertyVerdict]]:
    """A counterexample of every kind."""
    return [
        (migration, incomplete),
        (migration, violation(migration, "no_lag")),
        (migration, violation(migration, "stages_go_up")),
        (migration, no_way_back),
        (migration, lasso),
        (workers, violation(workers, "leader_works")),
        (workers, violation(workers, "little_is_done")),
        (workers, done),
        stuck,
    ]
