"""What an action does not wait for: `@independent(stream, clean_up, of=(request, written))`."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from stagewright.spec.declarations.actions import MemberKind, local_names, mark, member_of
from stagewright.spec.entities import Entity
from stagewright.spec.errors import DecoratorError
from stagewright.spec.source import here

if TYPE_CHECKING:
    from stagewright.spec.declarations.variables import Var
    from stagewright.spec.machine import Many, Part

W = TypeVar("W", bound=Callable[[Any], None])


def independent(
    *actions: Callable[..., None],
    of: Var[Any, Any] | Part[Any] | Many[Any, Any] | type[Enum] | type[Entity] | tuple[object, ...],
) -> Callable[[W], W]:
    """These actions wait for nothing in `of`, in no reachable state: what refuses one refuses it whatever these variables say.

        @independent(stream, clean_up, of=(request, written))
        def nobody_waits_for_clients(self) -> None:
            \"\"\"001: "…".\"\"\"

    `of`: variables; parts, which stand for all their variables; entities and enums, which stand for those of their
    members that are no parameters of the action: `of=Tablet` says that no tablet waits for another one. What an
    action requires else is left to it: a requirement that reads one of `of` must follow from those that read none.
    The body is empty. In a system, what a part says of its own actions is not asked again.

    Raises:
        DecoratorError: something is no action, or there is none.
    """
    from stagewright.spec.declarations.variables import Var
    from stagewright.spec.machine import Many, Part

    names, where = local_names(), here()
    members = [member_of(one) for one in actions]
    found = tuple(m for m in members if m is not None and m.kind is MemberKind.ACTION)
    apart = of if isinstance(of, tuple) else (of,)
    right = all(isinstance(one, Var | Part | Many) or _is_sort(one) for one in apart)
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
