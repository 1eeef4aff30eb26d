"""Which reasons are needed: of each, mutants are evaluated until one of them survives.

A survivor shows that a reason is needed, and a mutant more of it shows nothing else. That is far less work than
evaluating every mutant, and what it leaves open is left out of the report.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import Mutant
from stagewright.checker.mutation.evaluation import SURVIVES, Evaluation, Fate
from stagewright.spec.definition import Definition, EquivalentDrop, Reason


class Claim(Enum):
    """What was found out about one reason."""

    NEEDED = "needed"  # some mutant of it survives
    STALE = "stale"  # all of them are caught
    OPEN = "open"  # neither, as far as they were evaluated


def deciding(definition: Definition, mutants: Sequence[Mutant]) -> Mapping[Reason, Sequence[int]]:
    """By reason: the indices of the mutants that decide it. If a guard may be dropped, those that drop it.

    What a part says of itself need not hold in a system, nor what a base class says in each class of it, nor what
    is said of one place where several change: that is not decided.
    """
    drops = {
        said.reason
        for said in definition.equivalents
        if isinstance(said, EquivalentDrop) and not said.weakened
    }
    found: dict[Reason, list[int]] = {}
    for index, mutant in enumerate(mutants):
        for reason in () if mutant.whole else mutant.reasons:
            if not (reason.of_part or reason.inherited):
                found.setdefault(reason, []).append(index)
    for reason in drops.intersection(found):
        dropping = [i for i in found[reason] if mutants[i].kind is Kind.DROP]
        found[reason] = dropping or found[reason]
    return found


def claim(fates: Sequence[Fate]) -> Claim:
    """What is known of a reason once these became of the mutants that decide it."""
    if any(fate in SURVIVES for fate in fates):
        return Claim.NEEDED
    caught = Fate.CAUGHT in fates and set(fates) <= {Fate.CAUGHT, Fate.SAME}
    return Claim.STALE if caught else Claim.OPEN


@dataclass(eq=False)
class Claims:
    """The reasons of a definition while mutants are evaluated for them."""

    definition: Definition
    mutants: Sequence[Mutant]
    evaluations: dict[int, Evaluation] = field(default_factory=dict)  # by mutant, as far as known

    @cached_property
    def deciding(self) -> Mapping[Reason, Sequence[int]]:
        """By reason, the mutants that decide it."""
        return deciding(self.definition, self.mutants)

    @cached_property
    def any_of(self) -> frozenset[int]:
        """The mutants that decide a reason."""
        return frozenset(i for indices in self.deciding.values() for i in indices)

    def asks(self, index: int) -> bool:
        """Whether a mutant was evaluated for a reason, or one is open that it could decide."""
        asking = [r for r, indices in self.deciding.items() if index in indices]
        known = index in self.evaluations
        return bool(asking) and (known or any(self.of(r) is Claim.OPEN for r in asking))

    def in_order(self) -> Iterator[int]:
        """The first mutant of each reason, then the second, …: those whose reasons are open when they are due."""
        given: set[int] = set()
        for rank in range(max(map(len, self.deciding.values()), default=0)):
            for reason, indices in self.deciding.items():
                due = indices[rank : rank + 1]
                if given.isdisjoint(due) and self.of(reason) is Claim.OPEN:
                    given.update(due)
                    yield from due

    def of(self, reason: Reason) -> Claim:
        """What is known of one of them."""
        undecided = Fate.UNDECIDED
        known = [self.evaluations.get(i) for i in self.deciding[reason]]
        return claim([undecided if found is None else found.fate for found in known])
