"""What a machine forgets: to use a variable or a budget, to decorate a method, to call a word of the language.

A condition that another body of the file uses is a helper. One that nothing uses would be checked by nobody, and
nobody would notice. `others`: the same definition under its other profiles, looked at if need be.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType
from typing import cast

from stagewright.spec.declarations.actions import Member, member_of
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.declarations.mends import usage_if_word
from stagewright.spec.definition import Definition
from stagewright.spec.errors import UndecoratedError, UnusedError, VariableError
from stagewright.spec.nodes import root_variable
from stagewright.spec.source import here, of_attribute, of_function

_RETURNS = {
    "Bool": "@invariant, @step_property, @always_reachable, @sometimes",
    "LeadsTo": "@liveness",
    "Eventually": "@liveness",
    "None": "@action",
}


def check_decorated(machine: type[object], base: type[object]) -> None:
    """Refuse a method without a decorator that overrides one with it, or that nothing uses.

    `base`: the class of all machines; what it and its own base classes say is the library's.

    Raises:
        UndecoratedError: there is such a method; names its place and the decorators that it may have.
    """
    own = [c for c in machine.__mro__ if c not in base.__mro__]
    unused: list[tuple[type[object], FunctionType]] = []
    for at, cls in enumerate(own):
        for name, method in vars(cls).items():
            if not isinstance(method, FunctionType) or member_of(method) is not None:
                continue
            above = (member_of(vars(c)[name]) for c in own[at + 1 :] if name in vars(c))
            lost = next(above, None)
            if lost is not None:
                raise _overrides(cls, method, lost)
            if not name.startswith("__") and _words_for(method):
                unused.append((cls, method))
    if unused:
        used = {n for c in own for f in _functions(vars(c).values()) for n in _names(f.__code__)}
        left = [(c, f) for c, f in unused if f.__name__ not in used]
        for cls, method in left:
            if method.__name__ not in _names_in_module(cls.__module__):
                raise _unused(cls, method)


def check_called(machine: type[object]) -> None:
    """Refuse `x = number`: a word of the language that is not called declares nothing.

    Raises:
        VariableError: there is such a member; names its place and how the word is called.
    """
    for name, value in vars(machine).items():
        usage = usage_if_word(value)
        if usage:
            raise VariableError(
                f"`{machine.__name__}.{name}` is `{usage.partition('(')[0]}` itself, not a variable: it is not called",
                where=of_attribute(machine, name),
                help=f"write `{name} = {usage}`",
            )


def _words_for(method: FunctionType) -> str:
    """The decorators that fit what a method returns; empty if it can be neither action nor property."""
    returned: object = inspect.get_annotations(method).get("return", "")
    said = returned if isinstance(returned, str) else getattr(returned, "__name__", str(returned))
    if not said:
        return "@action, @invariant"
    return _RETURNS.get(said.rpartition(".")[2], "")


def _overrides(cls: type[object], method: FunctionType, lost: Member) -> UndecoratedError:
    kind = lost.kind.name.lower()
    return UndecoratedError(
        f"`{cls.__name__}.{method.__name__}` overrides the {lost.what} and has no decorator",
        where=of_function(method),
        help=f"without one it takes the {lost.kind.words} away: write `@{kind}` above it; a system leaves out "
        "what a part does or promises by `part(…, without=(…,))`",
    )


def _unused(cls: type[object], method: FunctionType) -> UndecoratedError:
    return UndecoratedError(
        f"`{cls.__name__}.{method.__name__}` has no decorator, and nothing here uses it",
        where=of_function(method),
        help=f"decorate it: {_words_for(method)}; a helper that only other files use is a function: "
        f"`def {method.__name__}(machine: {cls.__name__}, …)`",
    )


def _functions(values: object) -> Iterator[FunctionType]:
    """The functions among the members of a class or a module, decorated ones as they were written."""
    for value in cast("list[object]", list(values)):  # type: ignore[call-overload]
        found = value.fget if isinstance(value, property) else value
        found = getattr(found, "__func__", found)
        marked = member_of(found)
        found = marked.body if marked is not None else found
        found = inspect.unwrap(found) if callable(found) else found
        if isinstance(found, FunctionType):
            yield found


def _names(code: CodeType) -> set[str]:
    """All names and attributes that a function mentions, and those inside of it."""
    inner = (c for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*(_names(c) for c in inner))


def _names_in_module(module: str) -> set[str]:
    """What the functions of a module mention, and those of its classes."""
    members = list(vars(sys.modules[module]).values()) if module in sys.modules else []
    inside = [m for m in members if getattr(m, "__module__", "") == module]
    classes = [v for c in inside if isinstance(c, type) for v in vars(c).values()]
    return {n for f in _functions([*inside, *classes]) for n in _names(f.__code__)}


def check_assigned(definition: Definition, others: Iterable[Definition]) -> None:
    """A variable that no action of any profile assigns is a constant that was not said to be one.

    A part's variables may rest: a system leaves out the part's actions that it has no use for.
    """
    own = [v for v in definition.variables if "." not in v.name]
    assigned = _assigned_in(definition)
    if all(v.constant or v.name in assigned for v in own):
        return  # to look at the other profiles takes as long as all the rest
    for other in others:
        assigned |= _assigned_in(other)
    for variable in own:
        if variable.name not in assigned and not variable.constant:
            raise UnusedError(
                f"variable `{variable.name}` is never assigned by an action",
                where=variable.where or here(),
                help="remove it, or declare it `constant(...)` if runs differ in it but never change it",
            )


def check_spent(
    machine: type[object], definition: Definition, others: Iterable[Definition]
) -> None:
    """A budget that no action of any profile spends bounds nothing; one that a base class declares may rest."""
    own = {n: member for n, member in vars(machine).items() if isinstance(member, BudgetName)}
    spent = {b.name for b in definition.budgets}
    if own.keys() <= spent:
        return
    for other in others:
        spent |= {b.name for b in other.budgets}
    for name, budget in own.items():
        if name not in spent:
            raise UnusedError(
                f"budget `{name}` is spent by no action",
                where=budget.where,
                help=f"write `@action(spends={name})` at the action that it bounds, or remove it",
            )


def _assigned_in(definition: Definition) -> set[str]:
    return {root_variable(a.place) for action in definition.actions for a in action.assignments}
