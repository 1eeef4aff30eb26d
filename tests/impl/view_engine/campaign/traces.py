"""What the trace of a run says, checked by the definitions of what the engine records."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from stagewright.impl.runtime import Program
from stagewright.impl.simulator.database.checks.folding import Folding
from stagewright.impl.view_engine.trace.trace import Recorded
from stagewright.machines.recorded import OF_VIEW_ENGINE
from stagewright.spec.loading import load


class WrongTraceError(AssertionError):
    """The text names the machine, the entity and the step, and says which requirement does not hold."""


@cache
def foldings() -> dict[str, Folding]:
    """The definitions by name; all runs of a process share what they compute."""
    return {name: Folding(Program(load(place))) for name, place in OF_VIEW_ENGINE.items()}


def check_trace(steps: Sequence[Recorded]) -> int:
    """Raises WrongTraceError; gives how many steps there are."""
    rules = foldings()
    states: dict[tuple[str, str], int] = {}
    for machine, entity, action, arguments, _ in steps:
        of = rules[machine]
        key = machine, entity
        found = of.step(states.get(key, of.start(())), action, arguments)
        if isinstance(found, str):
            raise WrongTraceError(f"{machine}: {entity} cannot {action}: {found}")
        states[key] = found
    return len(steps)
