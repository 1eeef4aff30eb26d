"""Written reasons why a change to a definition would break no promise.

`stagewright mutate` changes a definition in one place after the other and asks which promise notices. Where
none can, the machine says why, beside its bodies: as a member that refers to the methods and variables above it,

    harmless = equivalents(
        equivalent_drop(retry_barrier, "no reason to give up", because="what is hopeless may be tried again"),
        equivalent_weakening(begin, "there is room", because="…"),
        equivalent_loss(fail_barrier, barrier, because="a fault need not strike"),
        equivalent_replacement(resume, "Stage.none for Stage.use_new", because="…"),
        equivalent_step(stage, Stage.cleanup, Stage.none, because="…"),
        equivalent_value(Stage.repair, lambda stage: stage.storage, Replicas.both, because="…"),
        equivalent_helper(_is_due, "is never so", because="…"),
        equivalent_without(TabletMigration.fail_over, because="…"),
        equivalent_disabled(save_progress, because="…"),
    )

The first four are of what an action requires and assigns, itself or in a method that it calls; a method that
is named stands for every action that calls it. The others are of steps that could be added, of values that a
table could hold, of what a method could return that steps and properties share, of what a step of a system could forget
to join, and of actions that could never happen.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from stagewright.spec.definition import (
    Equivalent,
    EquivalentDisabled,
    EquivalentDrop,
    EquivalentHelper,
    EquivalentLoss,
    EquivalentReplacement,
    EquivalentStep,
    EquivalentValue,
    EquivalentWithout,
    Reason,
)
from stagewright.spec.errors import ReasonError
from stagewright.spec.source import Source, function_id, here

if TYPE_CHECKING:
    from stagewright.spec.declarations.variables import Var
    from stagewright.spec.terms.terms import MapOf, Term

E = TypeVar("E", bound=Enum)
V = TypeVar("V")
Method = Callable[..., object]


@dataclass(frozen=True, eq=False)
class _Drop:
    """Requirements that a method makes, and that may be dropped, or only weakened."""

    method: Method
    requirements: tuple[str, ...]
    weakened: bool
    reason: Reason


@dataclass(frozen=True, eq=False)
class _Loss:
    """What a method assigns and may leave as it is: variables, fields of records, or all that a method it calls assigns."""

    method: Method
    variables: tuple[Var[Any, Any], ...]
    helpers: tuple[Method, ...]
    reason: Reason


@dataclass(frozen=True, eq=False)
class _Step:
    of: tuple[Var[Any, Any]]  # one, in a tuple: a variable as such is a descriptor
    step: EquivalentStep


@dataclass(frozen=True, eq=False)
class _Helper:
    """Changes of what a method returns, in words; of none: any."""

    method: Method
    changes: tuple[str, ...]
    reason: Reason


@dataclass(frozen=True, eq=False)
class _Replacement:
    """Changes of what a method requires and assigns, in words; of none: any."""

    method: Method
    changes: tuple[str, ...]
    reason: Reason


Said = (
    _Drop
    | _Loss
    | _Step
    | EquivalentValue
    | _Helper
    | _Replacement
    | EquivalentWithout
    | EquivalentDisabled
)


@dataclass(frozen=True, eq=False)
class Equivalents:
    """What a machine says of changes that no promise minds."""

    said: tuple[Said, ...]


def equivalents(*changes: Said) -> Equivalents:
    """A member of a machine that lists changes which no promise minds, each with its reason."""
    return Equivalents(changes)


def equivalent_drop(method: Method, *requirements: str, because: str) -> Said:
    """No promise can tell when these requirements are dropped, or weakened.

    `method`: the action that makes them, or a method that actions call. A requirement is named as
    `require(...)` names it.
    """
    return _dropped(method, requirements, because, weakened=False)


def equivalent_weakening(method: Method, *requirements: str, because: str) -> Said:
    """The same of requirements that may be weakened, but not dropped."""
    return _dropped(method, requirements, because, weakened=True)


def equivalent_loss(method: Method, *lost: Var[Any, Any] | Method, because: str) -> Said:
    """No promise can tell when a method does not assign these variables, or a conditional value always.

    `method`: the action that assigns them, or a method that actions call. A field of a record is
    written as `Write.value`; a method that it calls stands for all that this one assigns, lost at once.
    """
    from stagewright.spec.declarations.variables import Var

    where = here()
    _check_method(method, "equivalent_loss", where)
    variables: list[Var[Any, Any]] = [v for v in lost if isinstance(v, Var)]
    helpers = tuple(h for h in lost if inspect.isfunction(h))
    if not lost or len(variables) + len(helpers) < len(lost):
        raise ReasonError(
            "equivalent_loss(...) is given what is no variable and no method",
            where=where,
            help="write `equivalent_loss(fail_barrier, barrier, because=...)`",
        )
    return _Loss(method, tuple(variables), helpers, _reason(because, where))


def _dropped(
    method: Method, requirements: tuple[str, ...], because: str, *, weakened: bool
) -> Said:
    where = here()
    called = "equivalent_weakening" if weakened else "equivalent_drop"
    _check_method(method, called, where)
    if not requirements or not all(isinstance(cast("object", r), str) for r in requirements):
        raise ReasonError(
            f"{called}(...) names no requirement",
            where=where,
            help=f'write `{called}(retry_barrier, "no reason to give up", because=...)`',
        )
    return _Drop(method, requirements, weakened, _reason(because, where))


def equivalent_step(
    variable: Var[Term[E], E] | Var[MapOf[Any, Term[E], E], Any],
    source: E | Collection[E],
    target: E | Collection[E],
    *,
    because: str,
) -> Said:
    """No promise would mind a further step of `variable` from `source` (or one of several) to `target`."""
    step = EquivalentStep("", _several(source), _several(target), _reason(because, here()))
    return _Step((cast("Var[Any, Any]", variable),), step)


def equivalent_value(
    member: E | Collection[E], column: Callable[[E], V], *values: V, because: str
) -> EquivalentValue:
    """No promise would mind if `column` of the member (or of several) held one of `values` (of none: any)."""
    where = here()
    reason = _reason(because, where)
    name = cast("Callable[[object], object]", column)(_Named())
    if not isinstance(name, _Attribute):
        raise ReasonError(
            "the second argument of equivalent_value(...) names no column",
            where=where,
            help="write `lambda stage: stage.writes`",
        )
    return EquivalentValue(_several(member), name.name, values, reason)


def equivalent_helper(method: Method | property, *changes: str, because: str) -> Said:
    """No promise can tell when this method, which steps and properties call, returns something else for both.

    `changes`: as the report words them after the method's name, or some words of that: `"is never so"`; of none: any.
    """
    where = here()
    called = method.fget if isinstance(method, property) else method
    _check_method(called, "equivalent_helper", where)
    assert called is not None
    return _Helper(called, changes, _reason(because, where))


def equivalent_replacement(method: Method, *changes: str, because: str) -> Said:
    """No promise can tell when a guard or an effect of a method names something else.

    `method`: the action, or a method that actions call. `changes`: as the report words them, or some words of that:
    `"Stage.none for Stage.use_new"`; of none: any.
    """
    where = here()
    _check_method(method, "equivalent_replacement", where)
    return _Replacement(method, changes, _reason(because, where))


def equivalent_without(*actions: Callable[..., None], because: str) -> EquivalentWithout:
    """No promise would mind if a step of the system did nothing of these actions of parts that it joins."""
    where = here()
    reason = _reason(because, where)
    names = _names_of(actions)
    if len(names) != len(actions) or not actions:
        raise ReasonError(
            "equivalent_without(...) is given what is no action",
            where=where,
            help="write `equivalent_without(TabletMigration.fail_over, because=...)`",
        )
    return EquivalentWithout(names, reason)


def equivalent_disabled(*actions: Callable[..., None], because: str) -> EquivalentDisabled:
    """No promise would mind if these actions (of none: any of the machine) never happened.

    Faults need no reason: what spends a `fault_budget(...)` may always fail to happen.
    """
    where = here()
    reason = _reason(because, where)
    names = _names_of(actions)
    if len(names) != len(actions):
        raise ReasonError(
            "equivalent_disabled(...) is given what is no action",
            where=where,
            help="write `equivalent_disabled(save_progress, because=...)`",
        )
    return EquivalentDisabled(names, reason)


def _names_of(actions: Sequence[Callable[..., None]]) -> tuple[str, ...]:
    """The names of those that are actions."""
    from stagewright.spec.declarations.actions import member_of

    found = [member_of(action) for action in actions]
    return tuple(member.name for member in found if member is not None)


def equivalents_of(
    machine: type[object], prefix: str, names: Mapping[Var[Any, Any], Sequence[str]]
) -> tuple[Equivalent, ...]:
    """What a machine and its base classes say; `names`: of each variable, also of those of its parts.

    `prefix`: of a part's names, in a system. What a part says of its own bodies is said there too, though
    the system may tell more; of steps and tables only the system itself speaks.
    """
    found: list[Equivalent] = []
    for base in machine.__mro__:
        for member in vars(base).values():
            for said in member.said if isinstance(member, Equivalents) else ():
                inherited = base is not machine
                match said:
                    case _Drop():
                        found += _drops(machine, prefix, said, inherited)
                    case _Loss():
                        found += _losses(machine, prefix, said, names, inherited)
                    case _Helper():
                        found += _of_helper(prefix, said, inherited)
                    case _Replacement():
                        found += _replacements(machine, prefix, said, inherited)
                    case EquivalentDisabled():
                        found.append(_disabled(prefix, said, inherited))
                    case _ if prefix:
                        pass
                    case _Step():
                        (variable,) = said.of
                        called = names.get(variable, [variable.name])
                        found += [replace(said.step, variable=name) for name in called]
                    case _:
                        found.append(said)
    return tuple(found)


def _drops(machine: type[object], prefix: str, said: _Drop, inherited: bool) -> list[Equivalent]:
    within = _within(machine, prefix, said.method)
    what = "weakening" if said.weakened else "dropping"
    return [
        EquivalentDrop(
            within,
            name,
            said.weakened,
            replace(
                said.reason,
                of_part=bool(prefix),
                inherited=inherited,
                subject=f"{what} `{name}` in `{said.method.__name__}`",
            ),
        )
        for name in said.requirements
        if within
    ]


def _losses(
    machine: type[object],
    prefix: str,
    said: _Loss,
    names: Mapping[Var[Any, Any], Sequence[str]],
    inherited: bool,
) -> list[Equivalent]:
    within = _within(machine, prefix, said.method)

    def reason(lost: str) -> Reason:
        subject = f"losing {lost} in `{said.method.__name__}`"
        return replace(said.reason, of_part=bool(prefix), inherited=inherited, subject=subject)

    found: list[Equivalent] = []
    for variable in said.variables if within else ():
        called = tuple(_names(variable, prefix, names))
        field = "" if called else variable.name
        found.append(EquivalentLoss(within, called, field, "", reason(f"`{variable.name}`")))
    for helper in said.helpers if within else ():
        known = function_id(inspect.unwrap(cast("Any", helper)).__code__)
        lost = f"all that `{helper.__name__}` assigns"
        found.append(EquivalentLoss(within, (), "", known, reason(lost)))
    return found


def _of_helper(prefix: str, said: _Helper, inherited: bool) -> list[Equivalent]:
    name = said.method.__name__
    reason = replace(said.reason, of_part=bool(prefix), inherited=inherited)
    within = function_id(inspect.unwrap(cast("Any", said.method)).__code__)
    if not said.changes:
        return [EquivalentHelper(within, "", replace(reason, subject=f"changing `{name}`"))]
    return [
        EquivalentHelper(within, c, replace(reason, subject=f"that `{name}` {c}"), prefix)
        for c in said.changes
    ]


def _replacements(
    machine: type[object], prefix: str, said: _Replacement, inherited: bool
) -> list[Equivalent]:
    within = _within(machine, prefix, said.method)
    what = f"in `{said.method.__name__}`"
    reason = replace(said.reason, of_part=bool(prefix), inherited=inherited)
    return [
        EquivalentReplacement(
            within, c, replace(reason, subject=f"{c} {what}" if c else f"any {what}"), prefix
        )
        for c in said.changes or ("",)
        if within
    ]


def _disabled(prefix: str, said: EquivalentDisabled, inherited: bool) -> EquivalentDisabled:
    named = ", ".join(f"`{name}`" for name in said.actions) or "any action"
    reason = replace(
        said.reason, of_part=bool(prefix), inherited=inherited, subject=f"never doing {named}"
    )
    return EquivalentDisabled(tuple(prefix + name for name in said.actions), reason, prefix)


def _names(
    variable: Var[Any, Any], prefix: str, names: Mapping[Var[Any, Any], Sequence[str]]
) -> Sequence[str]:
    """A variable's names in the definition; none of a record's field."""
    from stagewright.spec.declarations.records import Record

    if variable.owner is not None and issubclass(variable.owner, Record):
        return ()
    return names.get(variable, (prefix + variable.name,))


def _within(machine: type[object], prefix: str, method: Method) -> str:
    """What requirements and assignments say of where they were said; empty for an action that is overridden.

    A method, and an action of a part, stand for all actions in which their bodies run.
    """
    from stagewright.spec.declarations.actions import member_of

    member = member_of(method)
    if member is not None and getattr(machine, member.name, None) is method:
        return prefix + member.name
    if member is not None and any(vars(c).get(member.name) is method for c in machine.__mro__):
        return ""
    return function_id(inspect.unwrap(cast("Any", method)).__code__)


@dataclass(frozen=True)
class _Attribute:
    name: str


class _Named:
    """Stands for any member: reading a column gives its name."""

    def __getattr__(self, name: str) -> _Attribute:
        return _Attribute(name)


def _several(given: E | Collection[E]) -> tuple[E, ...]:
    return (given,) if isinstance(given, Enum) else tuple(given)


def _reason(why: object, where: Source) -> Reason:
    if not isinstance(why, str) or not why.strip():
        raise ReasonError(
            "an equivalence without a reason",
            where=where,
            help="say in a sentence why no property can tell the difference",
        )
    return Reason(why, where)


def _check_method(method: object, called: str, where: Source) -> None:
    from stagewright.spec.declarations.actions import member_of

    if member_of(method) is None and not isinstance(
        getattr(inspect.unwrap(cast("Any", method)), "__code__", None), CodeType
    ):
        raise ReasonError(
            f"{called}(...) is given {method!r}, which is no action and no method",
            where=where,
            help=f"name the method in whose body it is said: `{called}(retry_barrier, ...)`",
        )
