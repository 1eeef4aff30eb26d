"""Written reasons why a change to a definition would break no promise.

`stagewright mutate` changes a definition in one place after the other and asks which promise notices. Where
none can, the definition says why: in a body, around what may be dropped, weakened or lost,

    with equivalent("a barrier that passed implies the stage"):
        require(self.stage == Stage.streaming, "stage is streaming")

and for steps that could be added, values that a table could hold, and what a step of a system could forget to
join, as a member of the machine:

    harmless = equivalents(
        equivalent_step(stage, Stage.cleanup, Stage.none, because="…"),
        equivalent_value(Stage.repair, lambda stage: stage.storage, Replicas.both, because="…"),
        equivalent_without(TabletMigration.fail_over, because="…"),
    )
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar, cast

from stagewright.spec.definition import (
    Equivalent,
    EquivalentStep,
    EquivalentValue,
    EquivalentWithout,
    Reason,
)
from stagewright.spec.errors import DefinitionError
from stagewright.spec.source import Source, here
from stagewright.spec.tracing import current

if TYPE_CHECKING:
    from stagewright.spec.terms import MapOf, Term
    from stagewright.spec.variables import Var

E = TypeVar("E", bound=Enum)
V = TypeVar("V")


@contextmanager
def equivalent(why: str) -> Generator[None]:
    """Say why no promise can tell when what this block requires or assigns is dropped, weakened or lost."""
    where = here()
    _check_reason(why, where)
    tracing = current("equivalent(...)")
    before = tracing.said
    with explained(why, where):
        yield
    if tracing.said == before:
        raise DefinitionError(
            f"`equivalent(...)` in {tracing.what} explains nothing",
            where=where,
            help="put into its block what may be dropped or lost: `require(...)` or an assignment",
        )


@contextmanager
def explained(why: str, where: Source) -> Generator[None]:
    """While this lasts, what is required and assigned has the reason; without one, that of the block around."""
    if not why:
        yield
        return
    tracing = current("equivalent(...)")
    tracing.reasons.append(Reason(why, where, bool(tracing.part)))
    try:
        yield
    finally:
        tracing.reasons.pop()


@dataclass(frozen=True, eq=False)
class Equivalents:
    """What a machine says of changes that are no part of any body."""

    steps: tuple[tuple[Var[Any, Any], EquivalentStep], ...]
    others: tuple[EquivalentValue | EquivalentWithout, ...]


def equivalents(
    *changes: tuple[Var[Any, Any], EquivalentStep] | EquivalentValue | EquivalentWithout,
) -> Equivalents:
    """A member of a machine that lists changes which no promise minds, each with its reason."""
    return Equivalents(
        tuple(c for c in changes if isinstance(c, tuple)),
        tuple(c for c in changes if not isinstance(c, tuple)),
    )


def equivalent_step(
    variable: Var[Term[E], E] | Var[MapOf[Any, Term[E], E], Any],
    source: E | Collection[E],
    target: E | Collection[E],
    *,
    because: str,
) -> tuple[Var[Any, Any], EquivalentStep]:
    """No promise would mind a further step of `variable` from `source` (or one of several) to `target`."""
    where = here()
    _check_reason(because, where)
    step = EquivalentStep("", _several(source), _several(target), Reason(because, where))
    return cast("Var[Any, Any]", variable), step


def equivalent_value(
    member: E | Collection[E], column: Callable[[E], V], *values: V, because: str
) -> EquivalentValue:
    """No promise would mind if `column` of the member (or of several) held one of `values` (of none: any)."""
    where = here()
    _check_reason(because, where)
    name = cast("Callable[[object], object]", column)(_Named())
    if not isinstance(name, _Attribute):
        raise DefinitionError(
            "the second argument of equivalent_value(...) names no column",
            where=where,
            help="write `lambda stage: stage.writes`",
        )
    return EquivalentValue(_several(member), name.name, values, Reason(because, where))


def equivalent_without(*actions: Callable[..., None], because: str) -> EquivalentWithout:
    """No promise would mind if a step of the system did nothing of these actions of parts that it joins."""
    from stagewright.spec.actions import member_of

    where = here()
    _check_reason(because, where)
    found = [member_of(action) for action in actions]
    names = tuple(member.name for member in found if member is not None)
    if len(names) != len(actions) or not actions:
        raise DefinitionError(
            "equivalent_without(...) is given what is no action",
            where=where,
            help="write `equivalent_without(TabletMigration.fail_over, because=...)`",
        )
    return EquivalentWithout(names, Reason(because, where))


def equivalents_of(
    machine: type[object], names: Mapping[Var[Any, Any], Sequence[str]]
) -> tuple[Equivalent, ...]:
    """What a machine and its base classes say; `names`: of each variable, also of those of its parts.

    What a part says of itself alone need not hold in a system, which can tell more.
    """
    found: list[Equivalent] = []
    for base in machine.__mro__:
        for said in vars(base).values():
            if isinstance(said, Equivalents):
                found += said.others
                found += [
                    replace(step, variable=name)
                    for variable, step in said.steps
                    for name in names.get(variable, [variable.name])
                ]
    return tuple(found)


@dataclass(frozen=True)
class _Attribute:
    name: str


class _Named:
    """Stands for any member: reading a column gives its name."""

    def __getattr__(self, name: str) -> _Attribute:
        return _Attribute(name)


def _several(given: E | Collection[E]) -> tuple[E, ...]:
    return (given,) if isinstance(given, Enum) else tuple(given)


def _check_reason(why: object, where: Source) -> None:
    if not isinstance(why, str) or not why.strip():
        raise DefinitionError(
            "an equivalence without a reason",
            where=where,
            help="say in a sentence why no promise can tell",
        )
