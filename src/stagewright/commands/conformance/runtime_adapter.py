"""The shipped runtime as an implementation under test."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stagewright.impl.runtime import Instance, Program
from stagewright.spec.definition import Definition
from stagewright.spec.scope import Scope
from stagewright.spec.trace import observation
from stagewright.spec.values import State
from stagewright.spec.verdict import Step


class RuntimeAdapter:
    """Drives one running instance; all of its state can be observed."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._running = Instance(program)

    def reset(self, initial: State) -> None:
        """A new instance in this state."""
        self._running = Instance(self._program, initial)

    def do(self, step: Step) -> None:
        """Fire the step; the runtime refuses with the names of the requirements that are false."""
        self._running.fire(step)

    def observe(self) -> Mapping[str, object]:
        """Every leaf."""
        return observation(self._running.state)


def runtime(definition: Definition, scope: Scope) -> Callable[[], RuntimeAdapter]:
    """A factory of adapters that share one program."""
    program = Program(definition, scope)
    return lambda: RuntimeAdapter(program)
