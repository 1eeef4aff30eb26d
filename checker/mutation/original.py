"""What is worked out of the original once at a scope: its states, and which promises it keeps there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stagewright.checker.check import watch_for
from stagewright.checker.explicit.engines import EngineKind, search
from stagewright.checker.explicit.packing import Words
from stagewright.checker.limits import Limits, Stop
from stagewright.checker.verdicts import verdicts_of
from stagewright.spec.definition import Definition
from stagewright.spec.ground import GroundModel
from stagewright.spec.lowering import ground
from stagewright.spec.scope import Scope
from stagewright.spec.verdict import Outcome

_NATIVE_FROM = 300_000  # states: below, NumPy has searched before other code is compiled


@dataclass(frozen=True, eq=False)
class Original:
    """The definition at one scope, searched."""

    definition: Definition
    scope: Scope
    initial: Sequence[tuple[int, ...]]
    states: Words
    depth: int
    stopped: str  # why not all states are known; empty if they are
    broken: tuple[str, ...]  # promises that it does not keep here itself: they judge no mutant
    fired: tuple[str, ...]  # the actions that happen
    seconds: float

    @property
    def count(self) -> int:
        """How many states are known."""
        return int(self.states.shape[1])

    @property
    def never_fired(self) -> tuple[str, ...]:
        """The actions that do not happen at this scope."""
        return tuple(a.name for a in self.definition.actions if a.name not in self.fired)

    @property
    def engine(self) -> EngineKind:
        """What searches a mutant of it in the shortest time."""
        return EngineKind.AUTO if self.count >= _NATIVE_FROM else EngineKind.NUMPY


def ground_beside(original: Original, definition: Definition) -> GroundModel:
    """The ground form of a definition with the initial states of the original: to sift them takes long."""
    if definition.initially != original.definition.initially:
        return ground(definition, original.scope)
    model = ground(replace(definition, initially=()), original.scope)
    return replace(model, initial=original.initial)


def original_at(definition: Definition, scope: Scope, limits: Limits) -> Original:
    """Search the definition itself, and decide all its promises.

    Raises:
        DefinitionError, ScopeError: it cannot be grounded at this scope.
    """
    stop = Stop(limits)
    model = ground(definition, scope)
    found = search(model, watch_for(model, deadlock=True, coverage=True), stop)
    verdicts = verdicts_of(definition, found, stop)
    fired = {step.action.name for step in model.steps if found.fired[step.index]}
    return Original(
        definition,
        scope,
        model.initial,
        found.words,
        found.depth,
        found.stopped,
        tuple(v.name for v in verdicts if v.outcome is Outcome.VIOLATED),
        tuple(a.name for a in definition.actions if a.name in fired),
        stop.seconds,
    )
