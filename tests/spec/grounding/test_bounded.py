"""`bounded(...)`: a guard of every check that says nothing about the system."""

import pytest

from stagewright.checker.mutation.changes.requirements import changed_requirements
from stagewright.checker.tla.module import tla_module
from stagewright.impl.runtime import Instance, Program
from stagewright.spec import (
    DefinitionError,
    Machine,
    NumberVar,
    action,
    bounded,
    define,
    number,
    require,
    scope_of,
)
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.text.words import requirement


class Writes(Machine):
    """A client may write for ever; a check looks at three writes."""

    written: NumberVar = number(0, 3)
    read: NumberVar = number(0, 3)

    @action
    def write(self) -> None:
        """One more value."""
        bounded(self.written < 3, "a value is left")
        self.written = self.written + 1

    @action
    def read_next(self) -> None:
        """The reader takes the next value."""
        require(self.read < self.written, "there is a value")
        self.read = self.read + 1


WRITES = define(Writes)


def test_every_check_holds_to_it() -> None:
    interpreter = Interpreter(WRITES, scope_of(WRITES))
    reached = set(interpreter.initial_states())
    while True:
        more = {after for state in reached for _, after in interpreter.successors(state)} - reached
        if not more:
            break
        reached |= more
    assert len(reached) == 10
    names = [r.name for r in ground(WRITES, scope_of(WRITES)).steps[0].requirements]
    assert names == ["a value is left"]


def test_what_runs_does_without_it() -> None:
    running = Instance(Program(WRITES))
    for _ in range(1000):
        running.fire("write")
    assert running.state["written"] == 1000
    assert running.refusals("read_next") == ()
    at_scope = Instance(Program(WRITES, scope_of(WRITES)), {"written": 3, "read": 0})
    assert at_scope.refusals("write") == ("a value is left",)


def test_no_mutant_drops_or_weakens_it() -> None:
    assert list(changed_requirements(WRITES, WRITES.action("write"))) == []
    assert list(changed_requirements(WRITES, WRITES.action("read_next"))) != []


def test_it_is_told_apart_from_what_the_system_requires() -> None:
    said, required = WRITES.actions[0].requirements[0], WRITES.actions[1].requirements[0]
    assert requirement(said).endswith("(a bound of the check)")
    assert "bound" not in requirement(required)
    assert "bound of this check: a value is left" in tla_module(WRITES, scope_of(WRITES)).module


def test_it_takes_a_condition_on_the_state() -> None:
    class Wrong(Machine):
        x: NumberVar = number(0, 3)

        @action
        def up(self) -> None:
            bounded(3 < 4)  # type: ignore[arg-type]
            self.x = self.x + 1

    with pytest.raises(DefinitionError, match=r"bounded\(...\) is given True, not a condition"):
        define(Wrong)
