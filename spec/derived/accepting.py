"""What `@accepts` promises: where a condition holds, an action is enabled, budgets and bounds of a check apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from stagewright.spec.definition import (
    Action,
    Definition,
    Joined,
    NotAsked,
    Property,
    PropertyKind,
)
from stagewright.spec.derived.independence import happens, waits_for_nothing
from stagewright.spec.errors import DecoratorError, ParameterError, ReasonError
from stagewright.spec.nodes import (
    BOOL,
    FALSE,
    Apply,
    Bound,
    Column,
    Field,
    Node,
    Op,
    Quantified,
    Select,
    bounds_in,
    conjunction,
    for_some,
)
from stagewright.spec.source import here

_APART = 1 << 20  # added to serials: what an action binds is not what the property binds


@dataclass(frozen=True)
class Way:
    """A step that happens, and how it calls an action: its own, or one of a part that it joins."""

    action: Action
    call: Joined


@dataclass(frozen=True)
class Asked:
    """The properties of a definition, and what its parts promise beside them."""

    properties: tuple[Property, ...]
    not_asked: tuple[NotAsked, ...]


def accepting(
    properties: Sequence[Property],
    traced: Mapping[str, Action],
    actions: Sequence[Action],
) -> Asked:
    """What is asked of a definition.

    What a part promises of an action that its system drives is asked of the steps that join it, unless the system
    restricts it; where the action never happens, it is not asked. `traced`: also the actions that do not happen by
    themselves.

    Raises:
        DecoratorError, ParameterError: the machine has no such action, or a parameter is of another sort than the action's.
        ReasonError: what is restricted is not asked anyway.
    """
    asked: list[Property] = []
    left: list[NotAsked] = []
    for prop in properties:
        if prop.independent and not happens(prop, actions):
            left.append(NotAsked(prop.name, "independent", "none of its actions happens here"))
        elif prop.kind not in (PropertyKind.ACCEPTS, PropertyKind.RESTRICTED):
            asked.append(prop)
        elif ways(actions, prop.action):
            _check_parameters(prop, traced[prop.action])
            asked.append(prop)
        elif "." not in prop.action:
            raise DecoratorError(
                f"`{prop.name}` is about the action `{prop.action}`, which does not happen here",
                where=prop.where or here(),
                help="name an action of this machine; of one that only some profiles have, begin with "
                "`only_when(...)`",
            )
        elif prop.kind is PropertyKind.RESTRICTED:
            raise ReasonError(
                f"`{prop.name}` is restricted, and not asked anyway: `{prop.action}` never happens here",
                where=prop.where or here(),
                help="remove it from `restricts`",
            )
        else:
            kind = f"{prop.kind.value} {prop.action}"
            left.append(NotAsked(prop.name, kind, f"`{prop.action}` never happens here"))
    return Asked(tuple(asked), tuple(left))


def ways(actions: Iterable[Action], name: str) -> list[Way]:
    """How an action happens: by itself, or with each step that joins it."""
    found: list[Way] = []
    for action in actions:
        if action.name == name:
            return [Way(action, Joined(name, tuple((p.name, p) for p in action.params)))]
        found += [Way(action, call) for call in action.joined if call.action == name]
    return found


def accepted_when(definition: Definition, prop: Property) -> Node:
    """The invariant that an ACCEPTS property is: its condition implies that some values enable the action."""
    premise = Apply(Op.NOT, (prop.condition,), BOOL)
    return Apply(Op.OR, (premise, enabled(definition, prop)), BOOL, prop.condition.where)


def refused_where(definition: Definition, prop: Property) -> Node:
    """What a RESTRICTED property is a witness of: for some values its condition holds, and the action is refused."""
    refused = Apply(Op.NOT, (enabled(definition, prop),), BOOL)
    return for_some(prop.params, Apply(Op.AND, (prop.condition, refused), BOOL))


def spelled_out(definition: Definition) -> Definition:
    """The definition with conditions on states for what is said of actions, whether they are accepted, restricted or wait."""
    properties = tuple(spelled_property(definition, p) for p in definition.properties)
    same = properties == definition.properties
    return definition if same else replace(definition, properties=properties)


def spelled_property(definition: Definition, prop: Property) -> Property:
    """One property, spelled out."""
    match prop.kind:
        case PropertyKind.ACCEPTS:
            return _as_invariant(definition, prop)
        case PropertyKind.RESTRICTED:
            return _as_witness(definition, prop)
        case PropertyKind.INVARIANT if prop.independent:
            return replace(prop, condition=waits_for_nothing(definition, prop))
        case _:
            return prop


def _as_invariant(definition: Definition, prop: Property) -> Property:
    return replace(prop, kind=PropertyKind.INVARIANT, condition=accepted_when(definition, prop))


def _as_witness(definition: Definition, prop: Property) -> Property:
    condition = refused_where(definition, prop)
    return replace(prop, kind=PropertyKind.SOMETIMES, params=(), condition=condition)


def enabled(definition: Definition, prop: Property) -> Node:
    """That the action of an ACCEPTS property is enabled for the property's parameters and some others.

    Of one that steps of a system join: that some of these steps is, in which it has these parameters.
    """
    found = [_enabled(way, prop) for way in ways(definition.actions, prop.action)]
    if not found:
        return FALSE  # of a changed definition, whose step no longer joins it
    return found[0] if len(found) == 1 else Apply(Op.OR, tuple(found), BOOL)


def _enabled(way: Way, prop: Property) -> Node:
    known = {param.name: param for param in prop.params}
    free = list(way.action.params)
    names = {param: _apart(param) for param in free}
    unlike: list[tuple[Node, Bound]] = []  # what the step makes of a parameter, and the property's
    for name, argument in way.call.arguments:
        if name in known and argument in free and argument.sort == known[name].sort:
            free.remove(argument)
            names[argument] = known[name]
        elif name in known:
            unlike.append((argument, known[name]))
    call = [_renamed(c, names) for _, c in way.call.loops if c is not None]
    call += [Apply(Op.EQ, (_renamed(argument, names), param), BOOL) for argument, param in unlike]
    conditions = [_renamed(r.condition, names) for r in way.action.guards]
    if call:
        loops = [_apart(bound) for bound, _ in way.call.loops]
        conditions.append(for_some(loops, conjunction(call)))
    return for_some([_apart(param) for param in free], conjunction(conditions))


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
