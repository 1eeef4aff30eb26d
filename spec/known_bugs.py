"""Known bugs: a machine with a mistake put back into it: one of a real system, or one that its document rules out.

A known bug is a subclass that overrides the bodies in which the mistake was made, so that it reads as the
difference between right and wrong; or it is a release, as a profile, that still had it. What the checker
must find is named with it: the promises that it may break, at a scope at which the right machine keeps them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar, cast

from stagewright.spec.declarations.actions import member_of
from stagewright.spec.declarations.budgets import BudgetName
from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.entities import Entity
from stagewright.spec.errors import ReasonError
from stagewright.spec.machine import Machine
from stagewright.spec.scope import Scope, scope_of
from stagewright.spec.source import here

M = TypeVar("M", bound=type[Machine])
DOCUMENTS = ("design document", "Raft,")  # how references to texts begin
_MARK = "__stagewright_known_bug__"

Promise = Callable[..., object] | str
"""A promise by its method (`TabletCluster.writes_find_storage`), or by its name where a part makes it."""


@dataclass(frozen=True)
class KnownBug:
    """A bug as a definition; the checker must find it."""

    id: str  # a row of the list of known bugs (`T17`)
    reference: (
        str  # the upstream issue or change (`scylladb #26512`), or the text that rules it out
    )
    machine: type[Machine] = field(repr=False)  # with the bug in it
    right: type[Machine] = field(repr=False)  # without
    breaks: tuple[str, ...]  # the promises it breaks: one of them at least
    story: str = field(repr=False)
    profile: str = ""  # of both; empty for the newest
    right_profile: str = ""
    sizes: Mapping[type[Entity], int] = field(default_factory=dict[type[Entity], int])
    budgets: Mapping[str, int | None] = field(default_factory=dict[str, int | None])

    @property
    def is_historical(self) -> bool:
        """Whether a real system had it; else a document rules it out."""
        return not self.reference.startswith(DOCUMENTS)

    def definition(self) -> Definition:
        """The definition with the bug."""
        return define(self.machine, self.profile)

    def right_definition(self) -> Definition:
        """The definition without it."""
        return define(self.right, self.right_profile)

    def scope_in(self, definition: Definition) -> Scope:
        """The scope at which the bug shows; budgets that a definition does not have are left out."""
        own = {b.name for b in definition.budgets}
        return scope_of(
            definition,
            {kind.__name__: n for kind, n in self.sizes.items()},
            {name: n for name, n in self.budgets.items() if name in own},
        )


class Absence(Enum):
    """Why a bug of the list is not among those that are found."""

    EQUIVALENT = (
        "equivalent"  # in these machines it is no mistake, or cannot be told from the right thing
    )
    OUT_OF_SCOPE = "out of scope"  # nothing that these machines describe


@dataclass(frozen=True)
class NotFound:
    """A bug of the list that no machine shows, and why."""

    id: str
    reference: str
    absence: Absence
    reason: str


def known_bug(
    row: str,
    reference: str,
    *,
    breaks: Promise | Sequence[Promise],
    profile: str = "",
    sizes: Mapping[type[Entity], int] | None = None,
    budgets: Mapping[BudgetName, int | None] | None = None,
) -> Callable[[M], M]:
    """Mark a subclass as its base class with a historical bug in it; the docstring tells the story.

    `row`: in the list of known bugs. `breaks`: the promises of which it must break one; `sizes`, `budgets`: the scope at which it does, and at
    which the base class keeps them.
    """
    where = here()

    def mark(machine: M) -> M:
        right = cast("type[Machine]", machine.__bases__[0])
        if right is Machine:
            raise ReasonError(
                f"known bug {row}: {machine.__name__} does not inherit from the machine that is right",
                where=where,
                help="write `class TheMistake(TheMachine):` and override the bodies that were wrong",
            )
        story = inspect.cleandoc(machine.__doc__ or "") if "__doc__" in vars(machine) else ""
        if not story:
            raise ReasonError(
                f"known bug {row} has no docstring",
                where=where,
                help="say in it what happened, in a sentence or two",
            )
        bug = KnownBug(
            row,
            reference,
            machine,
            right,
            _names(breaks),
            story,
            profile,
            profile,
            sizes or {},
            {b.name: n for b, n in (budgets or {}).items()},
        )
        setattr(machine, _MARK, bug)
        return machine

    return mark


def released_bug(
    row: str,
    reference: str,
    story: str,
    *,
    machine: type[Machine],
    profile: str,
    breaks: Promise | Sequence[Promise],
    mended_in: str = "",
    sizes: Mapping[type[Entity], int] | None = None,
    budgets: Mapping[BudgetName, int | None] | None = None,
) -> KnownBug:
    """A bug that a release, described by a profile, still had; `mended_in`: the profile without it."""
    return KnownBug(
        row,
        reference,
        machine,
        machine,
        _names(breaks),
        story,
        profile,
        mended_in,
        sizes or {},
        {b.name: n for b, n in (budgets or {}).items()},
    )


def known_bugs_in(names: Mapping[str, object]) -> tuple[KnownBug, ...]:
    """The known bugs that a module defines, given `globals()` at its end."""
    found: list[KnownBug] = []
    for value in names.values():
        bug = value if isinstance(value, KnownBug) else None
        if isinstance(value, type):
            bug = cast("KnownBug | None", vars(value).get(_MARK))
        if bug is not None and bug not in found:
            found.append(bug)
    return tuple(found)


def _names(breaks: Promise | Sequence[Promise]) -> tuple[str, ...]:
    given = [breaks] if isinstance(breaks, str) or callable(breaks) else list(breaks)
    names: list[str] = []
    for promise in given:
        member = None if isinstance(promise, str) else member_of(promise)
        if member is None and not isinstance(promise, str):
            raise ReasonError(
                f"{promise!r} is no property of a machine",
                where=here(),
                help="name a method decorated with @invariant, @liveness, …, or give its name",
            )
        names.append(member.name if member is not None else cast("str", promise))
    return tuple(names)
