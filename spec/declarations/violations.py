"""What a version of a machine is known to break, with the reason, beside the machine.

An older release had a bug, or its document leaves something open; `check` of that profile still says so, and exits
with 1. What is known is reported as known, and pages and `show --compare` list it. A machine says it as a member that
refers to the promises above it:

    left_open = known_violations(
        violated(every_request_ends, under=SEED, because="there is no way back: what fails is tried for ever"),
    )

A system says so of a part by the part's class (`TabletMigration.every_transition_ends`). What a part breaks by
itself, its own list says, which counts for every system that has the part under that profile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, cast

from stagewright.spec.declarations.actions import Member, MemberKind, member_of
from stagewright.spec.declarations.unexercised import Method, names_in
from stagewright.spec.definition import NO_DEADLOCK, KnownViolation, Reason
from stagewright.spec.errors import ReasonError
from stagewright.spec.source import here


class Version(Protocol):
    """A profile, by its name."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True, eq=False)
class Violated:
    """Promises that some profiles break for one reason; None: that there is no deadlock."""

    promises: tuple[Member | None, ...]
    under: tuple[str, ...]
    reason: Reason


@dataclass(frozen=True, eq=False)
class KnownViolations:
    """A machine's member that lists what its profiles break."""

    said: tuple[Violated, ...]


def known_violations(*said: Violated) -> KnownViolations:
    """A member of a machine that lists the promises that its older profiles break, with reasons."""
    return KnownViolations(said)


def violated(
    *promises: Method | Literal["no deadlock"],
    under: Version | Sequence[Version],
    because: str,
) -> Violated:
    """These promises are broken under a profile, or under each of several; `NO_DEADLOCK` stands for that there is none.

    Raises:
        ReasonError: something is no property, no profile, or there is no reason.
    """
    where = here()
    members = [None if p == NO_DEADLOCK else member_of(p) for p in promises]
    fit = [
        p == NO_DEADLOCK or (m is not None and m.kind is not MemberKind.ACTION)
        for p, m in zip(promises, members, strict=True)
    ]
    if not promises or not all(fit):
        raise ReasonError(
            "violated(...) is given what is no property",
            where=where,
            help="name methods that are decorated as properties: `violated(every_request_ends, under=SEED, because=...)`",
        )
    versions = list(under) if isinstance(under, Sequence) else [under]
    names = [str(getattr(version, "name", "")) for version in versions]
    if not all(names) or not names:
        raise ReasonError(
            "violated(...) is given what is no profile",
            where=where,
            help="name profiles of this machine: `under=SEED`, or `under=(SEED, FIRST_RELEASE)`",
        )
    if not isinstance(cast("object", because), str) or not because.strip():
        raise ReasonError(
            "violated(...) without a reason",
            where=where,
            help="say in a sentence what the version does, or leaves open",
        )
    return Violated(tuple(members), tuple(names), Reason(because, where))


def violations_in(
    parts: Sequence[tuple[type[object], str, str, Sequence[str]]],
) -> tuple[KnownViolation, ...]:
    """What a machine and its parts say of the profile at hand, each promise once, the machine's own word first.

    `parts`: the machine first, each with the prefix of its names, its profile, and the names of all its profiles.

    Raises:
        ReasonError: a property belongs to no part of the machine, or a profile is none of it.
    """
    found: dict[str, KnownViolation] = {}
    for part, prefix, profile, known in parts:
        beneath = [(p, name) for p, name, _, _ in parts if name.startswith(prefix)]
        for base in part.__mro__:
            for said in (v for v in vars(base).values() if isinstance(v, KnownViolations)):
                for one in said.said:
                    if base is part:
                        _refuse_unknown(part, one, known)
                    names = _names(part, one, beneath, prefix)
                    if profile in one.under:
                        for name in names:
                            reason = replace(one.reason, subject=f"`{name}`")
                            found.setdefault(name, KnownViolation(name, reason))
    return tuple(found.values())


def _names(
    part: type[object], said: Violated, beneath: Sequence[tuple[type[object], str]], prefix: str
) -> list[str]:
    where = said.reason.where
    names = [n for m in said.promises if m is not None for n in names_in(part, m, beneath, where)]
    # A part that cannot go on is no deadlock of the system that it is part of.
    return names if prefix or None not in said.promises else [*names, NO_DEADLOCK]


def _refuse_unknown(part: type[object], said: Violated, known: Sequence[str]) -> None:
    for name in said.under:
        if name not in known:
            raise ReasonError(
                f"{part.__name__} has no profile `{name}`",
                where=said.reason.where,
                help=f"its profiles are {', '.join(known)}" if known else "it has no profiles",
            )
