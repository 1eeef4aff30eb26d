"""Machines, records and the parts of systems: the classes that definitions are written as."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Generic, Self, TypeVar, cast, overload

from stagewright.spec.declarations.actions import MARK, Member, MemberKind, member_of
from stagewright.spec.declarations.fairness import SharedFairness
from stagewright.spec.declarations.forgotten import check_called
from stagewright.spec.declarations.records import Holder
from stagewright.spec.declarations.restrictions import Restricted, restrictions_of
from stagewright.spec.declarations.variables import Var
from stagewright.spec.definition import CheckedAlone
from stagewright.spec.entities import Entity
from stagewright.spec.errors import (
    NameTakenError,
    ScopeError,
    VariableError,
    did_you_mean,
)
from stagewright.spec.nodes import Node, Read, Select
from stagewright.spec.sorts import EntitySort, EnumSort, MapSort, Sort, sort_of
from stagewright.spec.source import here, of_function
from stagewright.spec.terms.symbolic import lift
from stagewright.spec.terms.terms import Term
from stagewright.spec.terms.tracing import current

K = TypeVar("K", bound=Enum | Entity)
M = TypeVar("M", bound="Machine")
P = TypeVar("P", bound="Profile")
_SETTINGS = {MemberKind.INITIALLY, MemberKind.FINAL, MemberKind.CONSTRAINT}


@dataclass(frozen=True)
class Root:
    """Where a machine's variables live: a prefix of their names, the keys of `many`, and which state."""

    prefix: str = ""
    keys: tuple[tuple[Node, EnumSort | EntitySort], ...] = ()
    new: bool = False


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

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        constructor = vars(cls).get("__init__")
        if constructor is not None:
            raise VariableError(
                f"{cls.__name__} has an `__init__`, and nobody makes a machine with one",
                where=of_function(constructor),
                help="say at each variable how it starts: `x = number(0, 3, init=1)`; what relates "
                "several of them is a condition under `@initially`",
            )
        check_called(cls)

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
    def join_(self, action: Member, arguments: Mapping[str, Node]) -> Generator[None]:
        """Note that the body being traced drives an action of this machine as part of its own step."""
        name = self._root.prefix + action.name
        keys = zip(key_names(sort for _, sort in self._root.keys), self._root.keys, strict=True)
        given = (*((called, key) for called, (key, _) in keys), *arguments.items())
        with current(f"a call of {action.what}").joining(name, given):
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


def key_names(sorts: Iterable[Sort]) -> list[str]:
    """What the keys of families, the outermost first, are called as parameters of their actions."""
    letters = (str(sort).lower()[0] for sort in sorts)
    return [f"{letter}{depth}" if depth > 1 else letter for depth, letter in enumerate(letters, 1)]


class Part(Generic[M]):
    """One machine inside of a system."""

    def __init__(
        self, machine: type[M], without: frozenset[str], restricts: tuple[Restricted, ...]
    ) -> None:
        self.machine = machine
        self.without = without
        self.restricts = restricts

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

    def __init__(
        self,
        machine: type[M],
        over: type[K],
        without: frozenset[str],
        restricts: tuple[Restricted, ...],
    ) -> None:
        self.machine = machine
        self.without = without
        self.restricts = restricts
        self.sort = sort_of(over, "many(...)")

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, system: None, owner: type) -> Self: ...
    @overload
    def __get__(self, system: Machine, owner: type) -> Family[K, M]: ...
    def __get__(self, system: Machine | None, owner: type) -> Family[K, M] | Self:
        return self if system is None else Family(system, self)


def part(
    machine: type[M],
    *,
    without: Iterable[Callable[..., object]] = (),
    restricts: Iterable[Restricted] = (),
) -> Part[M]:
    """Declare one machine as a part of a system: its variables, actions and properties belong to it.

    An action of the part that a system's action calls happens only as part of that one; actions named in
    `without` do not happen at all, and properties named there are not decided. What the part accepts, the
    actions that join its action accept, too, but for what `restricts` says: `restricted(promise, because=...)`.
    """
    left_out = _names(machine, without)
    return Part(machine, left_out, restrictions_of(machine, restricts, left_out))


def many(
    machine: type[M],
    over: type[K],
    *,
    without: Iterable[Callable[..., object]] = (),
    restricts: Iterable[Restricted] = (),
) -> Many[K, M]:
    """Declare a machine for every member of `over`: `tablets = many(TabletMigration, over=Tablet)`.

    Its actions join or stay out of the system, and are restricted there, as those of a `part` are.
    """
    left_out = _names(machine, without)
    return Many(machine, over, left_out, restrictions_of(machine, restricts, left_out))


def _names(machine: type[Machine], left_out: Iterable[Callable[..., object]]) -> frozenset[str]:
    given = cast("object", machine)  # not every caller is type-checked
    if not (isinstance(given, type) and issubclass(given, Machine)):
        raise VariableError(
            f"{getattr(machine, '__name__', repr(machine))} is no machine",
            where=here(),
            help="write a subclass of Machine, not an instance",
        )
    found: set[str] = set()
    for one in left_out:
        member = member_of(one)
        known = member is not None and getattr(machine, member.name, None) is one
        if member is None or not known or member.kind in _SETTINGS:
            raise NameTakenError(
                f"`without` names {one!r}, which is no action and no property of {machine.__name__}",
                where=here(),
                help=f"write `without=({machine.__name__}.some_action,)`",
            )
        found.add(member.name)
    return frozenset(found)


@dataclass(frozen=True, eq=False)
class Alone:
    """A system's member that says which of its parts are checked alone."""

    parts: tuple[Part[Any] | Many[Any, Any], ...]


def checked_alone(*parts: Part[Any] | Many[Any, Any]) -> Alone:
    """`stagewright mutate` of this system leaves to these parts what they say by themselves.

    `each_alone = checked_alone(tablet, views)`: each of them is a machine that is checked alone, so that in the
    system only what the system says is changed. Without it the parts' words are changed here too.
    """
    return Alone(parts)


def alone_in(machine: type[object]) -> tuple[CheckedAlone, ...]:
    """The parts that a system leaves to themselves."""
    for base in machine.__mro__:
        for said in vars(base).values():
            if isinstance(said, Alone):
                return tuple(CheckedAlone(f"{p.name}.", p.machine.__name__) for p in said.parts)
    return ()


def machines_of(machine: type[Machine]) -> tuple[type[Machine], ...]:
    """A machine's class and those of its parts, each once."""
    found: dict[type[Machine], None] = {machine: None}
    for member in members(machine).values():
        if isinstance(member, Part | Many):
            inner = cast("Part[Machine] | Many[Any, Machine]", member)
            found.update(dict.fromkeys(machines_of(inner.machine)))
    return tuple(found)


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
