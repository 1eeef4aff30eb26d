"""Machines, records and the parts of systems: the classes that definitions are written as."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, Self, TypeVar, cast, overload

from stagewright.spec.declarations.actions import MARK, Member, member_of
from stagewright.spec.declarations.fairness import SharedFairness
from stagewright.spec.definition import AnyValue
from stagewright.spec.entities import Entity
from stagewright.spec.errors import (
    DefinitionError,
    NameTakenError,
    ParameterError,
    ScopeError,
    VariableError,
)
from stagewright.spec.nodes import BOOL, Apply, Field, Literal, Node, Op, Read, Select
from stagewright.spec.sorts import (
    EntitySort,
    EnumSort,
    IntSort,
    MapSort,
    OptionalSort,
    RecordSort,
    ScalarSort,
    Sort,
)
from stagewright.spec.source import here
from stagewright.spec.terms.conditions_and_numbers import Bool
from stagewright.spec.terms.symbolic import Symbolic, apply, lift
from stagewright.spec.terms.terms import Term
from stagewright.spec.terms.tracing import current
from stagewright.spec.terms.truth import truth_asked
from stagewright.spec.terms.variables import Var, sort_of
from stagewright.spec.text.suggestions import did_you_mean, nearest
from stagewright.spec.values import FrozenMap, Value

K = TypeVar("K", bound=Enum | Entity)
M = TypeVar("M", bound="Machine")
P = TypeVar("P", bound="Profile")


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


@dataclass(frozen=True)
class Root:
    """Where a machine's variables live: a prefix of their names, the keys of `many`, and which state."""

    prefix: str = ""
    keys: tuple[tuple[Node, EnumSort | EntitySort], ...] = ()
    new: bool = False


class Holder(metaclass=MachineType):
    """Base of what has variables: machines and records."""

    def place_(self, variable: Var[Any, Any]) -> Node:
        """The node that names one variable of this holder."""
        raise NotImplementedError

    def record_node_(self) -> Node | None:
        """The node of a record as a whole; None for machines."""
        return None

    if not TYPE_CHECKING:

        def __setattr__(self, name: str, value: object) -> None:
            if name.startswith("_") or isinstance(getattr(type(self), name, None), Var):
                object.__setattr__(self, name, value)
                return
            known = list(variables_of(type(self)))
            raise _unknown(f"{type(self).__name__} has no variable `{name}`", name, known)

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


def record_facade(sort: Sort) -> Callable[[Node], Any]:
    """The facade of record expressions."""
    assert isinstance(sort, RecordSort)
    made: Callable[[Node], Any] = sort.kind
    return made


@dataclass(frozen=True)
class Profile:
    """Base of profiles: one version of reality a machine follows. Subclass it with the switches it needs."""

    name: str


class Profiles(Generic[P]):
    """A machine's profiles; reading it in a body gives the one at hand, as plain Python."""

    def __init__(self, choices: tuple[P, ...]) -> None:
        self.choices = choices

    @overload
    def __get__(self, machine: None, owner: type) -> Self: ...
    @overload
    def __get__(self, machine: Machine, owner: type) -> P: ...
    def __get__(self, machine: Machine | None, owner: type) -> P | Self:
        if machine is None:
            return self
        return self.named(machine.profile_name_())

    def named(self, name: str) -> P:
        """The profile of that name; the last (newest) one for an empty name."""
        if not name:
            return self.choices[-1]
        for choice in self.choices:
            if choice.name == name:
                return choice
        known = [c.name for c in self.choices]
        hint = did_you_mean(name, known)
        raise ScopeError(f"there is no profile `{name}`", help=f"{hint}known: {', '.join(known)}")


def profiles(*choices: P) -> Profiles[P]:
    """The versions of reality that a machine describes, oldest first; the last one is the default."""
    names = [choice.name for choice in choices]
    doubled = sorted({n for n in names if names.count(n) > 1})
    if not names or doubled or "" in names:
        raise NameTakenError(
            f"two profiles are named `{doubled[0]}`" if doubled else "a profile needs a name",
            where=here(),
            help='write `profiles(MyProfile("first release", …), MyProfile("second release", …))`',
        )
    return Profiles(choices)


class Machine(Holder):
    """Base of definitions. In a body, `self` is the symbolic state before the step."""

    def __init__(self, profile: str = "", root: Root | None = None) -> None:
        self._profile = profile
        self._root = root or Root()

    def profile_name_(self) -> str:
        """The name of the profile this machine is traced under; empty for the default one."""
        return self._profile

    def root_(self) -> Root:
        """Where this machine's variables live."""
        return self._root

    def place_(self, variable: Var[Any, Any]) -> Node:
        root = self._root
        sort: Sort = variable.sort
        for _, key_sort in reversed(root.keys):
            sort = MapSort(key_sort, sort)
        where = here()
        node: Node = Read(root.prefix + variable.name, sort, root.new, where)
        for key, _ in root.keys:
            assert isinstance(node.sort, MapSort)
            node = Select(node, key, node.sort.value, where)
        return node

    @contextmanager
    def join_(self, action: Member) -> Generator[None]:
        """Note that the body being traced drives an action of this machine as part of its own step."""
        name = self._root.prefix + action.name
        with current(f"a call of {action.what}").joining(name):
            yield

    def nested_(
        self, machine: type[M], name: str, key: Node | None, sort: EnumSort | EntitySort | None
    ) -> M:
        """A part of this machine, reading the same state."""
        root = self._root
        keys = root.keys if key is None or sort is None else (*root.keys, (key, sort))
        known = profile_names(machine)
        profile = self._profile if self._profile in known or not known else ""
        return machine(profile, replace(root, prefix=f"{root.prefix}{name}.", keys=keys))


class Part(Generic[M]):
    """One machine inside of a system."""

    def __init__(self, machine: type[M], without: frozenset[str]) -> None:
        self.machine = machine
        self.without = without

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, system: None, owner: type) -> Self: ...
    @overload
    def __get__(self, system: Machine, owner: type) -> M: ...
    def __get__(self, system: Machine | None, owner: type) -> M | Self:
        return self if system is None else system.nested_(self.machine, self.name, None, None)


class Family(Generic[K, M]):
    """A machine for every member of a sort, read by index: `self.tablets[t].stage`."""

    def __init__(self, system: Machine, many: Many[K, M]) -> None:
        self._system = system
        self._many = many

    def __getitem__(self, key: K | Term[K]) -> M:
        many = self._many
        return self._system.nested_(
            many.machine, many.name, lift(key, many.sort, "the key"), many.sort
        )


class Many(Generic[K, M]):
    """A machine for every member of a sort, inside of a system."""

    def __init__(self, machine: type[M], over: type[K], without: frozenset[str]) -> None:
        self.machine = machine
        self.without = without
        self.sort = sort_of(over, "many(...)")

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, system: None, owner: type) -> Self: ...
    @overload
    def __get__(self, system: Machine, owner: type) -> Family[K, M]: ...
    def __get__(self, system: Machine | None, owner: type) -> Family[K, M] | Self:
        return self if system is None else Family(system, self)


def part(machine: type[M], *, without: Iterable[Callable[..., None]] = ()) -> Part[M]:
    """Declare one machine as a part of a system: its variables, actions and promises belong to it.

    An action of the part that a system's action calls happens only as part of that one; those named in
    `without` do not happen at all.
    """
    return Part(machine, _names(machine, without))


def many(
    machine: type[M], over: type[K], *, without: Iterable[Callable[..., None]] = ()
) -> Many[K, M]:
    """Declare a machine for every member of `over`: `tablets = many(TabletMigration, over=Tablet)`.

    Its actions join or stay out of the system as those of a `part` do.
    """
    return Many(machine, over, _names(machine, without))


def _names(machine: type[Machine], actions: Iterable[Callable[..., None]]) -> frozenset[str]:
    given = cast("object", machine)  # not every caller is type-checked
    if not (isinstance(given, type) and issubclass(given, Machine)):
        raise VariableError(
            f"{getattr(machine, '__name__', repr(machine))} is no machine",
            where=here(),
            help="write a subclass of Machine, not an instance",
        )
    found: set[str] = set()
    for action in actions:
        member = member_of(action)
        if member is None or getattr(machine, member.name, None) is not action:
            raise NameTakenError(
                f"`without` names {action!r}, which is not an action of {machine.__name__}",
                where=here(),
                help=f"write `without=({machine.__name__}.some_action,)`",
            )
        found.add(member.name)
    return frozenset(found)


@lru_cache(maxsize=1024)
def members(machine: type[Machine]) -> Mapping[str, object]:
    """A machine's members by name, base classes first, in the order of their definition."""
    found: dict[str, object] = {}
    for base in reversed(machine.__mro__):
        for name, value in vars(base).items():
            if (
                isinstance(value, Var | Part | Many | Profiles | SharedFairness)
                or hasattr(value, MARK)
                or type(value).__name__ in ("BudgetName", "Allowed")
            ):
                found[name] = value
            elif name in found:
                del found[name]
    return MappingProxyType(found)


def profile_names(machine: type[Machine]) -> list[str]:
    """The names of a machine's profiles, oldest first; empty when it has none."""
    return list(_profile_names(machine))


@lru_cache(maxsize=1024)
def _profile_names(machine: type[Machine]) -> tuple[str, ...]:
    own: list[Profiles[Profile]] = []
    parts: list[Part[Machine] | Many[Any, Machine]] = []
    for member in members(machine).values():
        if isinstance(member, Profiles):
            own.append(cast("Profiles[Profile]", member))
        elif isinstance(member, Part | Many):
            parts.append(cast("Part[Machine] | Many[Any, Machine]", member))
    if own:
        return tuple(c.name for p in own for c in p.choices)
    inner = (name for part in parts for name in _profile_names(part.machine))
    return tuple(dict.fromkeys(inner))
