"""Explains a violation: what refuses the event, what led to it, and what would have had to happen.

Sets of possible states come from the fast replay; why a step is refused comes from the reference
interpreter. What is found about an event in a set is kept: the same mistake is explained once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stagewright.spec.interpreter import Interpreter
from stagewright.spec.values import State
from stagewright.traces.automaton.automaton_cache import beside
from stagewright.traces.automaton.evaluator import Evaluator
from stagewright.traces.automaton.possible_states import PossibleStates
from stagewright.traces.automaton.subset_automaton import (
    DEAD,
    LIVE,
    START,
    UNKNOWN,
    Determinised,
    SpentError,
)
from stagewright.traces.events.format_event import call, changes, label, summary
from stagewright.traces.events.symbols import Symbol, parse_symbol
from stagewright.traces.explain import failed_guard
from stagewright.traces.explain.excerpt import excerpt
from stagewright.traces.explain.explanation import AccountingError, Explanation, GoodStep
from stagewright.traces.explain.nearest_run import nearest
from stagewright.traces.replay.exact_verdicts import Cause, Finding

_STATES_BESIDE = 100_000  # beyond the budget of one event
_STATES_MAX = 200  # possible states that are looked at; one is enough where all is observed
DISTINCT_MAX = (
    200  # different mistakes; of further ones the event is named, and not why it is refused
)
STEPS_MAX = 24  # of the events before a violation; reports in text show fewer


class Explainer:
    """Explains the violations of one machine."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        most = evaluator.automaton.max_states + _STATES_BESIDE
        self._running = beside(evaluator.automaton, "explanations", most)
        self._interpreter = Interpreter(evaluator.definition, evaluator.scope, bounded=False)
        self._parameters = {
            action.name: tuple(p.name for p in action.params)
            for action in evaluator.definition.actions
        }
        self._known: dict[tuple[int, str], Explanation] = {}
        self._summaries: dict[int, tuple[tuple[str, str], ...]] = {}

    def _label(self, symbol: Symbol) -> str:
        """An event in a few words, with its arguments in the order of the definition."""
        return label(symbol, self._parameters.get(symbol.action or "", ()))

    @property
    def running(self) -> Determinised:
        """What replays events here."""
        return self._running

    def foreign(self, symbol: str) -> str | None:
        """Why an event is none of this machine's; None if it is one."""
        constraint = self._running.constraint(symbol)
        return constraint if isinstance(constraint, str) else None

    def explain(self, finding: Finding, *, whole: bool = True) -> Explanation | None:
        """Why no run explains the last of the finding's events; None if they were too many to keep.

        `whole`: with the events before it, and with what files of it are made of.

        Raises:
            AccountingError: the reference interpreter does explain it: the fast replay is wrong.
        """
        if not finding.symbols:
            return None
        try:
            return self._explained(finding, whole=whole)
        except SpentError:
            return Explanation(self._label(parse_symbol(finding.symbols[-1])))

    def _explained(self, finding: Finding, *, whole: bool) -> Explanation:
        *before, last = finding.symbols
        cut = len(finding.symbols) <= finding.sequence
        numbers = self._follow(before, self._cut(finding) if cut else START)
        if numbers is None:
            return Explanation(self._label(parse_symbol(last)))
        if cut and finding.before is not None:
            numbers[-1] = self._number_of(finding.before)
        foreign = self.foreign(last) is not None  # another candidate understands it
        refused = foreign or self._running.advance(numbers[-1], last) == DEAD
        if finding.cause is Cause.STEP and not refused:
            # what refuses it lies before the cut
            return Explanation(self._label(parse_symbol(last)))
        if (
            not whole
            and len(self._known) >= DISTINCT_MAX
            and (numbers[-1], last) not in self._known
        ):
            return Explanation(self._label(parse_symbol(last)))
        explanation = self._core(finding, numbers[-1], last)
        if not whole:
            return explanation
        return replace(
            explanation,
            steps=tuple(self._good_steps(finding, numbers)),
            window=None if foreign else excerpt(self._evaluator, self._running, finding, numbers),
        )

    def _cut(self, finding: Finding) -> int:
        """The set before the first of the symbols where those before it were left out."""
        if finding.before is not None and len(finding.symbols) == 1:
            return self._number_of(finding.before)
        return self._running.anywhere()

    def _number_of(self, possible: PossibleStates) -> int:
        """The number here of a set that was found elsewhere."""
        return self._running.number_of(possible.states) if possible.number < 0 else possible.number

    def _follow(self, symbols: Sequence[str], number: int) -> list[int] | None:
        """The set before the first symbol and the set after each; None where they cannot be followed."""
        numbers = [number]
        for symbol in symbols:
            numbers.append(self._running.advance(numbers[-1], symbol))
        return None if numbers[-1] <= UNKNOWN else numbers

    def _core(self, finding: Finding, number: int, last: str) -> Explanation:
        if (number, last) not in self._known:
            self._known[number, last] = self._refused(finding, number, last)
        return self._known[number, last]

    def _refused(self, finding: Finding, number: int, last: str) -> Explanation:
        evaluator, running, symbol = self._evaluator, self._running, parse_symbol(last)
        if finding.cause is not Cause.STEP:
            return Explanation(self._label(symbol))
        possible = self._states(running.sets[number])
        constraint = running.constraint(last)
        if isinstance(constraint, str):
            return Explanation(
                self._label(symbol), failed=((constraint, ""),), state=summary(possible)
            )
        reached = running.before_observation(number, constraint)
        after = self._states(sorted(reached))
        hidden = evaluator.automaton.recording.hidden.exist
        if (
            number >= LIVE
            and not hidden
            and failed_guard.explains(self._interpreter, possible, symbol)
        ):
            raise AccountingError(f"{finding.key}: the interpreter explains {self._label(symbol)}")
        differing = failed_guard.differing(after, symbol.observed)
        return Explanation(
            self._label(symbol),
            failed=() if after else failed_guard.failed(self._interpreter, possible, symbol),
            expected=tuple((name, values) for name, (values, _) in differing.items()),
            observed=tuple((name, value) for name, (_, value) in differing.items()),
            enabled=self._enabled(running.sets[number]),
            state=summary(possible),
            states=len(running.sets[number]),
            nearest=nearest(running, number, constraint, evaluator.model.decode),
        )

    def _good_steps(self, finding: Finding, numbers: Sequence[int]) -> list[GoodStep]:
        steps: list[GoodStep] = []
        for position in range(max(0, len(numbers) - 1 - STEPS_MAX), len(numbers) - 1):
            old, new = self._summary(numbers[position]), self._summary(numbers[position + 1])
            steps.append(
                GoodStep(
                    finding.sequence - len(numbers) + 1 + position,
                    self._label(parse_symbol(finding.symbols[position])),
                    changes(old, new),
                    new,
                    len(self._running.sets[numbers[position + 1]]),
                )
            )
        return steps

    def _summary(self, number: int) -> tuple[tuple[str, str], ...]:
        if number not in self._summaries:
            self._summaries[number] = summary(self._states(self._running.sets[number]))
        return self._summaries[number]

    def _states(self, numbers: Sequence[int]) -> list[State]:
        table, decode = self._running.states, self._evaluator.model.decode
        return [decode(table[s]) for s in numbers[:_STATES_MAX]]

    def _enabled(self, numbers: Sequence[int]) -> tuple[str, ...]:
        """The steps that could have happened instead, in the order of the definition."""
        steps = self._running.source.program.steps
        try:
            found = {i for s in numbers[:_STATES_MAX] for i, _ in self._running.tried_from(s)}
        except SpentError:
            return ()
        return tuple(
            call(steps[i].action, (v for _, v in steps[i].arguments)) for i in sorted(found)
        )
