"""Written reasons why a search at the default scope does not exercise a thing that a machine says.

`stagewright check --all` fails where an action never happens, or a promise is vacuous, and no reason is given.
A machine gives them as a member that refers to the methods above it:

    beyond_the_default = unexercised(
        never_happens(take_locks, release_locks, because="locks are a budget of other scopes"),
        vacuous(excluded_nodes_are_left_alone, because="no node is excluded while there are two"),
    )

A system names an action or a promise of a part by the part's class: `TopologyControl.cancel`. A reason for what
does happen, or is not vacuous, is an error: so that the list stays true.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

from stagewright.spec.declarations.actions import Member, MemberKind, member_of
from stagewright.spec.definition import Reason, Unexercised
from stagewright.spec.errors import ReasonError
from stagewright.spec.source import Source, here

Method = Callable[..., object]


@dataclass(frozen=True, eq=False)
class Idle:
    """Actions that never happen, or promises that are vacuous, for one reason."""

    members: tuple[Member, ...]
    vacuous: bool
    reason: Reason


@dataclass(frozen=True, eq=False)
class NotExercised:
    """A machine's member that lists what its default scope does not exercise."""

    said: tuple[Idle, ...]


def unexercised(*things: Idle) -> NotExercised:
    """A member of a machine that lists what a search at its default scope does not exercise, with reasons."""
    return NotExercised(things)


def never_happens(*actions: Method, because: str) -> Idle:
    """These actions happen in no run at the default scope."""
    return _idle("never_happens", actions, because, vacuous=False)


def vacuous(*promises: Method, because: str) -> Idle:
    """What these promises speak of happens in no run at the default scope: their premises never hold."""
    return _idle("vacuous", promises, because, vacuous=True)


def _idle(called: str, methods: Sequence[Method], because: str, *, vacuous: bool) -> Idle:
    where = here()
    found = [member_of(method) for method in methods]
    fit = [m for m in found if m is not None and (m.kind is not MemberKind.ACTION) == vacuous]
    if len(fit) != len(methods) or not methods:
        what = "property" if vacuous else "action"
        raise ReasonError(
            f"{called}(...) is given what is no {what}",
            where=where,
            help=f"name methods that are decorated as {what}s: `{called}(take_locks, because=...)`",
        )
    if not isinstance(cast("object", because), str) or not because.strip():
        raise ReasonError(
            f"{called}(...) without a reason",
            where=where,
            help="say in a sentence why the default scope does not exercise it",
        )
    return Idle(tuple(fit), vacuous, Reason(because, where))


def unexercised_in(
    machine: type[object], parts: Sequence[tuple[type[object], str]]
) -> tuple[Unexercised, ...] | None:
    """What a machine says, None if nothing; what its base classes say is of their own default scopes.

    `parts`: the machine and its parts, with the prefixes of their names.

    Raises:
        ReasonError: a method belongs to none of them.
    """
    lists = [said for said in vars(machine).values() if isinstance(said, NotExercised)]
    if not lists:
        return None
    return tuple(
        Unexercised(name, idle.vacuous, replace(idle.reason, subject=f"`{name}`"))
        for said in lists
        for idle in said.said
        for member in idle.members
        for name in names_in(machine, member, parts, idle.reason.where)
    )


def names_in(
    machine: type[object],
    member: Member,
    parts: Sequence[tuple[type[object], str]],
    where: Source,
) -> list[str]:
    """What a method is called in the definition: once for each part that has it.

    Raises:
        ReasonError: it belongs to none of them.
    """
    names = [
        prefix + member.name
        for part, prefix in parts
        if any(member_of(vars(base).get(member.name)) is member for base in part.__mro__)
    ]
    if not names:
        raise ReasonError(
            f"`{member.name}` belongs to no part of {machine.__name__}",
            where=where,
            help="name a method of the machine itself, or of the class of one of its parts",
        )
    return names
