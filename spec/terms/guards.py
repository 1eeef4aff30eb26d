"""What a body says of when its action happens: requirements, bounds of a check, assumptions, profiles."""

from __future__ import annotations

from typing import cast

from stagewright.spec.errors import (
    RequirementError,
)
from stagewright.spec.nodes import Node
from stagewright.spec.source import Source, here, user_frame
from stagewright.spec.terms.conditions_and_numbers import Bool
from stagewright.spec.terms.plain_conditions import in_call
from stagewright.spec.terms.tracing import NotInProfileError, current


def require(condition: Bool, name: str = "") -> None:
    """A named guard: the action can happen only where the condition holds.

    The name may be left out in a method that the action calls: then it is the method's own name in words.
    """
    where = here()
    node, name = _guard("require", condition, name, where)
    current("require(...)").require(node, name, where)


def bounded(condition: Bool, name: str = "") -> None:
    """A guard that keeps a check finite, and says nothing about the system: `bounded(self.seq < 3)`.

    Every check holds to it as to a requirement; a running system does without it, no mutant drops it.
    """
    where = here()
    tracing = current("bounded(...)")
    node, name = _guard("bounded", condition, name or _WITHIN_BOUNDS, where)
    tracing.require(node, name, where, bound=True)


def assume(condition: Bool, name: str = "", *, because: str) -> None:
    """What the definition takes for granted where the action happens: a guard that nothing in the system keeps.

    It holds as a requirement does, is listed by `stagewright show`, and `stagewright check --without NAME` drops
    it, and shows what breaks. `because`: why it may be taken for granted, and where it is said.
    """
    where = here()
    tracing = current("assume(...)")
    if not isinstance(cast("object", because), str) or not because.strip():
        raise RequirementError(
            "assume(...) without a reason",
            where=where,
            help='say why it may be assumed: `assume(condition, "name", because="003: …")`',
        )
    node, name = _guard("assume", condition, name, where)
    tracing.require(node, name, where, because=because)


_WITHIN_BOUNDS = "the check is within its bounds"


def _guard(word: str, condition: Bool, name: str, where: Source) -> tuple[Node, str]:
    """The condition and the name of a guard that a body says with this word."""
    tracing = current(f"{word}(...)")
    given = cast("object", condition)  # not every caller is type-checked
    if callable(given) and not isinstance(given, Bool):
        called = getattr(given, "__name__", repr(given))
        raise RequirementError(
            f"{word}(...) is given the method `{called}`, not the condition that it returns",
            where=where,
            help=f"call it: `{called}(...)`",
        )
    if not isinstance(given, Bool):
        meant = in_call(user_frame()) or "check that the comparison involves a variable"
        raise RequirementError(
            f"{word}(...) is given {condition!r}, not a condition on the state",
            where=where,
            help=f"{meant}; what depends on the profile alone is `only_when(...)`",
        )
    if not name:
        function = where.function
        if f"`{function}`" in tracing.what or not function.isidentifier():
            raise RequirementError(
                f"a requirement of {tracing.what} has no name",
                where=where,
                help='name it: `require(condition, "what must be so")`; '
                "names appear in counterexamples, traces and tests",
            )
        name = function.replace("_", " ")
    return condition.node, name


def only_when(in_profile: bool) -> None:
    """First line of a method that exists only under some profiles."""
    current("only_when(...)")
    if not isinstance(cast("object", in_profile), bool):
        raise RequirementError(
            "only_when(...) is given a condition on the state",
            where=here(),
            help="it takes a plain bool of the profile; a guard is `require(condition, name)`",
        )
    if not in_profile:
        raise NotInProfileError
