"""What `@accepts` promises: where a condition holds, an action is enabled, budgets and bounds of a check apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from stagewright.spec.definition import Action, Definition, Property, PropertyKind
from stagewright.spec.errors import DecoratorError, ParameterError
from stagewright.spec.nodes import (
    BOOL,
    Apply,
    Bound,
    Column,
    Field,
    Node,
    Op,
    Quantified,
    Quantity,
    Select,
    bounds_in,
    conjunction,
)
from stagewright.spec.source import here

_APART = 1 << 20  # added to serials: what an action binds is not what the property binds


def accepting(properties: Sequence[Property], actions: Sequence[Action]) -> Iterator[Property]:
    """The properties of a definition.

    What a part promises of an action that its system drives, or does without, is not promised of the system.

    Raises:
        DecoratorError, ParameterError: the machine has no such action, or a parameter is of another sort than the action's.
    """
    by_name = {action.name: action for action in actions}
    for prop in properties:
        action = by_name.get(prop.action)
        if prop.kind is not PropertyKind.ACCEPTS:
            yield prop
        elif action is not None:
            _check_parameters(prop, action)
            yield prop
        elif "." not in prop.action:
            raise DecoratorError(
                f"`{prop.name}` is about the action `{prop.action}`, which does not happen here",
                where=prop.where or here(),
                help="name an action of this machine; of one that only some profiles have, begin with "
                "`only_when(...)`",
            )


def accepted_when(definition: Definition, prop: Property) -> Node:
    """The invariant that an ACCEPTS property is: its condition implies that some values enable the action."""
    premise = Apply(Op.NOT, (prop.condition,), BOOL)
    return Apply(Op.OR, (premise, enabled(definition, prop)), BOOL, prop.condition.where)


def spelled_out(definition: Definition) -> Definition:
    """The definition with an invariant in the place of each ACCEPTS property."""
    if not any(p.kind is PropertyKind.ACCEPTS for p in definition.properties):
        return definition
    properties = tuple(
        replace(p, kind=PropertyKind.INVARIANT, condition=accepted_when(definition, p))
        if p.kind is PropertyKind.ACCEPTS
        else p
        for p in definition.properties
    )
    return replace(definition, properties=properties)


def enabled(definition: Definition, prop: Property) -> Node:
    """That the action of an ACCEPTS property is enabled for the property's parameters and some others."""
    action = definition.action(prop.action)
    known = {param.name: param for param in prop.params}
    names = {p: known.get(p.name, _apart(p)) for p in action.params}
    refusing = [r.condition for r in action.requirements if not r.bound]
    node = conjunction([_renamed(condition, names) for condition in refusing])
    for param in reversed(action.params):
        if param.name not in known:
            node = Quantified(Quantity.SOME, _apart(param), node, BOOL)
    return node


def _check_parameters(prop: Property, action: Action) -> None:
    of_action = {param.name: param for param in action.params}
    for param in prop.params:
        other = of_action.get(param.name)
        if other is not None and other.sort != param.sort:
            raise ParameterError(
                f"parameter `{param.name}` of `{prop.name}` is a {param.sort}, and of the action "
                f"`{action.name}` a {other.sort}",
                where=param.where or prop.where or here(),
                help="parameters of one name are one: rename it, or give it the action's sort",
            )
        if other is None and param not in bounds_in(prop.condition):
            raise ParameterError(
                f"parameter `{param.name}` of `{prop.name}` is never used",
                where=param.where or prop.where or here(),
                help=f"`{action.name}` has no parameter of that name: use it in the condition, or remove it",
            )


def _apart(bound: Bound) -> Bound:
    return replace(bound, serial=bound.serial + _APART)


def _renamed(node: Node, names: Mapping[Bound, Bound]) -> Node:
    """The same expression with other names for an action's parameters, and its own bound names set apart."""
    match node:
        case Bound():
            return names[node] if node in names else _apart(node)
        case Select(base, key):
            return replace(node, base=_renamed(base, names), key=_renamed(key, names))
        case Field(base):
            return replace(node, base=_renamed(base, names))
        case Apply(_, args):
            return replace(node, args=tuple(_renamed(arg, names) for arg in args))
        case Column(_, index):
            return replace(node, index=_renamed(index, names))
        case Quantified(_, bound, body):
            return replace(node, bound=_apart(bound), body=_renamed(body, names))
        case _:
            return node
