"""Whether permuting the members of a sort maps a ground model to itself: decided by meaning, not by form.

For permutations that generate all others: initial states go to initial states, every ground step to
the step of the same action with permuted parameters, every invariant and step property (all its
instances together) and `final` to themselves. Goals and leads-to are not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto

from stagewright.checker.symmetry.groups import Permutation, Symmetry
from stagewright.checker.symmetry.permutations.diagrams import (
    Diagrams,
    TooLargeError,
    View,
    order_of,
)
from stagewright.checker.symmetry.permutations.motion import Renaming, generators, moved
from stagewright.spec.grounding.ground import (
    GroundModel,
    GroundNode,
    GroundOp,
    GroundProperty,
    GroundStep,
)
from stagewright.spec.values import show

BRANCHES = 1_000_000  # of diagrams, for all comparisons of one sort: about a second
_BRANCHES_AT_FIRST = 4_000  # for one comparison; after that another order of the cells is tried
_BRANCHES_LATER = 20_000
_JUNCTIONS = {GroundOp.AND, GroundOp.OR, GroundOp.NOT}
_MOST_LISTED = 5_000  # initial states that are compared one by one


class Answer(Enum):
    """Whether a sort's permutations map the model to itself."""

    CLOSED = auto()
    BROKEN = auto()
    UNDECIDED = auto()  # the expressions are too large to be compared


@dataclass(frozen=True)
class Closure:
    """The answer; `why` says in words what breaks it."""

    answer: Answer
    why: str = ""


def closure_of(model: GroundModel, symmetry: Symmetry, branches: int = BRANCHES) -> Closure:
    """Whether the model is closed under a symmetry of one sort."""
    (group,) = symmetry.groups
    try:
        for name, images in generators(group.size).items():
            broken = _Comparison(_Equality(model, symmetry, (images,), branches)).broken()
            if broken:
                text = f"swapping {_first_two(model, symmetry)}" if name == "swap" else name
                return Closure(Answer.BROKEN, f"{text} {broken}")
    except (TooLargeError, RecursionError):
        return Closure(Answer.UNDECIDED)
    return Closure(Answer.CLOSED)


def unchanged(
    model: GroundModel, symmetry: Symmetry, node: GroundNode, branches: int = BRANCHES
) -> bool:
    """Whether no permutation changes the value of a boolean expression; False also if that is not known."""
    for index, group in enumerate(symmetry.groups):
        for images in generators(group.size).values():
            identity = symmetry.identity
            permutation = (*identity[:index], images, *identity[index + 1 :])
            try:
                if not _Equality(model, symmetry, permutation, branches).holds([node], [node]):
                    return False
            except (TooLargeError, RecursionError):
                return False
    return True


def _first_two(model: GroundModel, symmetry: Symmetry) -> str:
    kind = symmetry.groups[0].kind
    members = list(Renaming(model, symmetry).members(kind))[:2]
    return " and ".join(show(m) for m in members)


@dataclass(frozen=True)
class _Views:
    """Diagrams of expressions as they are, and as they read on renamed states."""

    diagrams: Diagrams
    as_is: View
    renamed: View


class _Equality:
    """Whether one permutation makes one expression of another: first by diagrams that are shared."""

    def __init__(
        self, model: GroundModel, symmetry: Symmetry, permutation: Permutation, branches: int
    ) -> None:
        self.model, self.symmetry, self.permutation = model, symmetry, permutation
        self._left = branches
        self._shared = self._views(())

    def _views(self, order: Sequence[int]) -> _Views:
        cells = self.model.cells
        diagrams = Diagrams(cells, order)
        return _Views(
            diagrams,
            View(diagrams, cells, self.symmetry, self.symmetry.identity),
            View(diagrams, cells, self.symmetry, self.permutation),
        )

    def holds(self, nodes: Sequence[GroundNode], images: Sequence[GroundNode]) -> bool:
        """Whether the conjunction of boolean `nodes` becomes that of `images`.

        Raises:
            TooLargeError: their diagrams are too large.
        """

        def in_shared() -> bool:
            shared = self._shared
            image = _all(shared.diagrams, [shared.as_is.of(n) for n in images])
            return image == _all(shared.diagrams, [shared.renamed.of(n) for n in nodes])

        equal = self._answer(self._shared, _BRANCHES_AT_FIRST, in_shared)
        if equal is not None:
            return equal
        views = self._views(order_of(images))
        if len(nodes) == len(images) == 1:
            return self._alike(views, nodes[0], images[0])
        return self._matched(views, nodes, images)

    def assigns(self, cell: int, node: GroundNode, image: GroundNode) -> bool:
        """Whether `node`, the new value of a cell, becomes `image`.

        Raises:
            TooLargeError: their diagrams are too large.
        """
        equal = self._assigns(self._shared, _BRANCHES_AT_FIRST, cell, node, image)
        if equal is None:
            equal = self._assigns(
                self._views(order_of([image])), _BRANCHES_LATER, cell, node, image
            )
        if equal is None:
            raise TooLargeError
        return equal

    def _assigns(
        self, views: _Views, branches: int, cell: int, node: GroundNode, image: GroundNode
    ) -> bool | None:
        return self._answer(
            views,
            branches,
            lambda: views.as_is.of(image) == views.renamed.renamed(cell, views.renamed.of(node)),
        )

    def _alike(self, views: _Views, node: GroundNode, image: GroundNode) -> bool:
        """Whether `node` becomes `image`; too large junctions are compared part by part."""
        equal = self._answer(
            views, _BRANCHES_LATER, lambda: views.as_is.of(image) == views.renamed.of(node)
        )
        if equal is not None:
            return equal
        if node.op is not image.op or node.op not in _JUNCTIONS:
            raise TooLargeError
        return self._matched(views, node.args, image.args)

    def _matched(
        self, views: _Views, nodes: Sequence[GroundNode], images: Sequence[GroundNode]
    ) -> bool:
        """True if the parts of one junction become those of another, in any order; else not decided."""
        free = list(images)
        for node in nodes:
            for image in free:
                with suppress(TooLargeError):
                    if self._alike(views, node, image):
                        free.remove(image)
                        break
            else:
                raise TooLargeError
        if free:
            raise TooLargeError
        return True

    def _answer(self, views: _Views, branches: int, asked: Callable[[], bool]) -> bool | None:
        """The answer, if it takes no more than so many branches."""
        if self._left < 0:
            raise TooLargeError
        views.diagrams.left = branches
        try:
            return asked()
        except TooLargeError:
            return None
        finally:
            self._left -= branches - max(0, views.diagrams.left)


def _all(diagrams: Diagrams, parts: Sequence[int]) -> int:
    result, *others = parts
    for part in others:
        result = diagrams.apply(GroundOp.AND, result, part)
    return result


class _Comparison:
    """A model and what one permutation makes of it."""

    def __init__(self, equality: _Equality) -> None:
        self._model, self._symmetry = equality.model, equality.symmetry
        self._permutation, self._equality = equality.permutation, equality
        self._renaming = Renaming(self._model, self._symmetry)
        self._destinations = self._symmetry.destinations(self._permutation)

    def broken(self) -> str:
        """The first thing that the permutation changes, in words; empty if it changes nothing."""
        model = self._model
        if not self._same_initial_states():
            return "does not map the initial states to themselves"
        if not self._same(model.final, model.final):
            return "changes which states are final"
        for step in model.steps:
            if broken := self._step(step):
                return f"changes what `{step.label}` does: {broken}"
        for promises in (
            model.invariants,
            model.step_properties,
            model.witnesses,
            model.step_witnesses,
            model.premises,
            model.step_premises,
        ):
            for name, instances in _by_name(promises):
                if not self._same_promise(instances):
                    return f"changes what `{name}` says"
        return ""

    def _same(self, node: GroundNode, image: GroundNode) -> bool:
        """Whether the permutation makes `image` of a boolean expression."""
        return self._equality.holds([node], [image])

    def _same_initial_states(self) -> bool:
        model = self._model
        if len(model.initial) <= _MOST_LISTED or model.initial_condition is None:
            known = set(model.initial)
            return all(moved(self._symmetry, self._permutation, s) in known for s in known)
        return self._same(model.initial_condition, model.initial_condition)

    def _step(self, step: GroundStep) -> str:
        image = self._renaming.step(step, self._permutation)
        if image is None:
            never = self._equality.holds([step.guard], [self._model.builder.false])
            return "" if never else "there is no such step"
        for one, other in zip(step.requirements, image.requirements, strict=True):
            if not self._same(one.condition, other.condition) and not self._same_where(
                step, image, step.guard, image.guard
            ):
                return f"its requirement `{one.name}`"
        if not self._same(step.overflows, image.overflows) and not self._same_where(
            step, image, step.overflows, image.overflows
        ):
            return "which values are out of bounds"
        images = {self._destinations[cell]: cell for cell in range(len(self._destinations))}
        touched = {self._destinations[cell] for cell in step.updates} | set(image.updates)
        for destination in sorted(touched):
            cell = images[destination]
            value = _update(self._model, step, cell)
            wanted = _update(self._model, image, destination)
            if not self._equality.assigns(cell, value, wanted) and not self._assigns_where(
                step, image, cell, destination
            ):
                return f"its effect on {self._model.cells[destination].name}"
        return ""

    # What is asked of an element that a queue lacks is the same for no two members; but no state that
    # stands for a value and in which the step can happen asks for it.

    def _where(self, step: GroundStep) -> GroundNode:
        """The states that count: they stand for values, and the step can happen."""
        builder = self._model.builder
        return builder.and_((self._model.wellformed or builder.true, step.guard))

    def _same_where(
        self, step: GroundStep, image: GroundStep, node: GroundNode, other: GroundNode
    ) -> bool:
        if self._model.wellformed in {None, self._model.builder.true}:
            return False
        builder = self._model.builder
        return self._same(
            builder.and_((self._where(step), node)), builder.and_((self._where(image), other))
        )

    def _assigns_where(
        self, step: GroundStep, image: GroundStep, cell: int, destination: int
    ) -> bool:
        if self._model.wellformed in {None, self._model.builder.true}:
            return False
        builder = self._model.builder
        value, wanted = (
            builder.if_(self._where(s), _update(self._model, s, c), builder.cell(c))
            for s, c in ((step, cell), (image, destination))
        )
        return self._equality.assigns(cell, value, wanted)

    def _same_promise(self, instances: Sequence[GroundProperty]) -> bool:
        by_arguments = {p.arguments: p for p in instances}
        images = [
            by_arguments[self._renaming.arguments(p.arguments, self._permutation)]
            for p in instances
        ]
        if all(
            self._same(p.condition, i.condition) for p, i in zip(instances, images, strict=True)
        ):
            return True
        builder, formed = self._model.builder, self._model.wellformed
        conditions = [p.condition for p in instances]
        if formed not in {None, builder.true}:
            assert formed is not None
            conditions = [builder.or_((builder.not_(formed), c)) for c in conditions]
        return self._equality.holds(conditions, conditions)


def _update(model: GroundModel, step: GroundStep, cell: int) -> GroundNode:
    """What a cell holds after a step."""
    return step.updates[cell] if cell in step.updates else model.builder.cell(cell)


def _by_name(promises: Sequence[GroundProperty]) -> Iterator[tuple[str, list[GroundProperty]]]:
    found: dict[str, list[GroundProperty]] = {}
    for promise in promises:
        found.setdefault(promise.property.name, []).append(promise)
    yield from found.items()
