"""What is said of a body that fails, returns the wrong thing, or leaves a parameter unused."""

from __future__ import annotations

import inspect

from stagewright.spec.declarations.actions import Member
from stagewright.spec.declarations.mends import mend_in_body
from stagewright.spec.errors import DefinitionError, ParameterError, ResultError, TracingError
from stagewright.spec.nodes import Bound
from stagewright.spec.source import of_traceback
from stagewright.spec.terms.conditions_and_numbers import Bool
from stagewright.spec.terms.plain_conditions import in_method
from stagewright.spec.terms.symbolic import Symbolic
from stagewright.spec.terms.temporal import Eventually, LeadsTo


def check_used(own: tuple[Bound, ...], used: set[Bound], member: Member) -> None:
    """Refuse a parameter of a body that it does not mention."""
    for bound in own:
        if bound not in used:
            raise ParameterError(
                f"parameter `{bound.name}` of {member.what} is never used",
                where=bound.where or member.where,
                help="every value of it would do the same: use it, or remove it",
            )


def body_failed(what: str, error: Exception, member: Member) -> DefinitionError:
    """The error for a body that Python refuses."""
    return TracingError(
        f"{what} fails while it is traced: {type(error).__name__}: {error}",
        where=of_traceback(error.__traceback__, member.where.file) or member.where,
        help=mend_in_body(error),
    )


def wrong_result(what: str, result: object, mend: str, member: Member) -> DefinitionError:
    """The error for a body that returns what its decorator does not allow."""
    if result is None:
        problem = f"{what} returns nothing"
    elif isinstance(result, Bool):
        problem = f"{what} returns a condition, and does not say when it comes to hold"
    elif isinstance(result, Symbolic):
        problem = f"{what} returns a value of sort {result.node.sort}, not a condition"
    elif isinstance(result, LeadsTo | Eventually):
        problem = f"{what} returns a property of runs, not a condition"
        mend = "decorate it with `@liveness` instead"
    else:
        problem = f"{what} returns {result!r}, which does not depend on the state"
        if isinstance(result, bool):
            mend += ": " + (
                in_method(inspect.unwrap(member.body), member.where)
                or "`is` and `is not` compare Python's objects, so write `x.is_none()`, `x == y`"
            )
    return ResultError(problem, where=member.where, help=mend)
