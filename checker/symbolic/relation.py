"""The one-step relation of a ground model: an old state, the index of the step taken, a new state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stagewright.checker.symbolic.encoding import Encoding, Frame, domain
from stagewright.checker.symbolic.z3_terms import Answer, Clock, Shape, Solver, Term, Terms
from stagewright.spec.grounding.ground import GroundModel

State = tuple[int, ...]
Transition = tuple[State, int, State]


class StepRelation:
    """Terms over the frames `now` and `next` and the selector `taken`, which names the step by its index."""

    def __init__(self, model: GroundModel, terms: Terms | None = None) -> None:
        self.model = model
        self.terms = terms or Terms()
        self.now = Frame(self.terms, model, "now")
        self.next = Frame(self.terms, model, "next")
        self.encoding = Encoding(self.terms, self.now, self.next)
        self.selector_shape = Shape.of(0, max(1, len(model.steps) - 1))
        self.taken = self.terms.bits("step@now", self.selector_shape)
        in_bounds = domain(self.terms, model, self.now)
        formed = model.wellformed or model.builder.true
        self.now_in_bounds = self.terms.and_([in_bounds, self.encoding.condition(formed)])
        self.next_in_bounds = domain(self.terms, model, self.next)
        self.formula = self.terms.and_(self._conjuncts())

    def is_taken(self, index: int) -> Term:
        """Whether the step taken is the one with this index."""
        return self.terms.equal(self.taken, self.terms.number(index, self.selector_shape))

    def _conjuncts(self) -> list[Term]:
        """Each step's guard and updates; each cell's frame condition; and that some step is taken.

        A step that overflows has no new state here: the new state is within its bounds.
        """
        terms, cells, builder = self.terms, range(len(self.model.cells)), self.model.builder
        taken = [self.is_taken(step.index) for step in self.model.steps]
        parts = [terms.or_(taken), self.now_in_bounds, self.next_in_bounds]
        writers: dict[int, list[Term]] = {cell: [] for cell in cells}
        for chosen, step in zip(taken, self.model.steps, strict=True):
            meaning = [self.encoding.condition(step.guard)]
            for cell, value in sorted(step.updates.items()):
                writers[cell].append(chosen)
                new = builder.cell(cell, new=True)
                meaning.append(self.encoding.same(new, value))
            parts.append(terms.implies(chosen, terms.and_(meaning)))
        for cell in cells:
            kept = terms.equal(self.next.cells[cell], self.now.cells[cell])
            parts.append(terms.or_([*writers[cell], kept]))
        return parts

    def is_state(self, frame: Frame, state: Sequence[int]) -> Term:
        """Whether a frame is exactly this state."""
        return self.terms.and_(
            [
                self.cell_is(term, shape, value)
                for term, shape, value in zip(frame.cells, frame.shapes, state, strict=True)
            ]
        )

    def cell_is(self, term: Term, shape: Shape | None, value: int) -> Term:
        """Whether a cell of a frame has this value."""
        if shape is None:
            return term if value else self.terms.not_(term)
        return self.terms.equal(term, self.terms.number(value, shape))

    def successors(self, state: State) -> set[tuple[int, State]]:
        """Every (step index, new state) that the solver finds for an old state, by exhausting its models."""
        solver = Solver(self.terms, Clock())
        solver.add(self.formula, self.is_state(self.now, state))
        found: set[tuple[int, State]] = set()
        while (answer := solver.check()) is Answer.SAT:
            index = solver.value(self.taken, self.selector_shape)
            new = self.next.read(solver)
            assert (index, new) not in found
            found.add((index, new))
            again = [self.is_taken(index), self.is_state(self.next, new)]
            solver.add(self.terms.not_(self.terms.and_(again)))
        assert answer is Answer.UNSAT, "without limits a finite query is always answered"
        return found

    def difference(
        self, states: Iterable[State], expected: Iterable[Transition]
    ) -> Transition | None:
        """A transition from one of the states that only the relation, or only `expected`, has.

        None when both agree on every one of them. Two queries decide it however many states there are, which
        makes this the way to compare whole machines.
        """
        terms = self.terms
        old = {state: self.is_state(self.now, state) for state in states}
        edges = [(before, index, after) for before, index, after in expected if before in old]
        new = {state: self.is_state(self.next, state) for state in {after for *_, after in edges}}
        listed = terms.or_([terms.and_([old[b], self.is_taken(i), new[a]]) for b, i, a in edges])
        among = terms.or_(list(old.values()))
        for one, other in ((self.formula, listed), (listed, self.formula)):
            solver = Solver(terms, Clock())
            solver.add(among, one, terms.not_(other))
            if (answer := solver.check()) is Answer.SAT:
                index = solver.value(self.taken, self.selector_shape)
                return self.now.read(solver), index, self.next.read(solver)
            assert answer is Answer.UNSAT, "without limits a finite query is always answered"
        return None


_latest: list[
    StepRelation
] = []  # the relation built last, so that asking state after state builds it once


def successors_by_z3(model: GroundModel, state: State) -> set[tuple[int, State]]:
    """The successors of a state as Z3 sees them: (index of the ground step, new state)."""
    if not _latest or _latest[0].model is not model:
        _latest[:] = [StepRelation(model)]
    return _latest[0].successors(state)
