"""The parameters of actions and properties: what their annotations say they range over."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from types import CodeType
from typing import Annotated, Any, Self, get_args, get_origin

from stagewright.spec.declarations.actions import Member, MemberKind
from stagewright.spec.declarations.mends import mend_of_name
from stagewright.spec.declarations.messages import message_sort
from stagewright.spec.declarations.records import Record
from stagewright.spec.entities import Entity, States
from stagewright.spec.errors import ParameterError, StagewrightError
from stagewright.spec.nodes import Bound, Node
from stagewright.spec.sorts import BoolSort, BoundSort, IntSort, SetSort, sort_of
from stagewright.spec.source import Source, here, of_parameter
from stagewright.spec.terms.conditions_and_numbers import Bool, Number
from stagewright.spec.terms.symbolic import lift
from stagewright.spec.terms.terms import SetOf, Term, facade

ParameterSort = BoundSort

_SORTS_HELP = (
    "write `Term[…]` or `SetOf[…]` with an enum or entity sort, `Bool`, "
    "`Annotated[Number, between(0, 3)]`, or a Record"
)


def between(low: int, high: int) -> IntSort:
    """The values of a number parameter: `amount: Annotated[Number, between(1, 3)]` takes one to three."""
    if low > high:
        raise ParameterError(
            f"between({low}, {high}) has no values",
            where=here(),
            help="the bounds are (low, high), both included",
        )
    return IntSort(low, high)


def bounds_of(member: Member, serials: Iterator[int]) -> Iterator[Bound]:
    """A bound for each parameter of a body, but for `self` and the `after` of a step property."""
    for name, sort in sorts_of(member).items():
        yield Bound(name, sort, next(serials), of_parameter(_body(member), name))


def arguments(
    member: Member, given: tuple[object, ...], named: Mapping[str, object]
) -> tuple[dict[str, Node], dict[str, Any]]:
    """The arguments with which another body calls an action, as nodes and as facades.

    Raises:
        DefinitionError: there are too few or too many, or one is not of its parameter's sort.
    """
    sorts = sorts_of(member)
    try:
        found = inspect.signature(_body(member)).bind(None, *given, **named).arguments
    except TypeError as error:
        listed = ", ".join(f"{name}: {sort}" for name, sort in sorts.items())
        raise ParameterError(
            f"action `{member.name}` is called with other parameters than it has: {error}",
            where=here(),
            help=f"it takes ({listed})",
        ) from None
    nodes = {
        name: lift(found[name], sort, f"parameter `{name}` of action `{member.name}`")
        for name, sort in sorts.items()
    }
    return nodes, {name: facade(sort)(nodes[name]) for name, sort in sorts.items()}


@lru_cache(maxsize=4096)
def _sorts(member: Member) -> tuple[tuple[str, ParameterSort], ...]:
    body = _body(member)
    listed = list(inspect.signature(body).parameters.values())
    if not listed:
        raise ParameterError(
            f"{member.what} has no parameter `self`", where=member.where, help="write `self` first"
        )
    skipped = 1
    if member.of_steps:
        skipped = 2
        if len(listed) < skipped:
            raise ParameterError(
                f"{member.what} has no parameter for the state after the step",
                where=member.where,
                help=f"write `def {member.name}(self, after: Self) -> Bool`",
            )
    elif member.kind is MemberKind.REFINEMENT:
        skipped = 2
    return tuple((p.name, _sort_of(p, member)) for p in listed[skipped:])


def sorts_of(member: Member) -> dict[str, ParameterSort]:
    """What each of a body's parameters ranges over, in order."""
    return dict(_sorts(member))


def _body(member: Member) -> Any:
    return inspect.unwrap(member.body)


def _sort_of(parameter: inspect.Parameter, member: Member) -> ParameterSort:
    name, annotation = parameter.name, parameter.annotation
    where = of_parameter(_body(member), name)
    if parameter.kind not in {
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.POSITIONAL_ONLY,
    }:
        raise ParameterError(
            f"parameter `{name}` of {member.what} is not an ordinary parameter",
            where=where,
            help="list each parameter by name, without `*`",
        )
    if member.of_steps and (name == "after" or annotation in (Self, "Self")):
        raise ParameterError(
            f"parameter `{name}` of {member.what}, the state after the step, is not the first",
            where=where,
            help=f"put `after` first: `def {member.name}(self, after: Self, …) -> Bool`",
        )
    if annotation is inspect.Parameter.empty:
        raise ParameterError(
            f"parameter `{name}` of {member.what} does not say what it ranges over",
            where=where,
            help=f"write `{name}: Term[…]` with an enum or entity sort",
        )
    if isinstance(annotation, str):
        written = annotation
        try:
            annotation = _resolved(annotation, member)
        except StagewrightError as error:
            raise ParameterError(
                f"parameter `{name}` of {member.what}: {error.problem}",
                where=where,
                help=error.help,
            ) from None
        except Exception as error:  # noqa: BLE001 evaluating the user's annotation can raise anything
            hint = mend_of_name(error)
            raise ParameterError(
                f"parameter `{name}` of {member.what}: cannot resolve `{written}` ({error})",
                where=where,
                help=(f"{hint} or " if hint else "")
                + "import the sort at run time (not only under TYPE_CHECKING) "
                "and define it before the machine",
            ) from None
    sort = _meant(annotation, where)
    if sort is None:
        shown = parameter.annotation
        if not isinstance(shown, str):
            shown = getattr(shown, "__name__", str(shown))
        raise ParameterError(
            f"parameter `{name}` of {member.what} cannot range over `{shown}`",
            where=where,
            help=_sort_help(name, annotation),
        )
    return sort


def _sort_help(name: str, annotation: object) -> str:
    """What to write where the annotation shows what is meant, else all that may be written."""
    if annotation is int or annotation is Number:
        return (
            f"write `{name}: Annotated[Number, between(0, 3)]`, with its least and greatest value"
        )
    if annotation is bool:
        return f"write `{name}: Bool`"
    if isinstance(annotation, type) and issubclass(annotation, Entity | Enum):
        return f"write `{name}: Term[{annotation.__name__}]`"
    return _SORTS_HELP


def _resolved(annotation: str, member: Member) -> object:
    # What Python itself would have evaluated.
    return eval(_compiled(annotation), _body(member).__globals__, member.local_names)  # noqa: S307


@lru_cache(maxsize=1024)
def _compiled(annotation: str) -> CodeType:
    """Of one machine's parameters, many have the same words."""
    return compile(annotation, "<annotation>", "eval")


def _meant(annotation: object, where: Source) -> ParameterSort | None:
    arguments = get_args(annotation)
    if get_origin(annotation) is Annotated and arguments[0] is Number:
        return next((note for note in arguments[1:] if isinstance(note, IntSort)), None)
    if annotation is Bool:
        return BoolSort()
    if isinstance(annotation, type) and issubclass(annotation, Record) and annotation is not Record:
        found: ParameterSort = message_sort(annotation, "a parameter")
        return found
    if get_origin(annotation) not in {Term, SetOf} or len(arguments) != 1:
        return None
    match arguments[0]:
        case type() as kind if issubclass(kind, Entity | Enum) and kind not in {
            Entity,
            Enum,
            States,
        }:
            element = sort_of(kind, "a parameter", where)
        case _:
            return None
    return element if get_origin(annotation) is Term else SetSort(element)
