"""What a mutation run found: the mutants with their evaluations, and what the definition said of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from stagewright.checker.mutation.changes.columns import unknown_values
from stagewright.checker.mutation.changes.disabled import unknown_actions
from stagewright.checker.mutation.changes.edges import unknown_steps
from stagewright.checker.mutation.changes.effects import unknown_joins
from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import Mutant
from stagewright.checker.mutation.changes.reasons import unknown_bodies, unknown_changes
from stagewright.checker.mutation.claims import Claim, claim, deciding
from stagewright.checker.mutation.evaluation import ASSIGNED_ONCE, SURVIVES, Evaluation, Fate
from stagewright.checker.mutation.fairness import Assumed
from stagewright.checker.mutation.original import Original
from stagewright.checker.verdicts import IN_BOUNDS
from stagewright.spec.declarations.exercised import scope_of_difference
from stagewright.spec.definition import (
    NO_DEADLOCK,
    CheckedAlone,
    Definition,
    Equivalent,
    Reason,
    Role,
)
from stagewright.spec.scope import Scope

_MAY_BE_THE_SAME = frozenset({Kind.TIGHTEN, Kind.HELPER, Kind.REPLACE})


@dataclass(frozen=True)
class Finding:
    """One mutant and what became of it."""

    mutant: Mutant
    evaluation: Evaluation

    @property
    def fate(self) -> Fate:
        """What became of it; one that asks for more and refuses nothing means the same.

        So does one that changes no step, where what changes is said in a helper, and not of a step, or is a name for another.
        """
        fate = self.evaluation.fate
        same = self.mutant.kind in _MAY_BE_THE_SAME and fate is Fate.REDUNDANT
        return Fate.SAME if same else fate

    @property
    def survives(self) -> bool:
        return self.fate in SURVIVES

    @property
    def explained(self) -> bool:
        """Whether the definition says why it may survive."""
        return self.survives and bool(self.mutant.reasons)

    @property
    def unobserved(self) -> bool:
        """Whether nothing observes the change: the definition says so, or it only asks for more."""
        return self.explained or (self.survives and self.mutant.kind is Kind.TIGHTEN)


@dataclass(frozen=True)
class Group:
    """Survivors that one line of a definition causes in several actions, for the same reason."""

    findings: tuple[Finding, ...]
    explanation: str  # the reasons, or the hint

    @property
    def mutant(self) -> Mutant:
        """One of them; they differ in their actions."""
        return self.findings[0].mutant

    @property
    def actions(self) -> tuple[str, ...]:
        return tuple(f.mutant.action for f in self.findings if f.mutant.action)


class Catcher(Enum):
    """What kind of promise notices a mutant, the best first."""

    PROMISE = "properties"
    EVERY_MACHINE = "what must hold of every machine"
    WORDING = "properties of the text's words"
    RESTATED = "properties that repeat a guard"
    LEMMA = "lemmas"


@dataclass(frozen=True)
class Summary:
    """Numbers of mutants; those that mean the same as the original do not count."""

    mutants: int
    caught: int
    unobserved: (
        int  # nothing observes them: as the definition says, or since they only ask for more
    )
    unexplained: int
    undecided: int
    same: int


class Need(Enum):
    """What was found out about one property."""

    ALONE = "alone"  # it alone catches some mutant
    SHARED = "shared"  # whatever it catches first, another property catches too
    NOTHING = "nothing"  # it catches no mutant first
    IMPLIED = "implied"  # no step can break it and keep the others
    OF_A_PART = "of a part"  # nor does it; but the part's own mutants are evaluated with the part
    UNDECIDED = "undecided"  # the budget was spent before every mutant was searched


@dataclass(frozen=True)
class Needed:
    """One property: how many mutants it catches first, and one that no other property catches."""

    need: Need
    caught: int
    example: Finding | None = None


@dataclass(frozen=True)
class MutationReport:
    """All that one run says.

    `whole`: every mutant of the newest profile was to be evaluated, so that reasons can be found wanting.
    """

    definition: Definition
    originals: Sequence[Original]
    findings: Sequence[Finding]
    whole: bool
    interrupted: bool
    seconds: float
    versions: Sequence[Definition] = ()  # this one, and those of its other profiles
    restated: frozenset[str] = frozenset()  # properties that repeat a guard
    with_parts: Sequence[Mutant] = ()  # left to the parts of the system that say what they change
    assumed: Assumed | None = None  # of the actions' fairness; None if it was not looked at
    needs: Mapping[str, Needed] = field(default_factory=dict)  # by property; empty if not asked for
    reasons_alone: bool = False  # the mutants of each reason, until one survived

    @cached_property
    def unexplained(self) -> tuple[Finding, ...]:
        """The survivors without a reason: holes, or noise."""
        return tuple(f for f in self.findings if f.survives and not f.unobserved)

    @cached_property
    def explained(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.explained)

    @cached_property
    def tightened(self) -> tuple[Finding, ...]:
        """The survivors that only ask for more: no promise says that what they refuse is to happen."""
        return tuple(f for f in self.findings if f.unobserved and not f.explained)

    @cached_property
    def sought_elsewhere(self) -> Mapping[str, Scope]:
        """The properties that evaluate no mutant: each is decided at a scope of its own, which was not searched."""
        searched = {original.scope for original in self.originals}
        own = {
            p.name: scope_of_difference(self.definition, p.at)
            for p in self.definition.properties
            if p.at is not None
        }
        return {name: scope for name, scope in own.items() if scope not in searched}

    @cached_property
    def catchers(self) -> Mapping[Catcher, int]:
        """How many of the caught each kind of promise catches, the best of those that break first."""
        found = Counter(dict.fromkeys(Catcher, 0))
        for finding in self.findings:
            if finding.evaluation.fate is Fate.CAUGHT:
                kinds = {self._catcher(name) for name in finding.evaluation.by}
                found[next(kind for kind in Catcher if kind in kinds)] += 1
        return dict(found)

    def _catcher(self, name: str) -> Catcher:
        roles = [p.role for p in self.definition.properties if p.name == name]
        if not roles:
            return Catcher.EVERY_MACHINE
        if roles[0] is Role.LEMMA:
            return Catcher.LEMMA
        if name in self.restated:
            return Catcher.RESTATED
        return Catcher.WORDING if roles[0] is Role.WORDING else Catcher.PROMISE

    @cached_property
    def undecided(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.evaluation.fate is Fate.UNDECIDED)

    def grouped(self, findings: Sequence[Finding]) -> tuple[Group, ...]:
        """Survivors by place, text and reason."""
        groups: dict[tuple[str, ...], list[Finding]] = {}
        for finding in findings:
            mutant = finding.mutant
            text = "; ".join(r.text for r in mutant.reasons) or hint(finding, self.originals)
            key = (str(mutant.where), mutant.kind.value, mutant.text, text)
            groups.setdefault(key, []).append(finding)
        return tuple(Group(tuple(group), text) for (*_, text), group in groups.items())

    def summary(self, kind: Kind | None = None) -> Summary:
        """The numbers of one kind of mutants, or of all."""
        mine = [f for f in self.findings if kind is None or f.mutant.kind is kind]
        fates = Counter(f.fate for f in mine)
        unobserved = sum(f.unobserved for f in mine)
        return Summary(
            len(mine) - fates[Fate.SAME],
            fates[Fate.CAUGHT],
            unobserved,
            sum(f.survives for f in mine) - unobserved,
            fates[Fate.UNDECIDED],
            fates[Fate.SAME],
        )

    @cached_property
    def of_parts(self) -> Mapping[CheckedAlone, int]:
        """How many mutants are evaluated with each part of the system, and not here."""
        return {
            alone: sum(mutant.part.startswith(alone.part) for mutant in self.with_parts)
            for alone in self.definition.checked_alone
        }

    @cached_property
    def catches(self) -> Mapping[str, int]:
        """How many mutants each promise catches: of several that break at one depth, all."""
        names = [p.name for p in self.definition.properties]
        found = Counter(dict.fromkeys([*names, NO_DEADLOCK, IN_BOUNDS, ASSIGNED_ONCE], 0))
        for finding in self.findings:
            found.update(finding.evaluation.by)
        return dict(found)

    @cached_property
    def stale(self) -> tuple[Reason, ...]:
        """Reasons whose mutants are all caught; of a requirement that may be dropped: if that is caught."""
        return tuple(reason for reason, found in self.claims.items() if found is Claim.STALE)

    @cached_property
    def claims(self) -> Mapping[Reason, Claim]:
        """By reason, what was found out about it; empty if not every mutant of it was to be evaluated."""
        if not (self.whole or self.reasons_alone):
            return {}
        mutants = [finding.mutant for finding in self.findings]
        return {
            reason: claim([self.findings[i].evaluation.fate for i in indices])
            for reason, indices in deciding(self.definition, mutants).items()
        }

    @cached_property
    def unmatched(self) -> tuple[Reason, ...]:
        """Reasons for changes that cannot be made to this definition."""
        if not (self.whole or self.reasons_alone):
            return ()
        return tuple(said.reason for said in self._unknown() if not said.reason.of_part)

    def _unknown(self) -> Iterator[Equivalent]:
        yield from unknown_bodies(self.versions or (self.definition,))
        yield from unknown_steps(self.definition)
        yield from unknown_values(self.definition)
        yield from unknown_joins(self.definition)
        yield from unknown_actions(self.versions or (self.definition,))
        mutants = [*(finding.mutant for finding in self.findings), *self.with_parts]
        yield from unknown_changes(self.definition, mutants)


def hint(finding: Finding, originals: Sequence[Original]) -> str:
    """What to do about a survivor, in a sentence."""
    mutant = finding.mutant
    if mutant.action and all(mutant.action in original.never_fired for original in originals):
        return (
            "the action never happens at these scopes: name one in `scopes(...)` at which it does"
        )
    hints = _REDUNDANT if finding.evaluation.fate is Fate.REDUNDANT else _SURVIVED
    explanation = hints[mutant.kind]
    if gone := finding.evaluation.silenced:
        more = f" and {len(gone) - _MOST_ACTIONS} more" if len(gone) > _MOST_ACTIONS else ""
        explanation += f" (then {', '.join(gone[:_MOST_ACTIONS])}{more} can no longer happen)"
    return explanation


_MOST_ACTIONS = 3  # named in a hint

_NEVER_REFUSES = "it never refuses alone: remove it, or say why it stays"
_NO_STEP = "no reachable step changes: say why, or name a scope that reaches it"
_REDUNDANT = {
    Kind.DROP: _NEVER_REFUSES,
    Kind.WEAKEN: _NEVER_REFUSES,
    Kind.SKIP: "nobody is ever late alone: take a larger scope, or say why",
    Kind.LOSE: "it changes nothing wherever it happens: remove it, or say why it stays",
    Kind.REPLACE: _NO_STEP,
    Kind.SWAP: _NO_STEP,
    Kind.HELPER: _NO_STEP,
    Kind.EDGE: _NO_STEP,
    Kind.DISABLE: "it never happens: remove it, or name a scope at which it does",
    Kind.TIGHTEN: "it refuses nothing that ever happens",
}

_REFUSES = "the action happens where it should not, and no property notices: state what goes wrong"
_SURVIVED = {
    Kind.DROP: _REFUSES,
    Kind.WEAKEN: _REFUSES,
    Kind.SKIP: "one may be late, and no property notices: state what goes wrong",
    Kind.LOSE: "no property depends on it: state what does, or remove it",
    Kind.REPLACE: "no property depends on what is named here: state what does",
    Kind.SWAP: "no property depends on this entry: state what does",
    Kind.HELPER: "steps and properties err alike: let a property say by itself what it requires",
    Kind.EDGE: "no property forbids this step: state what goes wrong",
    Kind.DISABLE: "nothing says that it has to be possible: add an `@accepts`, a `@sometimes` or a liveness property; "
    "if it is a fault, let it spend a `fault_budget`",
    Kind.TIGHTEN: "nothing says that it has to be possible: add an `@accepts`, a `@sometimes` or a liveness property",
}
