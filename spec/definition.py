"""What tracing a machine yields: its variables, actions and properties as data, ready for any backend."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property
from typing import Final, cast

from stagewright.spec.entities import Entity
from stagewright.spec.nodes import Bound, Node
from stagewright.spec.sorts import Sort
from stagewright.spec.source import Source
from stagewright.spec.values import FrozenMap, Value


class Fairness(Enum):
    """What may be assumed of an action that could happen, for each choice of its parameters by itself.

    `fairness(...)` makes one that several actions share, or the choices of one.

    NONE: nothing. The action never has to happen; a run may stop where no other can. TLA+: no conjunct.
    WEAK: it happens again and again if from some point on it stays enabled. TLA+: `WF_vars(A)`.
    STRONG: it happens again and again if it is enabled again and again. TLA+: `SF_vars(A)`.

    A step that changes nothing is no step: where it would change nothing, an action counts as not enabled
    here, and having "happened" so does not count as fair.
    """

    NONE = auto()
    WEAK = auto()
    STRONG = auto()


@dataclass(frozen=True)
class Fair:
    """One fairness that holds of an action: of it alone, or of several that share it by its name.

    `keys`: the parameters for each of whose values it holds by itself.
    """

    strength: Fairness
    keys: tuple[Bound, ...]
    name: str = ""  # of a fairness that is shared: `turn`, in a system `tablets.turn`


class AnyValue(Enum):
    """The initial value of a variable that may start with any value of its sort."""

    ANY = auto()


@dataclass(frozen=True)
class Actor:
    """Who acts, as counterexamples name it: `Actor("topology coordinator")`."""

    name: str


class Kept(Enum):
    """Where a running system has a variable, and what becomes of it when its owner fails."""

    COMMITTED = "committed"  # written to what survives every crash
    VOLATILE = "volatile"  # in the memory of its owner, and forgotten with it
    OBSERVED = "observed"  # a fact of the world around, which is seen again and not committed
    HISTORY = "history"  # the model's alone: promises look at it, nothing is decided by it


@dataclass(frozen=True)
class Reason:
    """Why no promise can tell when a thing is dropped, lost or changed, in the definition's own words."""

    text: str
    where: Source
    of_part: bool = False  # given by a part, about itself: in the system it may matter after all
    inherited: bool = False  # given by a base class: its method need not run here
    subject: str = ""  # what it is about: "dropping `no barrier yet` in `fail_barrier`"


@dataclass(frozen=True)
class Variable:
    """A state variable. `initial` holds for every key of a map and must be of the sort below the maps."""

    name: str
    sort: Sort
    initial: Value | AnyValue
    constant: bool = False  # keeps its initial value for ever
    doc: str = ""
    where: Source | None = field(default=None, compare=False)
    kept: Kept = field(default=Kept.COMMITTED, compare=False)
    actor: Actor | None = field(default=None, compare=False)  # of what is volatile or observed


@dataclass(frozen=True)
class Requirement:
    """A named guard of an action."""

    name: str
    condition: Node
    where: Source | None = field(default=None, compare=False)
    said_in: tuple[str, ...] = field(default=(), compare=False)  # actions, and methods they call
    part: str = field(default="", compare=False)  # of a system, whose action says it: "tablet."
    # the part's action that says it in a system's step
    join: str = field(default="", compare=False)
    bound: bool = field(default=False, compare=False)  # of a check alone: what runs does without it
    because: str = field(default="", compare=False)  # why it may be assumed, if it is an assumption


@dataclass(frozen=True)
class Assignment:
    """`place := value`, for every value of the `binders` (simultaneously, from the old state)."""

    place: Node
    value: Node
    binders: tuple[Bound, ...] = ()
    where: Source | None = field(default=None, compare=False)
    said_in: tuple[str, ...] = field(default=(), compare=False)
    part: str = field(default="", compare=False)
    join: str = field(default="", compare=False)


@dataclass(frozen=True)
class Joined:
    """A call by which a step joins an action of a part: with these arguments, in these loops, outermost first.

    `arguments`: by the names of the part's parameters, the keys of its family first.
    """

    action: str  # "tablet.start"
    arguments: tuple[tuple[str, Node], ...]
    loops: tuple[tuple[Bound, Node | None], ...] = ()  # with what restricts one to a set's members


@dataclass(frozen=True)
class Action:
    """An atomic step: enabled when all requirements hold, then all assignments at once."""

    name: str
    params: tuple[Bound, ...]
    requirements: tuple[Requirement, ...]
    assignments: tuple[Assignment, ...]
    doc: str = ""
    fair: tuple[Fair, ...] = ()
    budget: str | None = None  # the budget that each occurrence spends
    actor: Actor | None = None
    where: Source | None = field(default=None, compare=False)
    joined: tuple[Joined, ...] = field(default=(), compare=False)  # of a system: what it drives

    @property
    def guards(self) -> tuple[Requirement, ...]:
        """The requirements that the system has: all but the bounds of a check."""
        return tuple(r for r in self.requirements if not r.bound)

    @property
    def spends(self) -> bool:
        """Whether it is the environment's: it happens so often at most, and nobody counts on it."""
        return self.budget is not None


class Role(Enum):
    """What a property is for."""

    PROMISE = "property"  # what the machine is to do
    LEMMA = "lemma"  # stated to help proofs; nobody relies on it
    WORDING = "wording"  # what the text says of its own words, as a state's name; not of data


class PropertyKind(Enum):
    """What a property speaks of."""

    INVARIANT = "invariant"  # every reachable state
    STEP = "step property"  # every reachable step: old and new state
    # from every reachable state the goal can be reached, spending no budget
    REACHABLE = "always reachable"
    LEADS_TO = "leads to"  # whenever the premise holds, the condition holds then or later (fairly)
    EVENTUALLY = "eventually"  # in every run the condition holds at some time (fairly)
    SOMETIMES = "sometimes"  # some run reaches a state in which the condition holds: a witness
    SOMETIMES_STEP = "sometimes a step"  # some run takes such a step
    ACCEPTS = "accepts"  # whenever the condition holds, the action is enabled, budgets apart
    RESTRICTED = "restricted"  # a part's ACCEPTS that its system restricts: somewhere it is refused

    @property
    def of_fair_runs(self) -> bool:
        """Whether it is a promise that fairness helps to keep."""
        return self in (PropertyKind.LEADS_TO, PropertyKind.EVENTUALLY)


@dataclass(frozen=True)
class ExercisedAt:
    """A scope, by what differs from the default one; see `scopes(...)`."""

    sizes: FrozenMap[str, int]
    budgets: FrozenMap[str, int | None]
    where: Source = field(compare=False)


@dataclass(frozen=True)
class Property:
    """A promise; it holds for all values of its parameters."""

    name: str
    kind: PropertyKind
    params: tuple[Bound, ...]
    condition: Node
    premise: Node | None = None  # LEADS_TO only
    doc: str = ""
    where: Source | None = field(default=None, compare=False)
    action: str = ""  # ACCEPTS and RESTRICTED only
    at: ExercisedAt | None = None  # SOMETIMES only: the scope at which a witness is sought
    role: Role = Role.PROMISE
    citation: str = field(default="", compare=False)  # of the text whose words a WORDING is of
    because: str = field(default="", compare=False)  # RESTRICTED only: why the system refuses
    independent: tuple[str, ...] = ()  # an invariant: what waits for nothing in `apart`
    apart: tuple[str, ...] = ()


@dataclass(frozen=True)
class Budget:
    """How often the actions that spend it may happen in one run, by default; None: without bound."""

    name: str
    default: int | None
    doc: str = ""
    of_faults: bool = False


@dataclass(frozen=True)
class Assumption:
    """What a definition takes for granted: in the actions named, or else of the initial state."""

    name: str
    because: str
    actions: tuple[str, ...]
    condition: Node
    where: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Constraint:
    """A bound of a check: a state beyond it is looked at, but no step is taken from there."""

    name: str
    condition: Node
    doc: str = ""
    where: Source | None = field(default=None, compare=False)


@dataclass(frozen=True)
class EquivalentDrop:
    """A requirement that may be dropped, or only weakened, and why no promise minds.

    `within`: an action or a method, as `Requirement.said_in` has it.
    """

    within: str
    requirement: str
    weakened: bool
    reason: Reason


@dataclass(frozen=True)
class EquivalentLoss:
    """A variable (by its names), a field of a record, or a method's effects may stay out; why no promise minds."""

    within: str
    variables: tuple[str, ...]
    field: str  # of a record; else empty
    helper: str  # the method's id; else empty
    reason: Reason


@dataclass(frozen=True)
class EquivalentStep:
    """A step of a variable that may be added between these members, and why no promise minds."""

    variable: str
    sources: tuple[Enum, ...]
    targets: tuple[Enum, ...]
    reason: Reason


@dataclass(frozen=True)
class EquivalentValue:
    """Members of an enum whose column may hold another value (of none: any), and why no promise minds."""

    members: tuple[Enum, ...]
    column: str
    values: tuple[object, ...]
    reason: Reason


@dataclass(frozen=True)
class EquivalentChange:
    """What a method may say instead, as the report of mutants words it, or some words of that; empty: anything.

    `prefix`: of a part's names, which the part itself doesn't write.
    """

    within: str
    change: str
    reason: Reason
    prefix: str = ""


class EquivalentHelper(EquivalentChange):
    """What a method may return that steps and properties share, and why no promise minds."""


class EquivalentReplacement(EquivalentChange):
    """What a guard or an effect may name, `within` as in `EquivalentDrop`, and why no promise minds."""


@dataclass(frozen=True)
class EquivalentWithout:
    """Actions of parts that a system's step may forget to join, and why no promise minds."""

    actions: tuple[str, ...]
    reason: Reason


@dataclass(frozen=True)
class EquivalentDisabled:
    """Actions that may never happen (of none: any), and why no promise minds. `prefix`: of a part's names."""

    actions: tuple[str, ...]
    reason: Reason
    prefix: str = ""

    def allows(self, action: str) -> bool:
        """Whether the action is one of them."""
        return action in self.actions if self.actions else action.startswith(self.prefix)


Equivalent = (
    EquivalentDrop
    | EquivalentLoss
    | EquivalentStep
    | EquivalentValue
    | EquivalentHelper
    | EquivalentReplacement
    | EquivalentWithout
    | EquivalentDisabled
)


@dataclass(frozen=True)
class Unexercised:
    """An action that never happens at the default scope, or a promise that is vacuous there, and why."""

    name: str
    vacuous: bool  # it is a promise
    reason: Reason


NO_DEADLOCK: Final = "no deadlock"
"""What every machine promises, though no method says so."""


@dataclass(frozen=True)
class KnownViolation:
    """A promise that this profile is known to break, and why."""

    promise: str
    reason: Reason


@dataclass(frozen=True)
class NotAsked:
    """A promise of a part that is not decided in the system, and why."""

    name: str
    kind: str
    why: str


@dataclass(frozen=True)
class CheckedAlone:
    """A part of a system that is checked alone: what it says is not changed in the system."""

    part: str  # as the names of its members begin: "tablet."
    machine: str


@dataclass(frozen=True)
class Definition:
    """One machine or system under one profile."""

    name: str
    doc: str
    profile: str  # empty when the machine has no profiles
    variables: tuple[Variable, ...]
    budgets: tuple[Budget, ...]
    initially: tuple[Node, ...]  # conditions on the initial state
    actions: tuple[Action, ...]
    properties: tuple[Property, ...]
    final: Node  # true in states that may have no successor
    entities: tuple[type[Entity], ...]
    file: str = field(default="", compare=False)
    exercised_at: tuple[ExercisedAt, ...] = field(default=(), compare=False)
    checked_alone: tuple[CheckedAlone, ...] = field(default=(), compare=False)
    equivalents: tuple[Equivalent, ...] = field(default=(), compare=False)
    # None: the machine gives no list of it.
    unexercised: tuple[Unexercised, ...] | None = field(default=None, compare=False)
    known_violations: tuple[KnownViolation, ...] = field(default=(), compare=False)
    assumed_initially: tuple[Assumption, ...] = field(default=(), compare=False)
    constraints: tuple[Constraint, ...] = ()
    deadlock_allowed: Reason | None = field(default=None, compare=False)  # then `final` is true
    not_asked: tuple[NotAsked, ...] = field(default=(), compare=False)  # of a system

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What is taken for granted, each name once."""
        found: dict[str, Assumption] = {}
        for action in self.actions:
            for guard in action.requirements:
                if guard.because:
                    known = found.get(guard.name)
                    before = known.actions if known is not None else ()
                    found[guard.name] = Assumption(
                        guard.name,
                        guard.because,
                        (*before, action.name),
                        guard.condition,
                        guard.where,
                    )
        return (*self.assumed_initially, *found.values())

    def variable(self, name: str) -> Variable:
        return next(v for v in self.variables if v.name == name)

    def action(self, name: str) -> Action:
        return next(a for a in self.actions if a.name == name)

    def property(self, name: str) -> Property:
        return next(p for p in self.properties if p.name == name)

    def known_violation(self, promise: str) -> str:
        """Why this profile breaks the promise, as its machine says; empty where it does not."""
        return next((k.reason.text for k in self.known_violations if k.promise == promise), "")

    def fingerprint(self) -> str:
        """A hash of everything that has meaning: equal definitions have equal fingerprints.

        Source locations and documentation do not count.
        """
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        parts = (
            self.name,
            self.profile,
            tuple((v.name, v.sort, v.initial, v.constant) for v in self.variables),
            self.budgets,
            self.initially,
            tuple(
                (a.name, a.params, a.requirements, a.assignments, a.fair, a.budget)
                for a in self.actions
            ),
            tuple(
                (p.name, p.kind, p.params, p.condition, p.premise, *_more(p))
                for p in self.properties
            ),
            self.final,
            *((c.name, c.condition) for c in self.constraints),
        )
        return hashlib.sha256(_stable(parts).encode()).hexdigest()[:16]


def _more(prop: Property) -> tuple[object, ...]:
    """What only some kinds of properties have; nothing of the others, whose fingerprints stay as they were."""
    at = () if prop.at is None else (tuple(prop.at.sizes.items()), tuple(prop.at.budgets.items()))
    return (*filter(None, [prop.action, prop.independent, prop.apart]), *at)


_NO_MEANING = frozenset(
    {"where", "doc", "serial", "said_in", "part", "join", "bound", "because", "of_faults"}
)


def _stable(value: object) -> str:
    """A text that is equal for equal trees in every process (sets have no order of their own)."""
    if isinstance(value, frozenset):
        return "{" + ",".join(sorted(_stable(v) for v in cast("frozenset[object]", value))) + "}"
    if isinstance(value, tuple):
        return "(" + ",".join(_stable(v) for v in cast("tuple[object, ...]", value)) + ")"
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, type):
        members = ",".join(m.name for m in value) if issubclass(value, Enum) else ""
        if issubclass(value, Entity):
            order = ("ring",) if value.is_ring else ("ordered",) if value.is_ordered else ()
            members = ",".join((*order, *value.member_names))
        return f"{value.__name__}[{members}]"
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is not None:
        inner = ",".join(_stable(getattr(value, f)) for f in fields if f not in _NO_MEANING)
        return f"{type(value).__name__}({inner})"
    return repr(value)
