"""Which sorts of a ground model are symmetric, and why the others are not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from math import factorial

from stagewright.checker.symmetry.groups import (
    Kind,
    Symmetry,
    interchangeable,
    key_parts,
    symmetry_of,
)
from stagewright.checker.symmetry.permutations.closure import BRANCHES, Answer, closure_of
from stagewright.checker.symmetry.permutations.findings import Finding, findings
from stagewright.spec.entities import Entity
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.source import Source

MOST_TRIALS = 5_040
"""Permutations to be tried for one state, at most: beyond, looking for the least costs more than it saves."""

_SHARE_OF_SECOND_OPINION = 10


@dataclass(frozen=True)
class SortVerdict:
    """Whether the members of a sort are interchangeable; if not, `reason` says what tells them apart."""

    kind: Kind
    size: int
    symmetric: bool
    reason: str = ""
    where: Source | None = None

    def __str__(self) -> str:
        if self.symmetric:
            return f"{self.kind.__name__}: {self.size} interchangeable members"
        place = f" ({self.where})" if self.where is not None else ""
        return f"{self.kind.__name__}: not symmetric, {self.reason}{place}"


@dataclass(frozen=True)
class Detected:
    """A verdict for every entity sort, and for every enum that states are keyed by; and their symmetry."""

    symmetry: Symmetry
    sorts: tuple[SortVerdict, ...]


def detect(model: GroundModel, branches: int = BRANCHES) -> Detected:
    """Find the symmetric sorts of a model, for invariants, step properties, bounds and deadlock.

    A sort is symmetric only if this is proved: from the ground form, or, where its expressions are too
    large to be compared with so many `branches` of diagrams, from the definition's tree. Goals and
    leads-to promises are not considered.
    """
    verdicts = [_verdict(model, kind, branches) for kind in _candidates(model)]
    while True:
        chosen = [v.kind for v in verdicts if v.symmetric]
        symmetry = symmetry_of(model.cells, model.scope, chosen)
        if symmetry.trials <= MOST_TRIALS:
            return Detected(symmetry, tuple(verdicts))
        tried = [symmetry.groups[i] for i in symmetry.tried]
        largest = max(tried, key=lambda group: group.size)
        reason = f"its {factorial(largest.size):,} permutations are too many to be tried"
        verdicts = [
            SortVerdict(v.kind, v.size, False, reason) if v.kind is largest.kind else v
            for v in verdicts
        ]


def _candidates(model: GroundModel) -> Iterator[Kind]:
    yield from model.definition.entities
    keys = dict.fromkeys(type(k) for cell in model.cells for k in key_parts(cell.path))
    for kind in keys:
        if issubclass(kind, Enum):
            yield kind


def _verdict(model: GroundModel, kind: Kind, branches: int) -> SortVerdict:
    size = len(interchangeable(kind, model.scope))
    if issubclass(kind, Entity) and kind.is_ordered:
        return SortVerdict(kind, size, False, "its members stand in an order")
    if size < 2:
        without = "without a name" if issubclass(kind, Entity) and kind.member_names else ""
        return SortVerdict(kind, size, False, f"there is only one {without}".rstrip())
    first: Finding | None = next(findings(model.definition, kind, size), None)
    if first is None:  # proved by the tree: what follows is a second opinion
        branches //= _SHARE_OF_SECOND_OPINION
    closure = closure_of(model, symmetry_of(model.cells, model.scope, [kind]), branches)
    if closure.answer is Answer.CLOSED:
        return SortVerdict(kind, size, True)
    if closure.answer is Answer.UNDECIDED and first is None:
        return SortVerdict(kind, size, True)
    if first is not None:
        return SortVerdict(kind, size, False, first.what, first.where)
    return SortVerdict(kind, size, False, closure.why)
