"""One running instance of a machine: it takes the steps that its definition enables, and no others."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from enum import Enum

from transitions import MachineError

from stagewright.impl.runtime.program import CONTROL_ATTRIBUTE, Program
from stagewright.spec.definition import Definition
from stagewright.spec.domains import values_of
from stagewright.spec.errors import InputError, RefusedError
from stagewright.spec.ground import GroundStep
from stagewright.spec.ground_eval import Ints, enabled, evaluate
from stagewright.spec.scope import Scope
from stagewright.spec.values import FrozenMap, State, Value, show
from stagewright.spec.verdict import Step

# An action by name, as a step with its arguments, or as the method that defines it.
ActionRef = str | Step | Callable[..., None]

# Called with a step and the state after it, before the step counts; an exception prevents the step.
Hook = Callable[[Step, State], None]


def instance(
    definition: Definition,
    scope: Scope,
    *,
    initial: State | None = None,
    control: str | None = None,
) -> Instance:
    """A running instance of a definition at a scope, in `initial` or in its first initial state.

    `control` names the control variable, if it should not be the one with most members in use. Many
    instances of one definition should share one `Program`.

    Raises:
        DefinitionError, ScopeError: as `ground` does.
        InputError: `initial` is not a state of the definition, or `control` not an enum variable.
    """
    return Instance(Program(definition, scope, control=control), initial)


class Instance:
    """A state of a definition that can only change by its steps."""

    def __init__(
        self, program: Program, initial: State | None = None, *, hook: Hook | None = None
    ) -> None:
        self.program = program
        self.hook = hook
        self.cells: Ints = (
            program.model.initial[0] if initial is None else _encoded(program, initial)
        )
        setattr(self, CONTROL_ATTRIBUTE, program.member(self.cells))

    @property
    def state(self) -> State:
        """The values of all variables."""
        return self.program.model.decode(self.cells)

    @property
    def control(self) -> Enum | None:
        """The value of the control variable; None if the machine has none."""
        member = getattr(self, CONTROL_ATTRIBUTE)
        assert member == self.program.member(self.cells), "two accounts of the control state differ"
        return member if isinstance(member, Enum) else None

    def fire(self, action: ActionRef, /, **arguments: Value) -> State:
        """Take a step, and return the state after it.

        Raises:
            RefusedError: the step is not enabled; names the requirements that are false.
            DomainError: it assigns a number outside of its variable's bounds.
            InputError: the definition has no such action, or no such parameters.
        """
        step = _as_step(action, arguments)
        ground_step = self._ground(step)
        if ground_step is None or not self._trigger(ground_step):
            raise self._refused(step)
        return self.state

    def can(self, action: ActionRef, /, **arguments: Value) -> bool:
        """Whether a step is enabled."""
        ground_step = self._ground(_as_step(action, arguments))
        return ground_step is not None and enabled(ground_step, self.cells)

    def enabled(self) -> list[Step]:
        """Every step that is enabled, in the order of the definition."""
        guards = self.program.guards(self.cells)
        return [step for step, holds in zip(self.program.taken, guards, strict=True) if holds]

    def refusals(self, action: ActionRef, /, **arguments: Value) -> tuple[str, ...]:
        """The names of the requirements that are false for a step now; empty if it is enabled."""
        step = _as_step(action, arguments)
        ground_step = self._ground(step)
        if ground_step is not None:
            failed = (r for r in ground_step.requirements if not evaluate(r.condition, self.cells))
            return tuple(r.name for r in failed)
        if step.action not in self.program.actions:
            return (f"{self.program.definition.action(step.action).budget} left",)
        failing = self.program.interpreter.failed_requirements(step, self.state)
        return tuple(r.name for r in failing)

    def about_to(self, step: GroundStep, cells: Ints) -> None:
        """Tell the hook what is about to happen; it may prevent it by raising."""
        if self.hook is not None:
            self.hook(self.program.taken[step.index], self.program.model.decode(cells))

    def _trigger(self, step: GroundStep) -> bool:
        event = self.program.machine.events[step.action.name]
        try:
            return event.trigger(self, step=step, program=self.program)
        except MachineError:  # no transition of this action starts from the present control state
            return False

    def _refused(self, step: Step) -> RefusedError:
        failed = self.refusals(step)
        assert failed, f"{step.label} was refused without a reason"
        now = [s.label for s in self.enabled()]
        listed = ", ".join(now[:8]) + (", …" if len(now) > 8 else "")
        at = "" if self.control is None else f" at `{show(self.control)}`"
        return RefusedError(
            f"`{step.label}` cannot happen now{at}: not ({'; '.join(failed)})",
            failed,
            help=f"enabled now: {listed or 'nothing'}",
        )

    def _ground(self, step: Step) -> GroundStep | None:
        """The ground form of a step; None if it is refused in every state of this scope."""
        found = self.program.steps.get((step.action, tuple(step.arguments.items())))
        return self._checked(step) if found is None else found

    def _checked(self, step: Step) -> GroundStep | None:
        """The same for a step whose arguments may be in another order, or wrong."""
        known = self.program.written
        if step.action not in known:
            near = get_close_matches(step.action, known, n=1)
            raise InputError(
                f"{self.program.definition.name} has no action `{step.action}`",
                help=f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}",
            )
        params = known[step.action].params
        if set(step.arguments) != {p.name for p in params}:
            wanted = ", ".join(p.name for p in params) or "no arguments"
            raise InputError(
                f"`{step.label}`: wrong arguments", help=f"{step.action} takes {wanted}"
            )
        arguments = tuple((p.name, step.arguments[p.name]) for p in params)
        found = self.program.steps.get((step.action, arguments))
        if found is None:
            for param in params:
                values = values_of(param.sort, self.program.scope)
                if step.arguments[param.name] not in values:
                    raise InputError(
                        f"`{step.label}`: {param.name} is not one of {param.sort}",
                        help=f"at this scope: {', '.join(map(show, values))}",
                    )
        return found


def _as_step(action: ActionRef, arguments: dict[str, Value]) -> Step:
    if isinstance(action, Step):
        assert not arguments, "a step has its arguments already"
        return action
    name = action if isinstance(action, str) else action.__name__
    return Step(name, FrozenMap(arguments))


def _encoded(program: Program, state: State) -> Ints:
    try:
        return program.model.encode(state)
    except (KeyError, ValueError) as error:
        raise InputError(
            f"not a state of {program.definition.name} ({program.scope}): {error}",
            help="give every variable a value of its sort",
        ) from None
