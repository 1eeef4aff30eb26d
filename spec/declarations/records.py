"""What has variables: the base of machines, and records, whose fields are declared as variables are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from stagewright.spec.declarations.actions import member_of
from stagewright.spec.declarations.variables import Var
from stagewright.spec.definition import AnyValue
from stagewright.spec.errors import DefinitionError, NameTakenError, ParameterError, nearest
from stagewright.spec.nodes import BOOL, Apply, Field, Literal, Node, Op
from stagewright.spec.sorts import IntSort, OptionalSort, RecordSort, ScalarSort, Sort
from stagewright.spec.source import here
from stagewright.spec.terms.conditions_and_numbers import Bool
from stagewright.spec.terms.plain_conditions import constant_of
from stagewright.spec.terms.symbolic import Placed, Symbolic, apply, lift
from stagewright.spec.terms.truth import truth_asked
from stagewright.spec.values import FrozenMap, Value


class _Members(dict[str, object]):
    """The namespace of a class body: a member defined twice is an error, not a silent replacement."""

    def __setitem__(self, name: str, value: object) -> None:
        old = self.get(name)
        if isinstance(old, Var) or member_of(old) is not None:
            raise NameTakenError(
                f"`{name}` is defined twice in one class",
                where=here(),
                help="the second would silently replace the first: rename one",
            )
        super().__setitem__(name, value)


class MachineType(type):
    """Gives class bodies a namespace that refuses to define a member twice."""

    @classmethod
    def __prepare__(
        cls, name: str, bases: tuple[type, ...], /, **kwargs: object
    ) -> dict[str, object]:
        return _Members()


class Holder(Placed, metaclass=MachineType):
    """Base of what has variables: machines and records."""

    def place_(self, variable: Var[Any, Any]) -> Node:
        """The node that names one variable of this holder."""
        raise NotImplementedError

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: object) -> None:
            if name.startswith("_") or isinstance(getattr(type(self), name, None), Var):
                object.__setattr__(self, name, value)
                return
            known = list(variables_of(type(self)))
            problem = f"{type(self).__name__} has no variable `{name}`"
            plain = constant_of(type(self), name)
            if plain:
                raise NameTakenError(problem, where=here(), help=plain)
            raise _unknown(problem, name, known)

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            known = [n for n in dir(type(self)) if not n.startswith("_") and not n.endswith("_")]
            raise _unknown(f"{type(self).__name__} has no `{name}`", name, known)


def variables_of(holder: type[Holder]) -> dict[str, Var[Any, Any]]:
    """The variables or fields of a class by name, those of its base classes first."""
    found: dict[str, Var[Any, Any]] = {}
    for base in reversed(holder.__mro__):
        for name, value in vars(base).items():
            if isinstance(value, Var):
                found[name] = value
            else:
                found.pop(name, None)
    return found


def _unknown(problem: str, name: str, known: list[str]) -> DefinitionError:
    near = nearest(name, known)
    mend = f"did you mean `{near}`?" if near else f"it has: {', '.join(known)}"
    return NameTakenError(problem, where=here(), help=mend)


class Record(Holder):
    """Base of record sorts: a class whose attributes are fields, declared like variables.

    `Message(kind=Kind.ack, sender=n)` is a record with these fields; one that is left out has the initial
    value that its declaration gives.
    """

    def __init__(self, node: Node | None = None, /, **fields: object) -> None:
        self._node = record_of_fields(type(self), fields) if node is None else node

    def place_(self, variable: Var[Any, Any]) -> Node:
        return Field(self._node, variable.name, variable.sort, here())

    def record_node_(self) -> Node | None:
        return self._node

    def __eq__(self, other: Self) -> Bool:  # type: ignore[override]
        right = lift(other, self._node.sort, "the right side of `==`")
        return Bool(apply(Op.EQ, BOOL, self._node, right))

    def __ne__(self, other: Self) -> Bool:  # type: ignore[override]
        return ~(self == other)

    __hash__: ClassVar[None]  # type: ignore[assignment]
    if not TYPE_CHECKING:
        __hash__ = Symbolic.__hash__

    def __bool__(self) -> NoReturn:
        raise truth_asked()


def record_sort(kind: type[Record]) -> RecordSort:
    """The sort of a record class."""
    return RecordSort(kind, tuple((n, v.sort) for n, v in variables_of(kind).items()))


def record_of_fields(kind: type[Record], given: Mapping[str, object]) -> Node:
    """The node of a record that is made of its fields' values.

    Raises:
        ParameterError: a field is unknown, lacks a value, or is given one of another sort.
    """
    where, declared = here(), variables_of(kind)
    for name in given:
        if name not in declared:
            raise _unknown(f"{kind.__name__} has no field `{name}`", name, list(declared))
    args: list[Node] = []
    for name, field in declared.items():
        if name in given:
            args.append(lift(given[name], field.sort, f"`{name}` of {kind.__name__}", where))
        elif isinstance(field.initial, AnyValue) or not isinstance(field.sort, ScalarSort):
            raise ParameterError(
                f"{kind.__name__}(…) is given no `{name}`, which has no initial value",
                where=where,
                help=f"write `{kind.__name__}(…, {name}=…)`",
            )
        else:
            args.append(Literal(field.initial, _sort_of_start(field.sort, field.initial)))
    return Apply(Op.RECORD, tuple(args), record_sort(kind), where)


def _sort_of_start(sort: Sort, initial: Value) -> Sort:
    if isinstance(sort, OptionalSort) and initial is not None:
        return sort.element
    return (
        IntSort(initial, initial)
        if isinstance(sort, IntSort) and isinstance(initial, int)
        else sort
    )


def record_initial(kind: type[Record]) -> Value:
    """A record's initial value: each field as it says itself."""
    fields: dict[Value, Any] = {n: v.initial for n, v in variables_of(kind).items()}
    return FrozenMap(fields)
