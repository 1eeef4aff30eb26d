"""One run of an implementation beside its definition: every move is checked as it is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from stagewright.checker.conformance.adapter import (
    REFUSALS,
    AdapterError,
    AdapterFactory,
    Closable,
    usable,
)
from stagewright.checker.conformance.divergence import (
    ConformanceError,
    Difference,
    Divergence,
    Fault,
    Move,
)
from stagewright.checker.conformance.exercised import Exercised
from stagewright.checker.conformance.observed import flat, plain_form
from stagewright.checker.conformance.oracle import Oracle, without_budgets
from stagewright.spec.definition import Requirement
from stagewright.spec.errors import RefusedError
from stagewright.spec.text.suggestions import did_you_mean
from stagewright.spec.text.words import requirement as in_words
from stagewright.spec.values import State
from stagewright.spec.verdict import Step

__tracebackhide__ = True  # pytest shows a failure in the test and the implementation, not here


class Trial:
    """An implementation and the state its definition says it is in.

    Raises (also from every method):
        ConformanceError: the implementation differs; nothing more may be asked of this trial.
        AdapterError: the adapter observes what the definition does not have.
    """

    def __init__(
        self, oracle: Oracle, factory: AdapterFactory, initial: State, exercised: Exercised
    ) -> None:
        self._oracle = oracle
        self._exercised = exercised
        self._states = [initial]
        self._moves: list[Move] = []
        self._diverged = False
        exercised.runs += 1
        try:
            adapter = factory()
        except Exception as error:  # noqa: BLE001 - whatever it raises, the implementation has failed
            self._fail(Fault.FAILED, error=error)
        self._adapter = usable(adapter)
        try:
            self._adapter.reset(initial)
        except Exception as error:  # noqa: BLE001 - see above
            self._fail(Fault.FAILED, error=error)
        self._compare(Fault.DIFFERS)

    @property
    def state(self) -> State:
        """Where the definition says the implementation is."""
        return self._states[-1]

    def make(self, move: Move) -> None:
        """Let a step happen, or try one that must be refused."""
        if move.refused:
            self.refuse(move.step)
        else:
            self.take(move.step)

    def take(self, step: Step) -> None:
        """Let an enabled step happen, and compare."""
        before = self.state
        after = self._oracle.after(step, before)
        self._moves.append(Move(step))
        self._states.append(after)
        try:
            self._adapter.do(step)
        except REFUSALS as refusal:
            required = self._oracle.source.action(step.action).requirements
            self._fail(Fault.REFUSED, step, required, refusal)
        except Exception as error:  # noqa: BLE001 - see above
            self._fail(Fault.FAILED, error=error)
        self._exercised.took(without_budgets(before), step)
        self._compare(Fault.DIFFERS)

    def refuse(self, step: Step) -> None:
        """Try a step that must be refused, and see that it was and that nothing has changed."""
        required = self._oracle.false_requirements(step, self.state)
        assert required, f"{step.label} need not be refused"
        self._moves.append(Move(step, refused=True))
        self._states.append(self.state)
        try:
            self._adapter.do(step)
        except REFUSALS as refusal:
            self._compare(Fault.CHANGED, step, required)
            self._check_reason(step, required, refusal)
        except Exception as error:  # noqa: BLE001 - see above
            self._fail(Fault.FAILED, error=error)
        else:
            self._fail(Fault.ACCEPTED, step, required)
        self._exercised.refused_for(step, (r.name for r in required))

    def close(self) -> None:
        """Release the implementation. What that raises counts only if nothing else was wrong."""
        if not isinstance(self._adapter, Closable):
            return
        try:
            self._adapter.close()
        except Exception as error:  # noqa: BLE001 - see above
            if not self._diverged:
                self._fail(Fault.FAILED, error=error)

    def _compare(
        self, fault: Fault, step: Step | None = None, required: Sequence[Requirement] = ()
    ) -> None:
        try:
            observed = self._adapter.observe()
        except Exception as error:  # noqa: BLE001 - see above
            self._fail(Fault.FAILED, error=error)
        if differences := tuple(self._differences(observed)):
            self._fail(fault, step, required, differences=differences)

    def _differences(self, observed: Mapping[str, object]) -> Iterator[Difference]:
        leaves = self._oracle.leaves(self.state)
        for leaf, value in flat(observed, self._oracle.source, tuple(leaves)):
            if leaf not in leaves:
                raise _unknown_leaf(leaf, list(leaves))
            self._exercised.observed.add(leaf)
            expected, seen = leaves[leaf], plain_form(value)
            if isinstance(expected, bool) != isinstance(seen, bool) or expected != seen:
                yield Difference(leaf, expected, seen)

    def _check_reason(
        self, step: Step, required: Sequence[Requirement], refusal: Exception
    ) -> None:
        """A refusal that names requirements of the definition must not name one that holds."""
        if not isinstance(refusal, RefusedError):
            return
        false = {r.name for r in required}
        written = self._oracle.source.action(
            step.action
        ).guards  # a bound of the check may be named, too
        wrong = [r for r in written if r.name in refusal.requirements and r.name not in false]
        if wrong:
            self._fail(Fault.WRONG_REASON, step, wrong, refusal)

    def _fail(
        self,
        fault: Fault,
        step: Step | None = None,
        required: Sequence[Requirement] = (),
        error: Exception | None = None,
        differences: tuple[Difference, ...] = (),
    ) -> NoReturn:
        self._diverged = True
        values = {} if step is None else self._oracle.values_of(step)
        raise ConformanceError(
            Divergence(
                self._oracle.name,
                fault,
                tuple(self._states),
                tuple(self._moves),
                differences,
                tuple(in_words(r, values) for r in required),
                "" if error is None else f"{type(error).__name__}: {error}".rstrip(": "),
            )
        ) from error


def _unknown_leaf(leaf: str, known: list[str]) -> AdapterError:
    hint = did_you_mean(leaf, known)
    return AdapterError(
        f"the adapter observes `{leaf}`, which the definition does not have",
        help=f"{hint}known: {', '.join(known)}",
    )
