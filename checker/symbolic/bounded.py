"""Bounded search: every run of at most so many steps at once, shortest violations first."""

from __future__ import annotations

from collections.abc import Sequence

from stagewright.checker.symbolic.claims import Claim
from stagewright.checker.symbolic.replay import Path
from stagewright.checker.symbolic.unrolling import Unrolling
from stagewright.checker.symbolic.z3_terms import Answer, Clock, Solver


class BoundedSearch:
    """Searches the real runs depth by depth. `depth` is the last one asked about, -1 at first.

    `exhausted`: no run has as many as `depth` steps, so that what held so far holds for ever.
    """

    def __init__(self, unrolling: Unrolling, clock: Clock) -> None:
        self._unrolling = unrolling
        self._solver = Solver(unrolling.terms, clock)
        # a solver of its own: it would derail the other
        self._lengths = Solver(unrolling.terms, clock)
        for solver in (self._solver, self._lengths):
            solver.add(unrolling.initial(), unrolling.any_state(0))
        self.depth = -1
        self.exhausted = False

    def deepen(self) -> None:
        """Go one step deeper, and see whether any run is that long."""
        self.depth += 1
        if self.depth:
            for solver in (self._solver, self._lengths):
                solver.add(self._unrolling.step(self.depth - 1))
        self.exhausted = self._lengths.check() is Answer.UNSAT

    def violations(self, claims: Sequence[Claim]) -> tuple[Answer, list[tuple[Claim, Path]]]:
        """The claims broken at exactly this depth, each with a run; UNSAT: there are no more.

        UNKNOWN: the solver gave up, and some of the claims may be broken here all the same.
        """
        unrolling, terms, found = self._unrolling, self._unrolling.terms, list[tuple[Claim, Path]]()
        left = [c for c in claims if not (c.of_step and self.depth == 0)]
        while left:
            holds = {c.name: unrolling.holds(c, self.depth) for c in left}
            self._solver.push()
            self._solver.add(terms.not_(terms.and_(list(holds.values()))))
            answer = self._solver.check()
            path = Path(*unrolling.read(self._solver, self.depth)) if answer is Answer.SAT else None
            broken = [c for c in left if path and not self._solver.value(holds[c.name], None)]
            self._solver.pop()
            if path is None:
                if answer is Answer.UNSAT:  # remember it: the deeper queries become easier
                    self._solver.add(*holds.values())
                return answer, found
            assert broken
            found += [(c, path) for c in broken]
            left = [c for c in left if c not in broken]
        return Answer.UNSAT, found
