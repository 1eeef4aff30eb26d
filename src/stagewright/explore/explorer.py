"""What a person sees who walks a definition: the state, the steps that are enabled, and why the others are not.

A place in a walk is its path: the number of the initial state and the labels of the steps from there, as they stand in
the page's address. The reference interpreter takes the steps.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from stagewright.spec.definition import Action, Definition
from stagewright.spec.errors import DomainError, InputError
from stagewright.spec.interpreter import Interpreter, step_of
from stagewright.spec.scope import Scope
from stagewright.spec.text.state_diagram import diagram_of, has_diagram
from stagewright.spec.text.suggestions import did_you_mean
from stagewright.spec.text.words import spoken, variable_name
from stagewright.spec.values import State, flatten, plain, show
from stagewright.spec.verdict import Run, Step

MOST_INITIAL = 1000  # initial states that are offered
MOST_REFUSED = 300  # refused steps that are listed


@dataclass(frozen=True)
class Leaf:
    """One value of the state; `old` is what it was before the last step, if that changed it."""

    place: str
    value: str
    old: str | None


@dataclass(frozen=True)
class Offered:
    """A step: enabled, with the values that it changes, or `refused` by guards that are named."""

    label: str
    title: str
    doc: str
    actor: str
    changes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


@dataclass(frozen=True)
class Compared:
    """What another profile makes of the same path."""

    profile: str
    stops: str  # which step of the path it refuses, and why; empty if it takes them all
    differs: tuple[str, ...] = ()  # values that are others there
    only_there: tuple[str, ...] = ()  # steps that are enabled only there
    only_here: tuple[str, ...] = ()


@dataclass(frozen=True)
class Look:
    """All that is seen at one place of a walk."""

    path: tuple[str, ...]  # the number of the initial state, then the labels of the steps
    leaves: tuple[Leaf, ...]
    enabled: tuple[Offered, ...]
    refused: tuple[Offered, ...]
    refused_more: int  # refused steps that are not listed
    broken: tuple[str, ...]  # invariants and step properties that are false here
    final: bool
    compared: tuple[Compared, ...] = ()


@dataclass(frozen=True)
class Drawing:
    """The state diagram of one variable: members, and edges with the actions that take them."""

    variable: str
    members: tuple[str, ...]
    edges: tuple[tuple[str, str, str], ...]


class Explorer:
    """A definition at a scope, looked at from any place of any walk, beside other profiles of it."""

    def __init__(
        self, definition: Definition, scope: Scope, others: Sequence[Explorer] = ()
    ) -> None:
        self.source = definition
        self.scope = scope
        self.others = tuple(others)
        self._interpreter = Interpreter(definition, scope)
        self._known: dict[tuple[str, ...], State] = {}

    @cached_property
    def initial(self) -> tuple[State, ...]:
        """The initial states that are offered: the first thousand."""
        found: list[State] = []
        for state in self._interpreter.initial_states():
            found.append(state)
            if len(found) == MOST_INITIAL:
                break
        return tuple(found)

    @cached_property
    def drawing(self) -> Drawing | None:
        """The state diagram, if the machine has a variable to draw."""
        if not has_diagram(self.source):
            return None
        diagram = diagram_of(self.source)
        edges = tuple((a.name, b.name, action) for a, b, action in diagram.edges)
        return Drawing(diagram.variable, tuple(m.name for m in diagram.members), edges)

    def look(self, path: Sequence[str]) -> Look:
        """What is seen after the steps of a path.

        Raises:
            InputError: a step of the path is not enabled where it stands, or there is no such step.
        """
        at = tuple(path) or ("0",)
        state = self._state(at)
        before = self._state(at[:-1]) if len(at) > 1 else None
        old = _shown(before) if before is not None else {}
        leaves = tuple(
            Leaf(place, value, old[place] if place in old and old[place] != value else None)
            for place, value in _shown(state).items()
        )
        enabled, refused = self._steps(state)
        return Look(
            at,
            leaves,
            tuple(enabled),
            tuple(refused[:MOST_REFUSED]),
            max(0, len(refused) - MOST_REFUSED),
            self._broken(state, before),
            self._interpreter.is_final(state),
            tuple(self._compared(other, at, leaves, enabled) for other in self.others),
        )

    def _compared(
        self,
        other: Explorer,
        path: tuple[str, ...],
        leaves: tuple[Leaf, ...],
        enabled: list[Offered],
    ) -> Compared:
        profile = other.source.profile
        try:
            state = other._state(path)
        except (InputError, DomainError) as error:
            return Compared(profile, error.problem)
        values = _shown(state)
        differs = (
            f"{leaf.place}: {values.get(leaf.place, 'is not there')}"
            for leaf in leaves
            if values.get(leaf.place) != leaf.value
        )
        here, there = (dict.fromkeys(s.label for s in e) for e in (enabled, other._steps(state)[0]))
        return Compared(
            profile,
            "",
            tuple(differs),
            tuple(label for label in there if label not in here),
            tuple(label for label in here if label not in there),
        )

    def path_of(self, run: Run) -> tuple[str, ...]:
        """The path of a run that a check has found.

        Raises:
            InputError: it begins in no initial state that is offered.
        """
        if run.states[0] not in self.initial:
            raise InputError(
                "the run begins in another state than an initial one",
                help="choose a run of `check`",
            )
        return (str(self.initial.index(run.states[0])), *(step.label for step in run.steps))

    def label_of(self, action: str, parameters: Mapping[str, object]) -> str:
        """How a walk names a step, given by plain values as a trace has them.

        Raises:
            InputError: the definition has no such step at this scope.
        """
        found = self._recorded.get((action, json.dumps(parameters, sort_keys=True)))
        if found is None:
            raise InputError(
                f"at this scope there is no step {action} with {json.dumps(parameters)}",
                help="give the scope with which the trace was recorded, with --size",
            )
        return found

    @cached_property
    def _recorded(self) -> dict[tuple[str, str], str]:
        """The labels of steps by action and arguments, as traces have them."""
        return {
            (
                step.action,
                json.dumps({n: plain(v) for n, v in step.arguments.items()}, sort_keys=True),
            ): label
            for label, (_, step) in self._instances.items()
        }

    def begin(self, number: str) -> State:
        """An initial state, by its number.

        Raises:
            InputError: none has this number.
        """
        if not number.isascii() or not number.isdigit() or int(number) >= len(self.initial):
            raise InputError(
                f"there is no initial state {number}",
                help=f"there are {len(self.initial)}, counted from 0",
            )
        return self.initial[int(number)]

    def take(self, label: str, state: State, number: int) -> State:
        """The state after a step, the walk's `number`th.

        Raises:
            InputError: there is no such step, or it is refused.
            DomainError: it assigns a number out of bounds.
        """
        step = self._step_named(label)
        failed = [r.name for r in self._interpreter.failed_requirements(step, state)]
        if failed:
            raise InputError(
                f"step {number}, `{label}`, is refused; unmet: {'; '.join(failed)}",
                help="the definition may have changed since this path was copied",
            )
        return self._interpreter.take(step, state)

    def _state(self, path: tuple[str, ...]) -> State:
        """The state at the end of a path; those of paths that were looked at are remembered."""
        length = next((n for n in (len(path), len(path) - 1) if path[:n] in self._known), 1)
        state = self._known.get(path[:length]) or self.begin(path[0])
        for number in range(length, len(path)):
            state = self.take(path[number], state, number)
        self._known[path] = state
        return state

    @cached_property
    def _instances(self) -> dict[str, tuple[Action, Step]]:
        found: dict[str, tuple[Action, Step]] = {}
        for action in self._interpreter.definition.actions:
            for values in self._interpreter.instances(action.params):
                step = step_of(action, values)
                found[step.label] = (action, step)
        return found

    def _step_named(self, label: str) -> Step:
        if label not in self._instances:
            raise InputError(
                f"there is no step `{label}`",
                help=f"{did_you_mean(label, self._instances)}`stagewright show` lists the actions",
            )
        return self._instances[label][1]

    def _steps(self, state: State) -> tuple[list[Offered], list[Offered]]:
        enabled: list[Offered] = []
        refused: list[Offered] = []
        for label, (action, step) in self._instances.items():
            failed = tuple(r.name for r in self._interpreter.failed_requirements(step, state))
            if failed:
                refused.append(_offered(label, action, step, refused=failed))
                continue
            try:
                changes = _changes(state, self._interpreter.take(step, state))
            except DomainError as error:
                refused.append(_offered(label, action, step, refused=(error.problem,)))
                continue
            enabled.append(_offered(label, action, step, changes=changes or ("changes nothing",)))
        return enabled, refused

    def _broken(self, state: State, before: State | None) -> tuple[str, ...]:
        from stagewright.spec.definition import PropertyKind

        broken: list[str] = []
        for prop in self._interpreter.definition.properties:
            if prop.kind is PropertyKind.INVARIANT:
                holds, _ = self._interpreter.holds(prop, state)
            elif prop.kind is PropertyKind.STEP and before is not None:
                holds, _ = self._interpreter.holds(prop, before, state)
            else:
                continue
            if not holds:
                broken.append(prop.name)
        return tuple(broken)


def _shown(state: State) -> dict[str, str]:
    return {
        place: show(value)
        for name, held in state.items()
        for place, value in flatten(variable_name(name), held)
    }


def _changes(old: State, new: State) -> tuple[str, ...]:
    before = _shown(old)
    return tuple(
        f"{place}: {before.get(place, 'none')} → {value}"
        for place, value in _shown(new).items()
        if before.get(place) != value
    )


def _offered(
    label: str,
    action: Action,
    step: Step,
    *,
    changes: tuple[str, ...] = (),
    refused: tuple[str, ...] = (),
) -> Offered:
    arguments = ", ".join(map(show, step.arguments.values()))
    title = spoken(action.name) + (f" ({arguments})" if arguments else "")
    actor = action.actor.name if action.actor is not None else ""
    doc = " ".join(action.doc.split())
    return Offered(label, title, doc, actor, changes, refused)
