"""What the tests of proofs share: the machines of `machines.py`, their proofs and their true answers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from stagewright.checker.prove import prove
from stagewright.spec import scope_of
from stagewright.spec.definition import Definition, PropertyKind
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.loading import load
from stagewright.spec.values import State
from stagewright.spec.verdict import PropertyVerdict

MACHINES = Path(__file__).with_name("machines.py")

Load = Callable[[str], Definition]
Prove = Callable[..., dict[str, PropertyVerdict]]
Violations = Callable[[str], dict[str, int]]


@pytest.fixture(scope="session")
def machine() -> Load:
    """A machine of `machines.py` by the name of its class."""

    @cache  # each load makes classes of its own, and entities of two classes are never equal
    def loaded(name: str) -> Definition:
        return load(f"{MACHINES}:{name}")

    return loaded


@pytest.fixture
def verdicts(machine: Load) -> Prove:
    """The verdicts on a machine at its default scope, by name."""

    def run(name: str, **options: object) -> dict[str, PropertyVerdict]:
        definition = machine(name)
        report = prove(definition, scope_of(definition), **options)  # type: ignore[arg-type]
        return {v.name: v for v in report.verdicts}

    return run


@pytest.fixture
def shortest_violations(machine: Load) -> Violations:
    """How many steps the shortest violation of each promise takes, by the reference interpreter."""

    def search(name: str) -> dict[str, int]:
        definition = machine(name)
        interpreter = Interpreter(definition, scope_of(definition))
        depths: dict[State, int] = dict.fromkeys(interpreter.initial_states(), 0)
        queue, found = deque(depths), dict[str, int]()
        while queue:
            state = queue.popleft()
            for broken in _broken(interpreter, state, None):
                found.setdefault(broken, depths[state])
            for _, after in interpreter.successors(state):
                for broken in _broken(interpreter, state, after):
                    found.setdefault(broken, depths[state] + 1)
                if after not in depths:
                    depths[after] = depths[state] + 1
                    queue.append(after)
        return found

    return search


def _broken(interpreter: Interpreter, state: State, after: State | None) -> list[str]:
    kind = PropertyKind.INVARIANT if after is None else PropertyKind.STEP
    promises = [p for p in interpreter.definition.properties if p.kind is kind]
    return [p.name for p in promises if not interpreter.holds(p, state, after)[0]]
