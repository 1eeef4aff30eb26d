"""k-induction: what holds for k steps in a row, from any state whatever, holds in the next state too.

Together with a bounded search of the first k - 1 steps this proves a claim in every reachable state.
"""

from __future__ import annotations

from collections.abc import Sequence

from stagewright.checker.symbolic.claims import Claim
from stagewright.checker.symbolic.replay import Path
from stagewright.checker.symbolic.unrolling import Unrolling
from stagewright.checker.symbolic.z3_terms import Answer, Clock, Solver, Term


class InductionStep:
    """The induction step at a growing k: runs of k steps from any state, bad only at their end.

    A simple run is one whose first k states differ from each other. A shortest run to a violation has no state
    twice, so a proof may look at simple runs alone; for a large enough k it then succeeds for every true claim.
    """

    def __init__(self, unrolling: Unrolling, claims: Sequence[Claim], clock: Clock) -> None:
        self._unrolling = unrolling
        self._terms = unrolling.terms
        self._claims = claims
        self._simple = self._terms.boolean("the run is simple")
        self._solver = Solver(self._terms, clock)
        self._known: list[Claim] = []
        self._queries = 0
        self._fixed: list[Term] = []  # what the last query asked, without the helpers
        self._solver.add(unrolling.any_state(0))
        self.k = 0

    def deepen(self) -> None:
        """Go from k to k + 1: one more step, and the claims may be assumed one state later."""
        last = self.k
        for claim in self._claims:
            self._imply(self._before(claim), self._unrolling.holds(claim, last))
        for earlier in range(last):
            self._imply(self._simple, self._unrolling.differ(earlier, last))
        self._solver.add(self._unrolling.step(last), self._unrolling.any_state(last + 1))
        self.k += 1
        for claim in self._known:
            self._imply(self._always(claim), self._end(claim))

    def accept(self, proved: Claim) -> None:
        """From now on the claim is known to hold in every reachable state, and helps to prove the others."""
        self._known.append(proved)
        self._imply(self._always(proved), self._end(proved))
        self._imply(self._always(proved), self._before(proved))

    def _imply(self, a: Term, b: Term) -> None:
        self._solver.add(self._terms.implies(a, b))

    def _before(self, claim: Claim) -> Term:
        """Assumes the claim everywhere but at the end."""
        return self._terms.boolean(self._name_before(claim))

    def _always(self, claim: Claim) -> Term:
        """Assumes the claim everywhere."""
        return self._terms.boolean(self._name_always(claim))

    @staticmethod
    def _name_before(claim: Claim) -> str:
        return f"before: {claim.name}"

    @staticmethod
    def _name_always(claim: Claim) -> str:
        return f"always: {claim.name}"

    def _end(self, claim: Claim) -> Term:
        return self._unrolling.holds(claim, self.k)

    def can_break(
        self, targets: Sequence[Claim], assumed: Sequence[Claim], *, simple: bool
    ) -> Answer:
        """Whether a run of k steps, with `assumed` true before its end, breaks one of the targets there."""
        self._queries += 1
        query = self._terms.boolean(f"query {self._queries}")
        self._imply(query, self._terms.not_(self._terms.and_([self._end(c) for c in targets])))
        self._fixed = [query, self._simple] if simple else [query]
        helpers = [*map(self._always, self._known), *map(self._before, assumed)]
        return self._solver.check([*self._fixed, *helpers])

    def needed(self) -> tuple[list[Claim], list[Claim]]:
        """What the last UNSAT answer of `can_break` rests on: claims assumed before the end, claims known.

        None of them can be left out; the solver's own core may hold more.
        """
        core = self._solver.core()
        before = [c for c in self._claims if self._name_before(c) in core]
        always = [c for c in self._known if self._name_always(c) in core]
        for claim in list(always):
            if self._suffice(before, fewer := [c for c in always if c is not claim]):
                always = fewer
        for claim in list(before):
            if self._suffice(fewer := [c for c in before if c is not claim], always):
                before = fewer
        return before, always

    def _suffice(self, before: Sequence[Claim], always: Sequence[Claim]) -> bool:
        helpers = [*map(self._always, always), *map(self._before, before)]
        return self._solver.check([*self._fixed, *helpers]) is Answer.UNSAT

    def broken(self, targets: Sequence[Claim]) -> list[Claim]:
        """The targets that the run found last breaks."""
        return [c for c in targets if not self._solver.value(self._end(c), None)]

    def path(self) -> Path:
        """The run found last."""
        return Path(*self._unrolling.read(self._solver, self.k))

    def inductive_subset(
        self, claims: Sequence[Claim], *, simple: bool
    ) -> tuple[Answer, list[Claim]]:
        """The largest set of claims that together are k-inductive, by dropping what breaks until none does.

        With UNKNOWN the set is empty: nothing is proved.
        """
        left = list(claims)
        while left:
            answer = self.can_break(left, left, simple=simple)
            if answer is Answer.UNSAT:
                return answer, left
            if answer is Answer.UNKNOWN:
                return answer, []
            broken = self.broken(left)
            assert broken
            left = [c for c in left if c not in broken]
        return Answer.SAT, []
