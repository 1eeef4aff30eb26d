"""Which properties the others imply: no step can break one of them and keep all others, whatever an action does.

Such a property catches nothing alone, unless a mutant changes what it means. The solver decides it for any two states in
their bounds, of which the first keeps every invariant, without the actions: so it takes a second where a search for a
mutant, in vain, takes hours. That something is followed by something else is implied where invariants exclude that it is
there and the other is not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from stagewright.checker.symbolic.claims import IN_BOUNDS, Claim, claims_of
from stagewright.checker.symbolic.relation import StepRelation
from stagewright.checker.symbolic.z3_terms import Answer, Clock, OutOfTimeError, Solver, Term
from stagewright.spec.definition import Definition, Property, PropertyKind
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.scope import Scope
from stagewright.spec.terms.conditions_and_numbers import Bool

_KINDS = (PropertyKind.INVARIANT, PropertyKind.STEP)
"""What is accepted depends on what actions require, and a mutant changes that."""


def implied(
    definition: Definition, scope: Scope, names: Sequence[str], seconds: float | None
) -> Mapping[str, tuple[str, ...]]:
    """By property, of those named: the others that imply it, none of which can be left out.

    What is not decided within so many seconds is not among them.
    """
    responses = [
        p for p in definition.properties if p.kind is PropertyKind.LEADS_TO and p.name in names
    ]
    stated = tuple(p for p in definition.properties if p.kind in _KINDS)
    stated += tuple(_at_once(p) for p in responses)
    if not any(p.name in names for p in stated):
        return {}
    model = replace(ground(replace(definition, properties=stated), scope), steps=())
    claims = [claim for claim in claims_of(model) if claim.name != IN_BOUNDS]
    never_assumed = {p.name for p in responses}
    steps = _Steps(StepRelation(model), claims, never_assumed, Clock(seconds))
    found: dict[str, tuple[str, ...]] = {}
    try:
        for claim in claims:
            if claim.name in names and (others := steps.implying(claim)) is not None:
                found[claim.name] = others
    except OutOfTimeError:
        pass
    return found


def _at_once(response: Property) -> Property:
    """What is to follow is there already: more than is promised."""
    assert response.premise is not None
    condition = Bool(response.premise).implies(Bool(response.condition)).node
    return replace(response, kind=PropertyKind.INVARIANT, condition=condition, premise=None)


class _Steps:
    """Pairs of states, on which each claim can be assumed; its literal is its name."""

    def __init__(
        self,
        relation: StepRelation,
        claims: Sequence[Claim],
        never_assumed: Set[str],
        clock: Clock,
    ) -> None:
        self._relation, self._claims = relation, claims
        self._assumed = [claim for claim in claims if claim.name not in never_assumed]
        self._terms = relation.terms
        self._solver = Solver(self._terms, clock)
        self._solver.add(relation.now_in_bounds, relation.next_in_bounds)
        for claim in claims:
            self._assume(claim.name, self._after(claim))
            if not claim.of_step:
                self._assume(_before(claim), self._template(claim))

    def _assume(self, literal: str, term: Term) -> None:
        self._solver.add(self._terms.implies(self._terms.boolean(literal), term))

    def _template(self, claim: Claim) -> Term:
        encode = self._relation.encoding.condition
        return self._terms.and_([encode(condition) for condition in claim.conditions])

    def _after(self, claim: Claim) -> Term:
        """The claim of the second state, or of the step."""
        now, new = self._relation.now.cells, self._relation.next.cells
        term = self._template(claim)
        return term if claim.of_step else self._terms.rename(term, now, new)

    def implying(self, target: Claim) -> tuple[str, ...] | None:
        """The other claims without which the target could be broken; None if it can be."""
        query = f"broken: {target.name}"
        self._assume(query, self._terms.not_(self._after(target)))
        before = [_before(claim) for claim in self._assumed if not claim.of_step]
        others = [claim.name for claim in self._assumed if claim is not target]
        if not self._refuted(query, [*before, *others]):
            return None
        core = self._solver.core()
        kept = [name for name in [*before, *others] if name in core]
        for name in list(kept):
            if self._refuted(query, fewer := [other for other in kept if other != name]):
                kept = fewer
        named = {name.removeprefix(_BEFORE) for name in kept} - {target.name}
        return tuple(claim.name for claim in self._claims if claim.name in named)

    def _refuted(self, query: str, assumed: Sequence[str]) -> bool:
        literals = [self._terms.boolean(name) for name in (query, *assumed)]
        return self._solver.check(literals) is Answer.UNSAT


_BEFORE = "before: "


def _before(claim: Claim) -> str:
    return f"{_BEFORE}{claim.name}"
