"""Mutants of helpers that steps and properties share: such a method returns something else, for both.

A property that calls what a step calls errs with it, and may hold of a system that does the wrong thing. So the helper
itself is changed, and the machine traced once more. What a property calls and no step does is no part of what it checks,
and what steps alone call is changed where each of them requires or assigns it.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import FunctionType, ModuleType
from typing import Any, cast

from stagewright.checker.mutation.changes.expressions import Change, changed, changes
from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import Mutant, owner_of
from stagewright.checker.mutation.changes.reasons import reasons_of_helper
from stagewright.spec.declarations.actions import member_of
from stagewright.spec.declarations.records import Holder
from stagewright.spec.definition import Definition
from stagewright.spec.machine import Machine, machines_of
from stagewright.spec.nodes import Node
from stagewright.spec.source import function_id, of_function
from stagewright.spec.terms.symbolic import Placed, Symbolic
from stagewright.spec.terms.tracing import member_at_work, part_at_work


def changed_helpers(
    definition: Definition, machine: type[Machine], afresh: Callable[[], Definition]
) -> Iterator[Mutant]:
    """Each helper that a step and a property call, with each change of what it returns."""
    helpers = _helpers(machine)
    calls = {id(helper): _Calls() for helper in helpers}
    _note(helpers, calls, afresh)
    steps = {action.name for action in definition.actions}
    properties = {prop.name for prop in definition.properties}
    for helper in helpers:
        made = calls[id(helper)]
        if made.members & steps and made.members & properties:
            part = owner_of(made.parts, definition.checked_alone)
            yield from _mutants(definition, helper, made, part, afresh)


@dataclass(frozen=True, eq=False)
class _Helper:
    """A function without a decorator of the language, and the names by which it is called."""

    function: FunctionType
    bindings: list[tuple[object, str, object]]  # owner, name, and what the owner has there

    @property
    def name(self) -> str:
        return self.function.__name__


@dataclass(eq=False)
class _Calls:
    """What is known of one helper's calls once the machine was traced."""

    members: set[str] = field(default_factory=set[str])  # in whose bodies it was called
    parts: set[str] = field(default_factory=set[str])
    returned: list[tuple[Node, frozenset[int]]] = field(
        default_factory=list[tuple[Node, frozenset[int]]]
    )  # with the nodes in it that are not the helper's own: arguments, and what other helpers return


def _helpers(machine: type[Machine]) -> list[_Helper]:
    """The methods of the machine, its parts and records, and the functions beside them."""
    owners: dict[object, None] = {}
    for kind in machines_of(machine):
        for base in kind.__mro__[: kind.__mro__.index(Machine)]:
            owners[base] = None
            module = sys.modules.get(base.__module__)
            if module is not None:
                owners[module] = None
    for module in [m for m in owners if isinstance(m, ModuleType)]:
        owners.update(dict.fromkeys(v for v in vars(module).values() if _is_holder(v)))
    found: dict[int, _Helper] = {}
    for owner in owners:
        for name, value in list(vars(cast("Any", owner)).items()):
            function = _function(value)
            if function is not None:
                helper = found.setdefault(id(function), _Helper(function, []))
                helper.bindings.append((owner, name, value))
    return list(found.values())


def _is_holder(value: object) -> bool:
    """Whether it is a class of records or machines that is not the language's own."""
    return (
        isinstance(value, type)
        and issubclass(value, Holder)
        and not value.__module__.startswith("stagewright.spec")
    )


def _function(value: object) -> FunctionType | None:
    """The function behind a method, a property or a static method; None for what has a decorator of the language."""
    found: object = value.fget if isinstance(value, property) else value
    found = found.__func__ if isinstance(found, staticmethod) else found
    if not isinstance(found, FunctionType) or member_of(found) is not None:
        return None
    ours = found.__module__.startswith("stagewright.spec") or found.__name__.startswith("__")
    return None if ours or hasattr(found, "__wrapped__") else found


@contextmanager
def _replaced(helper: _Helper, instead: Callable[..., object]) -> Iterator[None]:
    """Whoever calls the helper calls `instead`."""
    try:
        for owner, name, value in helper.bindings:
            new: object = instead
            if isinstance(value, property):
                new = property(instead)
            elif isinstance(value, staticmethod):
                new = staticmethod(instead)
            setattr(owner, name, new)
        yield
    finally:
        for owner, name, value in helper.bindings:
            setattr(owner, name, value)


def _note(
    helpers: list[_Helper], calls: Mapping[int, _Calls], afresh: Callable[[], Definition]
) -> None:
    """Trace the machine, and keep what each helper returned to whom."""
    kept: dict[int, Node] = {}  # what helpers returned; kept, so that no other node has its id

    def noting(helper: _Helper) -> Callable[..., object]:
        @functools.wraps(helper.function)
        def called(*args: object, **named: object) -> object:
            result = helper.function(*args, **named)
            if isinstance(result, Symbolic):
                mine = calls[id(helper)]
                mine.members.add(member_at_work())
                mine.parts.add(part_at_work())
                given = (_node(value) for value in (*args, *named.values()))
                others = frozenset({*kept, *(id(node) for node in given if node is not None)})
                mine.returned.append((result.node, others))
                kept[id(result.node)] = result.node
            return result

        return called

    with ExitStack() as stack:
        for helper in helpers:
            stack.enter_context(_replaced(helper, noting(helper)))
        afresh()


def _node(value: object) -> Node | None:
    match value:
        case Symbolic():
            return value.node
        case Placed():
            return value.record_node_()
        case _:
            return None


def _mutants(
    definition: Definition,
    helper: _Helper,
    calls: _Calls,
    part: str,
    afresh: Callable[[], Definition],
) -> Iterator[Mutant]:
    found: dict[Change, str] = {}
    for node, others in calls.returned:
        for change, text, _ in changes(node, others):
            found.setdefault(change, text)
    called = function_id(helper.function.__code__)
    for change, text in found.items():
        yield Mutant(
            Kind.HELPER,
            "",
            f"`{helper.name}` {text}",
            functools.partial(_made, helper, change, afresh),
            of_function(helper.function),
            tuple(reasons_of_helper(definition, called, text)),
            part,
        )


def _made(helper: _Helper, change: Change, afresh: Callable[[], Definition]) -> Definition:
    @functools.wraps(helper.function)
    def called(*args: object, **named: object) -> object:
        result = helper.function(*args, **named)
        if not isinstance(result, Symbolic):
            return result
        other = copy.copy(result)
        other.node = changed(result.node, *change)
        return other

    with _replaced(helper, called):
        return afresh()
