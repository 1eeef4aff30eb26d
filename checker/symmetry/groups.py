"""What a symmetry is, as plain data: this is the seam between its detection and every engine.

A permutation of the members of a sort moves cells (`stage[node0]` to `stage[node2]`) and renames values
(an `owner` that is node0 becomes node2; none stays none). `Symmetry` says how, for the product of the
full symmetric groups of some sorts. It does not know how states are packed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from itertools import permutations, product
from math import factorial

from stagewright.spec.entities import Entity
from stagewright.spec.grounding.domains import values_of
from stagewright.spec.grounding.ground import Cell
from stagewright.spec.scope import Scope
from stagewright.spec.sorts import EntitySort, EnumSort, OptionalSort
from stagewright.spec.values import FrozenMap, Value

Kind = type[Entity] | type[Enum]

Permutation = tuple[tuple[int, ...], ...]
"""By group: where each member goes. `((1, 0, 2),)` swaps the first two members of the only group."""


@dataclass(frozen=True)
class CellAction:
    """How permutations act on one cell.

    The cell of `pattern` with keys (e1, e2, …) moves to the cell of the same pattern with the keys
    that these members go to. If `value` names a group, the cell holds one of its members: code
    `first + e` stands for member e, and the codes below `first` (none, and the members of an entity
    that have names) stay as they are.
    """

    pattern: int
    keys: tuple[tuple[int, int], ...]  # (group, member), in the order of the path
    value: int | None = None
    first: int = 0


@dataclass(frozen=True)
class SymmetricGroup:
    """All permutations of the members of one sort.

    `components[e]` are the cells that have e as their only key of this group, all in the same order:
    a permutation moves whole components. With `by_sorting` that is all that it does, so that ordering
    the components (all other groups held still) is a canonical form; no two groups with `by_sorting`
    share a cell. Without, a cell has two keys of the group or holds one of its members, and
    permutations must be tried.
    """

    kind: Kind
    size: int
    components: tuple[tuple[int, ...], ...]
    by_sorting: bool


@dataclass(frozen=True)
class Symmetry:
    """The product of the symmetric groups of some sorts, acting on the states of one ground model."""

    groups: tuple[SymmetricGroup, ...]
    actions: tuple[CellAction, ...]  # by cell index

    @property
    def order(self) -> int:
        """How many permutations there are, the identity included."""
        order = 1
        for group in self.groups:
            order *= factorial(group.size)
        return order

    @property
    def identity(self) -> Permutation:
        """The permutation that changes nothing."""
        return tuple(tuple(range(group.size)) for group in self.groups)

    @property
    def tried(self) -> tuple[int, ...]:
        """The groups whose permutations must be tried."""
        return tuple(i for i, group in enumerate(self.groups) if not group.by_sorting)

    @property
    def trials(self) -> int:
        """How many permutations are tried for a state at most."""
        trials = 1
        for index in self.tried:
            trials *= factorial(self.groups[index].size)
        return trials

    def permutations(
        self, blocks: Sequence[Sequence[Sequence[int]]] | None = None
    ) -> Iterator[Permutation]:
        """All permutations of the groups that are tried; the others are held still.

        `blocks`: for every group, which members may change places among themselves.
        """
        if blocks is None:
            blocks = [
                [[e] for e in range(g.size)] if g.by_sorting else [range(g.size)]
                for g in self.groups
            ]
        for chosen in product(*(_within(of_group) for of_group in blocks)):
            yield tuple(chosen)

    def destinations(self, permutation: Permutation) -> tuple[int, ...]:
        """By cell: the cell that it moves to."""
        return tuple(
            self._cell_at[action.pattern, tuple(permutation[g][e] for g, e in action.keys)]
            for action in self.actions
        )

    def renamed(self, cell: int, code: int, permutation: Permutation) -> int:
        """What a code of a cell becomes."""
        action = self.actions[cell]
        if action.value is None or code < action.first:
            return code
        return permutation[action.value][code - action.first] + action.first

    @cached_property
    def _cell_at(self) -> dict[tuple[int, tuple[int, ...]], int]:
        return {
            (action.pattern, tuple(e for _, e in action.keys)): index
            for index, action in enumerate(self.actions)
        }


def _within(blocks: Sequence[Sequence[int]]) -> Iterator[tuple[int, ...]]:
    """The permutations of a group that keep every member in its block."""
    size = sum(map(len, blocks))
    for orders in product(*(permutations(block) for block in blocks)):
        images = [0] * size
        for block, order in zip(blocks, orders, strict=True):
            for member, image in zip(block, order, strict=True):
                images[member] = image
        yield tuple(images)


def interchangeable(kind: Kind, scope: Scope) -> Sequence[Value]:
    """The members that permutations move, in order: all but those of an entity that have names."""
    members = values_of(_sort(kind), scope)
    return members[len(kind.member_names) :] if issubclass(kind, Entity) else members


def symmetry_of(cells: Sequence[Cell], scope: Scope, kinds: Iterable[Kind]) -> Symmetry:
    """How permutations of the members of these sorts would act; whether a model allows it is another question."""
    chosen = tuple(kinds)
    members = [{m: i for i, m in enumerate(interchangeable(kind, scope))} for kind in chosen]
    named = [len(values_of(_sort(k), scope)) - len(m) for k, m in zip(chosen, members, strict=True)]
    patterns: dict[tuple[object, ...], int] = {}
    actions: list[CellAction] = []
    for cell in cells:
        keys: list[tuple[int, int]] = []
        masked: list[object] = [cell.variable]
        for key in key_parts(cell.path):
            group = next((g for g, kind in enumerate(chosen) if type(key) is kind), None)
            if group is None or key not in members[group]:
                masked.append(key)
            else:
                keys.append((group, members[group][key]))
                masked.append(chosen[group])
        pattern = patterns.setdefault(tuple(masked), len(patterns))
        element = cell.sort.element if isinstance(cell.sort, OptionalSort) else cell.sort
        value = first = None
        if isinstance(element, EntitySort | EnumSort) and element.kind in chosen:
            value = chosen.index(element.kind)
            first = int(isinstance(cell.sort, OptionalSort)) + named[value]
        actions.append(CellAction(pattern, tuple(keys), value, first or 0))
    return _with_groups(chosen, [len(m) for m in members], tuple(actions))


def key_parts(path: Iterable[Value]) -> Iterator[Value]:
    """The keys of a path; those that are records field by field."""
    for key in path:
        if isinstance(key, FrozenMap):
            yield from key.values()
        else:
            yield key


def _sort(kind: Kind) -> EntitySort | EnumSort:
    return EntitySort(kind) if issubclass(kind, Entity) else EnumSort(kind)


def _with_groups(
    kinds: Sequence[Kind], sizes: Sequence[int], actions: tuple[CellAction, ...]
) -> Symmetry:
    touched: list[set[int]] = [set() for _ in kinds]
    simple = [True for _ in kinds]
    for cell, action in enumerate(actions):
        if action.value is not None:
            simple[action.value] = False
        used = [group for group, _ in action.keys]
        for group in used:
            touched[group].add(cell)
            simple[group] &= used.count(group) == 1
    sorted_: set[int] = set()
    for group in sorted(range(len(kinds)), key=lambda g: (-sizes[g], g)):
        if simple[group] and all(touched[group].isdisjoint(touched[g]) for g in sorted_):
            sorted_.add(group)
    return Symmetry(
        tuple(
            SymmetricGroup(kind, sizes[g], _components(g, sizes[g], actions), g in sorted_)
            for g, kind in enumerate(kinds)
        ),
        actions,
    )


def _components(
    group: int, size: int, actions: tuple[CellAction, ...]
) -> tuple[tuple[int, ...], ...]:
    found: list[list[tuple[object, int]]] = [[] for _ in range(size)]
    for cell, action in enumerate(actions):
        own = [e for g, e in action.keys if g == group]
        if len(own) == 1:
            others = tuple(None if g == group else e for g, e in action.keys)
            found[own[0]].append(
                ((action.pattern, tuple(-1 if o is None else o for o in others)), cell)
            )
    orders = [{what: at for at, (what, _) in enumerate(component)} for component in found]
    first = orders[0]
    assert all(order.keys() == first.keys() for order in orders), "members have equal cells"
    return tuple(
        tuple(cell for _, cell in sorted(component, key=lambda c: first[c[0]]))
        for component in found
    )
