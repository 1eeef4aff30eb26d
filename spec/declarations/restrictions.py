"""When actions may not be refused: what they do not wait for, and what a system refuses though its part accepts it.

    views = part(
        ViewBuilding,
        restricts=(restricted(ViewBuilding.tablets_are_moved_at_any_time, because="the balancer moves them"),),
    )

    @independent(stream, clean_up, of=(request, written))

What a system says of an `@accepts` of a part is that it refuses more than the part does, and why. Without such a word the system has to keep what the part promises. A word that nothing needs is an error, too: some run
must come to a state in which the action is refused although the part promises that it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType
from typing import Any, TypeVar, cast

from stagewright.spec.declarations.actions import Member, MemberKind, local_names, mark, member_of
from stagewright.spec.declarations.body_errors import wrong_result
from stagewright.spec.declarations.exercised import Choice, check_choice, named_choice
from stagewright.spec.declarations.unexercised import names_in
from stagewright.spec.declarations.variables import Var
from stagewright.spec.definition import Property, PropertyKind, Reason
from stagewright.spec.entities import Entity
from stagewright.spec.errors import DecoratorError, ReasonError
from stagewright.spec.nodes import TRUE
from stagewright.spec.source import here

_DEFAULT: Choice = MappingProxyType({})
W = TypeVar("W", bound=Callable[[Any], None])


@dataclass(frozen=True, eq=False)
class Restricted:
    """Promises of a part that its system restricts for one reason, and the scope at which this shows."""

    promises: tuple[Member, ...]
    reason: Reason
    at: Choice


def restricted(*promises: Callable[..., object], because: str, at: Choice = _DEFAULT) -> Restricted:
    """What these `@accepts` of a part promise, the system refuses somewhere; it stands in `part(..., restricts=(...))`.

    `at`: the scope at which a run shows it, by what differs from the default one (`{Tablet: 2, crashes: 1}`); else that one.

    Raises:
        ReasonError: something is no `@accepts`, or there is no reason.
    """
    where = here()
    members = [member_of(promise) for promise in promises]
    fit = [m for m in members if m is not None and m.accepted is not None]
    if len(fit) != len(members) or not members:
        raise ReasonError(
            "restricted(...) is given what is no @accepts",
            where=where,
            help="name what the part accepts: `restricted(Part.writes_are_not_refused, because=...)`",
        )
    if not isinstance(cast("object", because), str) or not because.strip():
        raise ReasonError(
            "restricted(...) without a reason",
            where=where,
            help="say in a sentence why the system refuses what the part accepts",
        )
    check_choice(at, where, "restricted")
    return Restricted(tuple(fit), Reason(because, where), at)


def restrictions_of(
    machine: type[object], said: Iterable[Restricted], left_out: frozenset[str]
) -> tuple[Restricted, ...]:
    """What `restricts` of a part says.

    Raises:
        ReasonError: something else stands there, or what it names is left out anyway.
    """
    found = tuple(said)
    for one in cast("tuple[object, ...]", found):
        if not isinstance(one, Restricted):
            raise ReasonError(
                f"`restricts` of {machine.__name__} names {one!r}",
                where=here(),
                help=f'write `restricts=(restricted({machine.__name__}.some_promise, because="…"),)`',
            )
    for promise in (p for one in found for p in one.promises):
        assert promise.accepted is not None
        if {promise.name, promise.accepted.name} & left_out:
            raise ReasonError(
                f"`{promise.name}` of {machine.__name__} is restricted, and not asked anyway",
                where=here(),
                help=f"`without` leaves out it or its action `{promise.accepted.name}`: keep one of the two",
            )
    return found


def with_restrictions(
    properties: Sequence[Property],
    said: Sequence[tuple[str, Restricted]],
    machines: Sequence[tuple[type[object], str]],
) -> list[Property]:
    """The properties, what is restricted as the witness that it is.

    `said`: with the prefix of the part of which it is said. `machines`: each with the prefix of its names.

    Raises:
        ReasonError: a promise belongs neither to the part nor to a part of it.
    """
    found = {
        name: one
        for prefix, one in said
        for promise in one.promises
        for name in names_in(
            next(machine for machine, its in machines if its == prefix),
            promise,
            [(machine, its) for machine, its in machines if its.startswith(prefix)],
            one.reason.where,
        )
    }
    return [_restricted(p, found[p.name]) if p.name in found else p for p in properties]


def _restricted(prop: Property, said: Restricted) -> Property:
    at = named_choice(said.at, said.reason.where)
    return replace(prop, kind=PropertyKind.RESTRICTED, because=said.reason.text, at=at)


def independent(
    *actions: Callable[..., None],
    of: object,
) -> Callable[[W], W]:
    """These actions wait for nothing in `of`, in no reachable state: what refuses one refuses it whatever these variables say.

        @independent(stream, clean_up, of=(request, written))
        def nobody_waits_for_clients(self) -> None:
            \"\"\"001: "…".\"\"\"

    `of`: variables, also those of parts; parts, which stand for all their variables; entities and enums, which stand for
    those of their members that are no parameters of the action: `of=Tablet` says that no tablet waits for another one,
    and a requirement on a set of tablets as a whole waits for others, too. What an
    action requires else is left to it: a requirement that reads one of `of` must follow from those that read none.
    The body is empty. In a system, what a part says of its own actions is not asked again.

    Raises:
        DecoratorError: something is no action, or there is none.
    """
    names, where = local_names(), here()
    members = [member_of(one) for one in actions]
    found = tuple(m for m in members if m is not None and m.kind is MemberKind.ACTION)
    apart = cast("tuple[object, ...]", of) if isinstance(of, tuple) else (of,)
    right = all(isinstance(one, Var) or _is_part(one) or _is_sort(one) for one in apart)
    if not found or len(found) < len(members) or not apart or not right:
        raise DecoratorError(
            "@independent is given what is no action, or no variable",
            where=where,
            help="write `@independent(stream, clean_up, of=(request, written))`",
        )

    def decorate(body: W) -> W:
        return mark(body, MemberKind.INDEPENDENT, names, independent=found, apart=apart)

    return decorate


def _is_sort(one: object) -> bool:
    return isinstance(one, type) and issubclass(one, Enum | Entity)


def _is_part(one: object) -> bool:
    return isinstance(getattr(one, "machine", None), type)


def independent_of(
    member: Member,
    result: object,
    found: Mapping[str, object],
    machines: Sequence[tuple[type[object], str]],
) -> Property:
    """The property; `found`: the machine's members by name; `machines`: itself and its parts, with the prefixes of their names.

    Raises:
        DecoratorError, ReasonError: it names what the machine does not have.
    """
    if result is not None:
        raise wrong_result(member.what, result, "leave its body empty", member)
    apart = [_names_of(one, found, machines) for one in member.apart]
    if not all(apart):
        raise DecoratorError(
            f"`{member.name}` names what this machine does not have",
            where=member.where,
            help="`of` takes variables and parts of the machine itself, and variables of its parts",
        )
    return Property(
        member.name,
        PropertyKind.INVARIANT,
        (),
        TRUE,
        doc=member.doc,
        where=member.where,
        role=member.role,
        independent=tuple(
            name
            for one in member.independent
            for name in names_in(machines[0][0], one, machines, member.where)
        ),
        apart=tuple(name for names in apart for name in names),
    )


def _names_of(
    one: object, found: Mapping[str, object], machines: Sequence[tuple[type[object], str]]
) -> list[str]:
    """What stands in `of`, as the definition calls it: also a variable of a part, and what a subclass has in its place."""
    if isinstance(one, type):
        return [one.__name__]
    name = str(getattr(one, "name", ""))
    owners = [
        prefix
        for machine, prefix in machines
        if any(vars(base).get(name) is one for base in machine.__mro__)
    ]
    if not owners and type(found.get(name)) is type(one):
        owners = [""]
    return [prefix + name for prefix in owners]
