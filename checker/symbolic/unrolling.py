"""Runs of bounded length as formulas: the step relation and the claims, renamed to each time step.

Everything is built once over the frames `now` and `next`; Z3 itself renames it to the frames of a run.
"""

from __future__ import annotations

from collections.abc import Sequence

from stagewright.checker.symbolic.claims import Claim
from stagewright.checker.symbolic.encoding import Frame
from stagewright.checker.symbolic.relation import State, StepRelation
from stagewright.checker.symbolic.z3_terms import Solver, Term
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.ground_eval import cells_of, conjuncts
from stagewright.spec.grounding.initial import Independent, Satisfying


class Unrolling:
    """The frames of one family of runs; `relation.terms` makes its terms."""

    def __init__(self, model: GroundModel, claims: Sequence[Claim]) -> None:
        self.model = model
        self.relation = StepRelation(model)
        self.terms = self.relation.terms
        self._frames: list[Frame] = []
        self._taken: list[Term] = []
        self._holds = {claim.name: self._template(claim) for claim in claims}
        self._steps: dict[int, Term] = {}
        self._holds_at: dict[tuple[str, int], Term] = {}
        self._initial = self._initial_template()
        self._constants = self._constants_template()

    def _template(self, claim: Claim) -> Term:
        encode = self.relation.encoding.condition
        return self.terms.and_(list(map(encode, claim.conditions)))

    def _initial_template(self) -> Term:
        if self.model.initial_condition is not None:
            return self.relation.encoding.condition(self.model.initial_condition)
        return self._one_of(range(len(self.model.cells)))

    def _constants_template(self) -> Term:
        """Cells that no step writes keep an initial valuation: an invariant that is free to assume.

        Where the initial states are not listed, it is what their condition says of such cells alone.
        """
        written = {cell for step in self.model.steps for cell in step.updates}
        kept = [c.index for c in self.model.cells if c.index not in written]
        initial, condition = self.model.initial, self.model.initial_condition
        listed = not isinstance(initial, Independent | Satisfying) or initial.listed
        if listed or condition is None:
            return self._one_of(kept)
        about = [part for part in conjuncts(condition) if cells_of(part) <= set(kept)]
        return self.terms.and_([self.relation.encoding.condition(part) for part in about])

    def _one_of(self, cells: Sequence[int]) -> Term:
        """The given cells have the values of some initial state."""
        now, same = self.relation.now, self.relation.cell_is
        values = sorted({tuple(state[c] for c in cells) for state in self.model.initial})
        options = [
            [same(now.cells[c], now.shapes[c], v) for c, v in zip(cells, option, strict=True)]
            for option in values
        ]
        return self.terms.or_([self.terms.and_(option) for option in options])

    def frame(self, time: int) -> Frame:
        """The variables of the state after so many steps."""
        while len(self._frames) <= time:
            label = str(len(self._frames))
            self._frames.append(Frame(self.terms, self.model, label))
            self._taken.append(self.terms.bits(f"step@{label}", self.relation.selector_shape))
        return self._frames[time]

    def _at(self, template: Term, time: int, *, two: bool) -> Term:
        """The template with `now` at `time`; with `two` also `next` at `time + 1`."""
        old, new = list(self.relation.now.cells), list(self.frame(time).cells)
        if two:
            old += [*self.relation.next.cells, self.relation.taken]
            new += [*self.frame(time + 1).cells, self._taken[time]]
        return self.terms.rename(template, old, new)

    def initial(self) -> Term:
        """The state at time 0 is an initial one."""
        return self._at(self._initial, 0, two=False)

    def any_state(self, time: int) -> Term:
        """Cells within their bounds, and what no step writes as some initial state has it."""
        template = self.terms.and_([self.relation.now_in_bounds, self._constants])
        return self._at(template, time, two=False)

    def step(self, time: int) -> Term:
        """A step leads from the frame at `time` to the next one."""
        if time not in self._steps:
            self._steps[time] = self._at(self.relation.formula, time, two=True)
        return self._steps[time]

    def holds(self, claim: Claim, end: int) -> Term:
        """The claim in the state at `end`; a claim about steps: for the step that ends there."""
        key = (claim.name, end)
        if key not in self._holds_at:
            time = end - 1 if claim.of_step else end
            template = self._holds[claim.name] if time >= 0 else self.terms.true
            self._holds_at[key] = self._at(template, max(time, 0), two=claim.of_step)
        return self._holds_at[key]

    def differ(self, a: int, b: int) -> Term:
        """The states at two times are not the same."""
        pairs = zip(self.frame(a).cells, self.frame(b).cells, strict=True)
        return self.terms.not_(self.terms.and_([self.terms.equal(x, y) for x, y in pairs]))

    def read(self, solver: Solver, last: int) -> tuple[list[State], list[int]]:
        """The states up to time `last` and the indices of the steps between them, from the solver's model."""
        states = [self.frame(t).read(solver) for t in range(last + 1)]
        shape = self.relation.selector_shape
        return states, [solver.value(self._taken[t], shape) for t in range(last)]
