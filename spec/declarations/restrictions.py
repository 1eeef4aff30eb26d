"""What a system says of an `@accepts` of a part: that it refuses more than the part does, and why.

    views = part(
        ViewBuilding,
        restricts=(restricted(ViewBuilding.tablets_are_moved_at_any_time, because="the balancer moves them"),),
    )

Without such a word the system has to keep what the part promises. A word that nothing needs is an error, too: some run
must come to a state in which the action is refused although the part promises that it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import cast

from stagewright.spec.declarations.actions import Member, member_of
from stagewright.spec.declarations.exercised import Choice, check_choice, named_choice
from stagewright.spec.declarations.unexercised import names_in
from stagewright.spec.definition import Property, PropertyKind, Reason
from stagewright.spec.errors import ReasonError
from stagewright.spec.source import here

_DEFAULT: Choice = MappingProxyType({})


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
