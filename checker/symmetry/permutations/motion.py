"""The action of a permutation on states, steps and properties, one at a time: for replaying and for evaluating."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stagewright.checker.symmetry.groups import Permutation, Symmetry, interchangeable
from stagewright.spec.grounding.ground import GroundModel, GroundStep
from stagewright.spec.values import FrozenMap, Value

Ints = tuple[int, ...]
Arguments = tuple[tuple[str, Value], ...]


def moved(symmetry: Symmetry, permutation: Permutation, state: Ints) -> Ints:
    """The state that a permutation makes of a state."""
    result = list(state)
    for cell, destination in enumerate(symmetry.destinations(permutation)):
        result[destination] = symmetry.renamed(cell, state[cell], permutation)
    return tuple(result)


class Renaming:
    """A permutation's action on values, and on the ground steps of a model."""

    def __init__(self, model: GroundModel, symmetry: Symmetry) -> None:
        self._groups: dict[type, tuple[int, dict[Value, int], Sequence[Value]]] = {}
        for index, group in enumerate(symmetry.groups):
            kind = group.kind
            members = interchangeable(kind, model.scope)
            self._groups[kind] = (index, {m: i for i, m in enumerate(members)}, members)
        self._steps = {(s.action.name, s.arguments): s for s in model.steps}

    def members(self, kind: type) -> Sequence[Value]:
        """The members of a permuted sort, by their numbers."""
        return self._groups[kind][2]

    def value(self, value: Value, permutation: Permutation) -> Value:
        """What a value becomes; one that is no member of a permuted sort stays."""
        if isinstance(value, FrozenMap):  # a record, as an argument
            return FrozenMap({name: self.value(v, permutation) for name, v in value.items()})
        known = self._groups.get(type(value))
        if known is None or value not in known[1]:
            return value
        group, numbers, members = known
        return members[permutation[group][numbers[value]]]

    def arguments(self, arguments: Arguments, permutation: Permutation) -> Arguments:
        """What the arguments of an action or a property become."""
        return tuple((name, self.value(value, permutation)) for name, value in arguments)

    def step(self, step: GroundStep, permutation: Permutation) -> GroundStep | None:
        """The step that does to renamed states what `step` does to states; None if it is never enabled."""
        return self._steps.get((step.action.name, self.arguments(step.arguments, permutation)))


def permutation_between(symmetry: Symmetry, state: Ints, wanted: Ints) -> Permutation | None:
    """A permutation that makes `wanted` of `state`; None if the two are not of one orbit."""
    for tried in symmetry.permutations():
        between = moved(symmetry, tried, state)
        images = list(tried)
        for index, group in enumerate(symmetry.groups):
            if group.by_sorting:
                matched = _matched(group.components, between, wanted)
                if matched is None:
                    break
                images[index] = matched
        else:
            found = tuple(images)
            if moved(symmetry, found, state) == wanted:
                return found
    return None


def _matched(
    components: Sequence[Sequence[int]], state: Ints, wanted: Ints
) -> tuple[int, ...] | None:
    """Where each member goes so that the components of `state` become those of `wanted`."""
    places: dict[Ints, list[int]] = {}
    for member, cells in enumerate(components):
        places.setdefault(tuple(wanted[c] for c in cells), []).append(member)
    images: list[int] = []
    for cells in components:
        free = places.get(tuple(state[c] for c in cells))
        if not free:
            return None
        images.append(free.pop(0))
    return tuple(images)


def generators(size: int) -> Mapping[str, tuple[int, ...]]:
    """Permutations of so many members that generate all: a swap, and a cycle where a swap is not enough."""
    swap = (1, 0, *range(2, size))
    return {"swap": swap} if size == 2 else {"swap": swap, "cycle": (*range(1, size), 0)}
