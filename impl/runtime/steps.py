"""The `transitions` machine of a program, and its models: steps on their way.

One account of the control state: a step reads it from the columns of its instance, and as the library
sets it, all effects count.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from transitions import EventData, Machine, MachineError, Transition

from stagewright.impl.runtime.columns import Writes
from stagewright.impl.runtime.control import ALWAYS, Edge

if TYPE_CHECKING:
    from stagewright.impl.runtime.instance import Instance

CONTROL_ATTRIBUTE = "control"  # where `transitions` finds the state of its model


class StepModel:
    """A step of an instance on its way: the model of its trigger."""

    __slots__ = (
        "action",
        "arguments",
        "asked",
        "cells",
        "failed",
        "instance",
        "place",
        "undo",
        "writes",
    )

    def __init__(self, instance: Instance, action: str, arguments: tuple[Any, ...]) -> None:
        self.instance = instance
        self.cells = instance.cells
        self.action = action
        self.arguments = arguments
        self.asked = False
        self.failed: list[str] = []
        self.writes: Writes = {}
        self.undo: Writes = {}
        column, position = instance.program.moved.get(action, (None, None))
        self.place: tuple[int, Any] | None = None
        if column is not None:
            self.place = column.index, None if position is None else arguments[position]

    @property
    def control(self) -> Enum | str:
        """The control state of what this step moves."""
        if self.place is None:
            return ALWAYS
        found: Enum = self.cells.read(*self.place)
        return found

    @control.setter
    def control(self, member: Enum | str) -> None:
        """The target is entered: all that the step writes counts."""
        self.undo = self.cells.put(self.writes)
        assert self.control is member, "two accounts of the control state differ"

    def target(self) -> Enum | str:
        """The control state that the step leads to."""
        if self.place in self.writes:
            found: Enum = self.writes[self.place]
            return found
        return self.control

    def holds(self) -> bool:
        """Whether the step is enabled; what it writes is computed with it, in the old state."""
        if not self.asked:
            self.asked = True
            self.failed = self.refusals()
            if not self.failed:
                cells, program = self.cells, self.instance.program
                made = program.compiler.actions[self.action]
                self.writes = made.effect(cells.held, cells.live, cells.buckets, *self.arguments)
                program.check_bounds(made.action, self.action, self.writes)
        return not self.failed

    def refusals(self) -> list[str]:
        """The names of the requirements that are false now."""
        cells, program = self.cells, self.instance.program
        made = program.compiler.actions.get(self.action)
        if made is None:  # at this scope nothing of its budget may be spent
            return [f"{program.written[self.action].budget} left"]
        return made.guard(cells.held, cells.live, cells.buckets, *self.arguments)

    def taken(self) -> bool:
        """Trigger the step in the `transitions` machine; False if it refuses, and nothing changes."""
        event = self.instance.program.machine.events.get(self.action)
        if event is not None:  # else no control state has a transition of this action
            try:
                return bool(event.trigger(self))
            except MachineError:  # none starts from the present control state
                pass
        if self.holds():
            at = self.control if isinstance(self.control, str) else self.control.name
            self.failed = [f"a transition of {self.action} from {at}"]
        return False


class StepTransition(Transition):
    """A transition that asks its step once, and lets all its effects count as it enters its target."""

    def execute(self, event_data: EventData) -> bool:
        """Take the step if it is enabled and leads to this transition's target."""
        step = event_data.model
        assert isinstance(step, StepModel)
        if not step.holds() or not self._eval_conditions(event_data):
            return False
        if self.dest is None:
            step.control = step.control
        else:
            step.control = event_data.machine.get_state(self.dest).value
        return True


class _Machine(Machine):
    transition_cls = StepTransition


def machine_of(members: tuple[Enum, ...], edges: tuple[Edge, ...]) -> Machine:
    """The `transitions` machine of a program, without a model of its own."""
    sources = dict.fromkeys([*members, *(e.source for e in edges)])
    machine = _Machine(
        model=None,
        states=list(sources) or [ALWAYS],
        initial=None,
        auto_transitions=False,
        send_event=True,
        model_attribute=CONTROL_ATTRIBUTE,
    )
    for edge in edges:
        conditions: list[Any] = [_LeadsTo(edge.target)] if edge.one_of_several else []
        machine.add_transition(edge.action, edge.source, edge.target, conditions=conditions)
    return machine


class _LeadsTo:
    """The condition of a transition of an action with several targets: this one is meant now."""

    def __init__(self, target: Enum | None) -> None:
        self.target = target

    def __call__(self, event: EventData) -> bool:
        """Whether the step leads there."""
        step = event.model
        assert isinstance(step, StepModel)
        return step.target() is self.target
