"""What is worked out of the original once at a scope: its states, and which promises it keeps there."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from stagewright.checker.check import by_scope, watch_for
from stagewright.checker.engines import search
from stagewright.checker.explicit.exploration import Exploration
from stagewright.checker.explicit.packing import Words
from stagewright.checker.explicit.search import explore
from stagewright.checker.limits import Limits, Stop
from stagewright.checker.mutation.engine import Compiled
from stagewright.checker.verdicts import verdicts_of
from stagewright.spec.definition import Definition, PropertyKind
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.lowering import Lowering
from stagewright.spec.scope import Scope
from stagewright.spec.verdict import Outcome

_NATIVE_FROM = 300_000  # states: below, NumPy has searched before other code is compiled


@dataclass(frozen=True, eq=False)
class Original:
    """The definition at one scope, searched."""

    definition: Definition
    scope: Scope
    lowering: Lowering
    compiled: Compiled
    found: Exploration = field(repr=False)
    broken: tuple[str, ...]  # promises that it does not keep here itself
    fired: tuple[str, ...]  # the actions that happen
    seconds: float
    unasked: tuple[
        str, ...
    ] = ()  # promises that it may well keep, and that are not asked of mutants

    @property
    def silent(self) -> tuple[str, ...]:
        """The promises that evaluate no mutant."""
        return (*self.broken, *self.unasked)

    @property
    def states(self) -> Words:
        """All states that are known."""
        return self.found.words

    @property
    def depth(self) -> int:
        return self.found.depth

    @property
    def stopped(self) -> str:
        """Why not all states are known; empty if they are."""
        return self.found.stopped

    @property
    def count(self) -> int:
        """How many states are known."""
        return self.found.states

    @property
    def never_fired(self) -> tuple[str, ...]:
        """The actions that do not happen at this scope."""
        return tuple(a.name for a in self.definition.actions if a.name not in self.fired)

    @property
    def small(self) -> bool:
        """Whether a mutant is searched in less time than code for it is compiled."""
        return self.count < _NATIVE_FROM


def kept_by(original: Original, definition: Definition) -> Definition:
    """A definition with the promises alone that evaluate mutants: the original keeps them.

    What a system restricts is no promise: a mutant that refuses no more than the part does is no worse.
    """
    known, _ = by_scope(definition, original.scope)
    kept = tuple(
        p
        for p in known.properties
        if p.name not in original.silent and p.kind is not PropertyKind.RESTRICTED
    )
    return replace(definition, properties=kept)


def original_at(definition: Definition, scope: Scope, limits: Limits) -> Original:
    """Search the definition itself, and decide all its promises.

    Raises:
        DefinitionError, ScopeError: it cannot be grounded at this scope.
    """
    stop = Stop(limits)
    definition, _ = by_scope(definition, scope)
    lowering = Lowering(definition, scope)
    model = lowering.model()
    compiled = Compiled(model)
    found = _searched(model, compiled, stop)
    verdicts = verdicts_of(definition, found, stop)
    fired = {step.action.name for step in model.steps if found.fired[step.index]}
    return Original(
        definition,
        scope,
        lowering,
        compiled,
        found,
        tuple(v.name for v in verdicts if v.outcome is Outcome.VIOLATED),
        tuple(a.name for a in definition.actions if a.name in fired),
        stop.seconds,
    )


def _searched(model: GroundModel, compiled: Compiled, stop: Stop) -> Exploration:
    """Searched as its mutants are, and once more with code of its own if it is large."""
    watch = watch_for(model, deadlock=True, coverage=True)
    most = stop.limits.states
    if most is None or most > _NATIVE_FROM:
        few = replace(stop, limits=replace(stop.limits, states=_NATIVE_FROM))
        found = explore(compiled.engine, watch, few)
        return found if found.exhausted or stop.reason() else search(model, watch, stop)
    return explore(compiled.engine, watch, stop)
