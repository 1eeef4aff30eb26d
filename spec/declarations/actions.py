"""The decorators of a machine's methods: actions, properties, initial and final conditions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, overload

from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.declarations.fairness import FairWord, SharedFairness
from stagewright.spec.definition import Actor, Fairness, Reason, Role
from stagewright.spec.errors import (
    DecoratorError,
    DefinitionError,
    ParameterError,
    ResultError,
    VariableError,
)
from stagewright.spec.nodes import BOOL, Apply, Node, Op, Select
from stagewright.spec.sorts import EnumSort, MapSort
from stagewright.spec.source import Source, here, of_function
from stagewright.spec.terms.conditions_and_numbers import Bool
from stagewright.spec.terms.symbolic import lift
from stagewright.spec.terms.temporal import Eventually, LeadsTo
from stagewright.spec.terms.tracing import current

if TYPE_CHECKING:
    from stagewright.spec.declarations.exercised import Choice
    from stagewright.spec.declarations.variables import Var

A = TypeVar("A", bound=Callable[..., None])
B = TypeVar("B", bound=Callable[..., object])
P = TypeVar("P", bound=Callable[..., Bool])
L = TypeVar("L", bound="Callable[..., LeadsTo | Eventually]")
Q = TypeVar("Q", bound="Callable[..., Bool | LeadsTo | Eventually | None]")
MARK = "__stagewright_member__"


class MemberKind(Enum):
    """What a decorated method of a machine is."""

    ACTION = auto()
    INVARIANT = auto()
    STEP_PROPERTY = auto()
    ALWAYS_REACHABLE = auto()
    LIVENESS = auto()
    SOMETIMES = auto()
    ACCEPTS = auto()
    INDEPENDENT = auto()
    INITIALLY = auto()
    FINAL = auto()
    CONSTRAINT = auto()
    REFINEMENT = auto()  # no member of a class: a function of its own (`spec/refinement.py`)

    @property
    def words(self) -> str:
        """The kind as error texts name it."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class Member:
    """What a decorator noted about a method."""

    kind: MemberKind
    name: str
    body: Callable[..., Any]
    where: Source
    local_names: Mapping[str, object] = field(compare=False, repr=False)
    fair: tuple[Fairness | SharedFairness, ...] = ()
    budget: BudgetName | None = None
    actor: Actor | None = None
    accepted: Member | None = None  # ACCEPTS only: the action
    independent: tuple[Member, ...] = ()  # INDEPENDENT only: the actions
    apart: tuple[object, ...] = field(default=(), compare=False)  # and what they do not wait for
    at: Choice | None = field(default=None, compare=False)  # SOMETIMES only
    role: Role = Role.PROMISE
    citation: str = ""
    because: str = ""  # INITIALLY only: why it is assumed

    @property
    def of_steps(self) -> bool:
        """Whether the body takes the state after a step, too."""
        if self.kind is not MemberKind.SOMETIMES:
            return self.kind is MemberKind.STEP_PROPERTY
        listed = list(inspect.signature(inspect.unwrap(self.body)).parameters.values())
        return len(listed) > 1 and (
            listed[1].name == "after" or listed[1].annotation in {Self, "Self"}
        )

    @property
    def what(self) -> str:
        """The member as error texts name it."""
        return f"{self.kind.words} `{self.name}`"

    @property
    def doc(self) -> str:
        """What the method's docstring says."""
        return inspect.cleandoc(self.body.__doc__ or "")


@overload
def action(body: A) -> A: ...
@overload
def action(
    *, fair: FairWord = ..., spends: BudgetName | None = ..., by: Actor | None = ...
) -> Callable[[A], A]: ...
def action(
    body: Callable[..., None] | None = None,
    *,
    fair: FairWord = Fairness.NONE,
    spends: BudgetName | None = None,
    by: Actor | None = None,
) -> Any:
    """A method that says what one atomic step requires and assigns; its parameters are free choices.

    Called from another action's body, it joins that action: both happen as one step, and it no longer
    happens by itself. Fairness, budget and actor of that step are those of the action that calls.
    An override may call `super().name(...)`: what it requires and assigns itself comes beside that.
    """
    names = _local_names()
    if body is None:
        _check_options(_fairness(fair, here()), spends, by, here())

    def decorate(body: A) -> A:
        return _mark(body, MemberKind.ACTION, names, fair=fair, budget=spends, actor=by)

    return decorate if body is None else decorate(body)


def stepping(
    variable: Var[Any, Any],
    source: Any,
    target: Any,
    *,
    fair: FairWord,
    by: Actor | None,
    spends: BudgetName | None,
) -> Callable[[A], A]:
    """`Var.step`: an action that moves one variable from `source` to `target`."""
    names, where = _local_names(), here()
    _check_options(_fairness(fair, where), spends, by, where)
    given: tuple[Any, ...] = (
        tuple(cast("Collection[object]", source))
        if isinstance(source, Collection) and not isinstance(source, Enum)
        else (source,)
    )
    sort = variable.sort.value if isinstance(variable.sort, MapSort) else variable.sort
    if not isinstance(sort, EnumSort) or not given or variable.constant:
        raise DecoratorError(
            f"`{variable.name}` cannot take steps from {given} to {target!r}",
            where=where,
            help="a step moves a variable `one_of(SomeEnum, ...)`, or one `per(...)` key, "
            "from one or several members to a member",
        )
    sources = tuple(lift(s, sort, "the source of the step", where) for s in given)
    goal = lift(target, sort, "the target of the step", where)
    listed = " or ".join(s.name for s in given)

    def decorate(body: A) -> A:
        @functools.wraps(body)
        def moved(holder: Any, *args: Any, **kwargs: Any) -> None:
            place = _moving(holder, variable, (*args, *kwargs.values()), body)
            at = [Apply(Op.EQ, (place, s), BOOL, where) for s in sources]
            condition = at[0] if len(at) == 1 else Apply(Op.OR, tuple(at), BOOL, where)
            tracing = current(f"a step of `{variable.name}`")
            tracing.require(condition, f"{variable.name} is {listed}", where)
            result = body(holder, *args, **kwargs)
            if result is not None:
                raise returned_value(body.__name__, of_function(body))
            tracing.assign(place, goal, where)

        marked = _mark(moved, MemberKind.ACTION, names, fair=fair, budget=spends, actor=by)
        return cast("A", marked)

    return decorate


def _moving(holder: Any, variable: Var[Any, Any], args: tuple[Any, ...], body: Any) -> Node:
    """The place that a step of `variable` moves: of a map, the value at the body's first parameter."""
    place: Node = holder.place_(variable)
    if not isinstance(place.sort, MapSort):
        return place
    if not args:
        raise ParameterError(
            f"a step of `{variable.name}` needs the {place.sort.key} whose value moves",
            where=of_function(body),
            help=f"write it as the first parameter: `x: Term[{place.sort.key}]`",
        )
    return Select(place, lift(args[0], place.sort.key, "the key"), place.sort.value, place.where)


def invariant(body: P) -> P:
    """A condition on every reachable state; it holds for all values of the method's parameters."""
    return _mark(body, MemberKind.INVARIANT, _local_names())


def step_property(body: P) -> P:
    """A condition on every step: `def f(self, after: Self, …)` reads the old state and the new one."""
    return _mark(body, MemberKind.STEP_PROPERTY, _local_names())


def always_reachable(body: P) -> P:
    """A goal that can be reached from every reachable state, by actions that spend no budget."""
    return _mark(body, MemberKind.ALWAYS_REACHABLE, _local_names())


@overload
def sometimes(body: P) -> P: ...
@overload
def sometimes(*, at: Choice = ...) -> Callable[[P], P]: ...
def sometimes(body: Callable[..., Bool] | None = None, *, at: Choice | None = None) -> Any:
    """A condition that some run reaches: a witness. With `after: Self`, a step that some run takes.

    Every value of the method's parameters has a witness of its own; "for some value" is `some(...)`.
    `at`: the scope at which it is sought, by what differs from the default one (`{Tablet: 2, crashes: 0}`);
    without it, the scope of the check.
    """
    from stagewright.spec.declarations.exercised import check_choice

    names = _local_names()
    if at is not None:
        check_choice(at, here(), "sometimes")

    def decorate(body: P) -> P:
        return _mark(body, MemberKind.SOMETIMES, names, at=at)

    return decorate if body is None else decorate(cast("Any", body))


def accepts(accepted: Callable[..., None]) -> Callable[[P], P]:
    """The action is enabled in every reachable state in which the method's condition holds.

    Parameters of one name are one; of the action's others some value will do. A budget is no refusal. Where the
    condition holds and the action is refused, the counterexample names the requirements that refuse.
    """
    names, where = _local_names(), here()
    found = member_of(accepted)
    if found is None or found.kind is not MemberKind.ACTION:
        raise DecoratorError(
            f"@accepts is given {accepted!r}, which is no action",
            where=where,
            help="write `@accepts(Machine.action)`, or in the machine itself `@accepts(action)`",
        )

    def decorate(body: P) -> P:
        return _mark(body, MemberKind.ACCEPTS, names, accepted=found)

    return decorate


def lemma(body: Q) -> Q:
    """An invariant that is stated to help proofs or, above another decorator, a property that follows from others.

    It is decided like every other, and listed apart: nobody relies on it, and what it alone notices when the
    definition is mutated is counted apart.
    """
    return _with_role(body, Role.LEMMA, "", _local_names())


def wording(citation: str) -> Callable[[P], P]:
    """Above another decorator: a promise about the text's own words, as the names of states, not about data.

    `citation`: where the text says so. It is decided like every other, and listed and counted apart.
    """
    where = here()
    if not isinstance(cast("object", citation), str) or not citation.strip():
        raise DecoratorError(
            "@wording without a citation",
            where=where,
            help='say where the text says so: `@wording("001: …")` above @invariant or @step_property',
        )

    def decorate(body: P) -> P:
        if member_of(body) is None:
            raise DecoratorError(
                "@wording stands above no property",
                where=where,
                help="write @invariant, @step_property or another one below it",
            )
        return _with_role(body, Role.WORDING, citation, {})

    return decorate


def _with_role(body: Q, role: Role, citation: str, names: Mapping[str, object]) -> Q:
    known = member_of(body)
    if known is None:
        return _mark(body, MemberKind.INVARIANT, names, role=role)
    if known.kind is MemberKind.ACTION:
        raise DecoratorError(
            f"{known.what} cannot be a {role.value}",
            where=known.where,
            help="it is said of a property: @invariant, @step_property, …",
        )
    setattr(body, MARK, replace(known, role=role, citation=citation))
    return body


def liveness(body: L) -> L:
    """Returns `leads_to(premise, conclusion)` or `eventually(condition)`, promised of all fair runs."""
    return _mark(body, MemberKind.LIVENESS, _local_names())


@overload
def initially(body: P) -> P: ...
@overload
def initially(*, assumed: str) -> Callable[[P], P]: ...
def initially(body: Callable[..., Bool] | None = None, *, assumed: str = "") -> Any:
    """A condition that the initial state satisfies (for variables that start with ANY value).

    `assumed`: why it may be taken for granted, of a condition on what a run finds and the machine does not make,
    as how far clocks are apart; it is listed as an assumption, and `check --without NAME` drops it.
    """
    names = _local_names()

    def decorate(body: P) -> P:
        return _mark(body, MemberKind.INITIALLY, names, because=assumed)

    return decorate if body is None else decorate(cast("Any", body))


def final(body: P) -> P:
    """True in states where all may be over; elsewhere, if no action can happen but by a budget, it is a deadlock."""
    return _mark(body, MemberKind.FINAL, _local_names())


def constraint(body: P) -> P:
    """A bound of a check, as TLC's CONSTRAINT: where it is false, states are looked at but not left.

    A state beyond it is checked for invariants, and the step there for step properties; it does not count,
    no step is taken from it, and it is no deadlock. Goals and liveness are decided on the runs that stay
    within. It restricts no running system and no trace: what an action may do is said by `require`.
    """
    return _mark(body, MemberKind.CONSTRAINT, _local_names())


@dataclass(frozen=True)
class Allowed:
    """What `deadlock = allowed(because=…)` says."""

    reason: Reason

    def __set_name__(self, owner: type, name: str) -> None:
        if name != "deadlock":
            raise VariableError(
                f"`{name} = allowed(...)` allows nothing",
                where=self.reason.where,
                help='write `deadlock = allowed(because="…")`; nothing else can be allowed so',
            )


def allowed(*, because: str) -> Allowed:
    """Says of a machine that its runs may end anywhere: `deadlock = allowed(because="clients may leave")`.

    It is the word for TLC's `CHECK_DEADLOCK FALSE`; where runs may end in some states only, these are
    `@final`. A system's own word counts, not that of its parts.
    """
    if not because.strip():
        raise VariableError(
            "allowed(because=...) gives no reason",
            where=here(),
            help='say why a run may end anywhere: `deadlock = allowed(because="…")`',
        )
    return Allowed(Reason(because, here()))


def member_of(method: object) -> Member | None:
    """What a decorator noted about a method, if it is decorated."""
    found = getattr(method, MARK, None)
    return found if isinstance(found, Member) else None


def _mark(
    body: B,
    kind: MemberKind,
    names: Mapping[str, object],
    *,
    fair: FairWord = Fairness.NONE,
    budget: BudgetName | None = None,
    actor: Actor | None = None,
    accepted: Member | None = None,
    independent: tuple[Member, ...] = (),
    apart: tuple[object, ...] = (),
    at: Choice | None = None,
    role: Role = Role.PROMISE,
    because: str = "",
) -> B:
    where = of_function(inspect.unwrap(body))
    if (earlier := member_of(body)) is not None:
        raise DecoratorError(
            f"`{earlier.name}` is decorated as {earlier.kind.words} and as {kind.words}",
            where=where,
            help="a method is one thing: keep one of the decorators",
        )
    if kind is not MemberKind.ACTION:
        found = Member(
            kind,
            body.__name__,
            body,
            where,
            names,
            accepted=accepted,
            independent=independent,
            apart=apart,
            at=at,
            role=role,
            because=because,
        )
        setattr(body, MARK, found)
        return body

    @functools.wraps(body)
    def called(holder: Any, *args: Any, **kwargs: Any) -> None:
        from stagewright.spec.declarations.parameters import arguments

        # `super().name()`: what an override goes on from is no step of its own.
        overridden = member_of(getattr(holder.__class__, member.name)) is not member
        current(f"a call of {member.what}")  # or an error that says where an action may be called
        nodes, given = arguments(member, args, kwargs)
        with nullcontext() if overridden else holder.join_(member, nodes):
            body(holder, **given)

    member = Member(kind, body.__name__, body, where, names, _fairness(fair, where), budget, actor)
    setattr(called, MARK, member)
    return cast("B", called)


def _fairness(given: object, where: Source) -> tuple[Fairness | SharedFairness, ...]:
    """What `fair=` names, one after the other; nothing for `Fairness.NONE`."""
    listed = cast("tuple[object, ...]", given) if isinstance(given, tuple) else (given,)
    for one in listed:
        if not isinstance(one, Fairness | SharedFairness):
            raise DecoratorError(
                f"`fair` is {one!r} ({type(one).__name__})",
                where=where,
                help="write `Fairness.WEAK` or `Fairness.STRONG`, or a fairness that the class declares: "
                "`turn = fairness(Fairness.WEAK)`",
            )
    if len(set(listed)) < len(listed):
        raise DecoratorError("`fair` names one fairness twice", where=where, help="keep one")
    found = cast("tuple[Fairness | SharedFairness, ...]", listed)
    return tuple(one for one in found if one is not Fairness.NONE)


def _check_options(fair: tuple[object, ...], budget: object, actor: object, where: Source) -> None:
    options = (
        (
            "spends",
            budget,
            BudgetName | None,
            "a budget that the class declares: `crashes = budget(1)`",
        ),
        ("by", actor, Actor | None, '`Actor("who acts")`'),
    )
    for name, given, wanted, mend in options:
        if not isinstance(given, wanted):
            raise DecoratorError(
                f"`{name}` is {given!r} ({type(given).__name__})", where=where, help=f"write {mend}"
            )
    if isinstance(budget, BudgetName) and fair:
        raise DecoratorError(
            "an action that spends a budget cannot be fair",
            where=where,
            help="a budget is for what the environment may do and nobody may count on, as a crash: "
            "leave `fair` out; or leave `spends` out, if it has to happen",
        )


def returned_value(name: str, where: Source) -> DefinitionError:
    """The error for an action that returns something."""
    return ResultError(
        f"action `{name}` returns a value",
        where=where,
        help="a guard is `require(condition, name)`; an action returns nothing",
    )


def _local_names() -> Mapping[str, object]:
    """The names visible where a decorator stands, so that annotations of local types can be resolved."""
    own = inspect.currentframe()
    decorator = own.f_back if own is not None else None
    outer = decorator.f_back if decorator is not None else None
    names: dict[str, object] = {}
    while outer is not None and outer.f_code.co_name != "<module>":
        names = {**outer.f_locals, **names}
        outer = outer.f_back
    return names


local_names, mark = _local_names, _mark
"""For decorators of other modules."""
