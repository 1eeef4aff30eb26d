"""One run of an implementation beside its definition: what is compared, and what each fault is called."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import cast

import pytest
from tests.checker.conformance.hand_written import HandWrittenTablet
from tests.checker.conformance.machines import (
    Counter,
    CounterAdapter,
    Mailbox,
    Node,
    Votes,
    VotesAdapter,
)

from stagewright.checker.conformance import (
    AdapterError,
    ConformanceError,
    Divergence,
    Fault,
    RefusedEvent,
)
from stagewright.checker.conformance.adapter import Adapter
from stagewright.checker.conformance.exercised import Exercised
from stagewright.checker.conformance.oracle import Oracle
from stagewright.checker.conformance.play import look_at_adapter
from stagewright.checker.conformance.trial import Trial
from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.spec import RefusedError, define, scope_of
from stagewright.spec.values import FrozenMap, State, Value, show
from stagewright.spec.verdict import Step

UP, RESET = Step("up"), Step("reset")


def trial_of(
    factory: Callable[[], Adapter], exercised: Exercised | None = None, **budgets: int | None
) -> Trial:
    definition = define(Counter)
    oracle = Oracle(definition, scope_of(definition, budgets=budgets))
    return Trial(oracle, factory, oracle.initial_states()[0], exercised or Exercised())


def divergence(run: Callable[[], object]) -> Divergence:
    with pytest.raises(ConformanceError) as caught:
        run()
    return caught.value.divergence


def test_right_implementation_follows() -> None:
    exercised = Exercised()
    trial = trial_of(CounterAdapter, exercised)
    trial.refuse(RESET)
    for _ in range(3):
        trial.take(UP)
    trial.refuse(UP)
    trial.take(RESET)
    assert trial.state["count"] == 0
    assert exercised.fired == {"up": 3, "reset": 1}
    assert exercised.alone == {("reset", "not empty"): 1, ("up", "not full"): 1}
    assert exercised.observed == {"count"}


def test_step_that_only_a_budget_forbids_need_not_be_refused() -> None:
    trial = trial_of(CounterAdapter)
    oracle = trial._oracle
    trial.take(UP)
    trial.take(RESET)
    trial.take(UP)
    allowed = oracle.allowed(trial.state)
    assert [s.action for s in allowed.enabled] == ["up"]
    assert allowed.refused == ()


class LosesOne(CounterAdapter):
    """Cannot count beyond one."""

    def do(self, step: Step) -> None:
        super().do(step)
        self.count = min(self.count, 1)


class RefusesSecond(CounterAdapter):
    """Refuses to count beyond one."""

    def do(self, step: Step) -> None:
        if self.count == 1:
            raise RefusedEvent("enough")
        super().do(step)


class AcceptsReset(CounterAdapter):
    """Takes any reset for one that changes nothing."""

    def do(self, step: Step) -> None:
        if step.action == "up":
            super().do(step)


class ChangesAnyway(CounterAdapter):
    """Refuses a reset, after it has changed."""

    def do(self, step: Step) -> None:
        if step.action == "reset" and self.count == 0:
            self.count = 2
        super().do(step) if step.action == "up" else self.refuse()

    def refuse(self) -> None:
        raise RefusedEvent


class NamesTheWrong(CounterAdapter):
    """Refuses everything, for a reason of its own."""

    def do(self, step: Step) -> None:
        raise RefusedError("no", ("closed on Sundays",))


class Breaks(CounterAdapter):
    """Raises an error of its own."""

    def do(self, step: Step) -> None:
        raise ZeroDivisionError("one too many")


class CannotReset(CounterAdapter):
    """Cannot even begin."""

    def reset(self, initial: State) -> None:
        raise OSError("no such tablet")


class CannotClose(CounterAdapter):
    """Cannot end."""

    def close(self) -> None:
        raise OSError("still busy")


def test_lost_effect_differs() -> None:
    trial = trial_of(LosesOne)
    trial.take(UP)
    found = divergence(lambda: trial.take(UP))
    assert found.fault is Fault.DIFFERS
    assert [str(d) for d in found.differences] == ["count: expected 2, observed 1"]


def test_refused_legal_step_is_reported_with_the_requirements_that_hold() -> None:
    trial = trial_of(RefusesSecond)
    trial.take(UP)
    found = divergence(lambda: trial.take(UP))
    assert found.fault is Fault.REFUSED
    assert found.error == "RefusedEvent: enough"
    assert found.requirements == ("not full: count < 3",)


def test_accepted_illegal_step_is_reported_with_the_requirement_that_should_have_refused() -> None:
    found = divergence(lambda: trial_of(AcceptsReset).refuse(RESET))
    assert found.fault is Fault.ACCEPTED
    assert found.requirements == ("not empty: count > 0",)
    assert "    1  reset  must be refused" in found.story()


def test_change_by_a_refused_step_is_found() -> None:
    found = divergence(lambda: trial_of(ChangesAnyway).refuse(RESET))
    assert found.fault is Fault.CHANGED
    assert [str(d) for d in found.differences] == ["count: expected 0, observed 2"]


class NamesStage(HandWrittenTablet):
    """Refuses with a name of a requirement: always the stage's."""

    def do(self, step: Step) -> None:
        try:
            super().do(step)
        except RefusedEvent:
            raise RefusedError("no", ("stage is none",)) from None


def test_refusal_that_names_a_requirement_which_holds_is_found() -> None:
    definition = define(TabletMigration, "seed")
    oracle = Oracle(definition, scope_of(definition))
    trial = Trial(oracle, NamesStage, oracle.initial_states()[0], Exercised())
    (repair,) = [s for s in oracle.steps if s.label == "start(repair)"]
    found = divergence(lambda: trial.refuse(repair))
    assert found.fault is Fault.WRONG_REASON
    assert found.requirements == ("stage is none",)


def test_refusal_may_name_a_reason_that_the_definition_does_not_know() -> None:
    trial = trial_of(NamesTheWrong)
    trial.refuse(RESET)


def test_other_errors_are_failures_of_the_implementation() -> None:
    found = divergence(lambda: trial_of(Breaks).take(UP))
    assert found.fault is Fault.FAILED
    assert found.error == "ZeroDivisionError: one too many"
    refused = divergence(lambda: trial_of(Breaks).refuse(RESET))
    assert refused.fault is Fault.FAILED


def test_failing_reset_is_found_before_any_step() -> None:
    found = divergence(lambda: trial_of(CannotReset))
    assert found.headline == "Counter: at reset, the implementation fails"


def test_failing_close_counts_unless_something_else_was_wrong() -> None:
    found = divergence(trial_of(CannotClose).close)
    assert found.error == "OSError: still busy"
    broken = trial_of(CannotClose)
    broken._diverged = True
    broken.close()


def test_unknown_leaf_is_an_error_of_the_adapter() -> None:
    class Misspelt(CounterAdapter):
        def observe(self) -> Mapping[str, object]:
            return {"cuont": 0}

    with pytest.raises(AdapterError, match=r"`cuont`(?s:.*)did you mean `count`"):
        trial_of(Misspelt)


def test_what_is_no_adapter_is_named() -> None:
    class Half:
        def reset(self, initial: State) -> None:
            """Do nothing."""

    with pytest.raises(AdapterError, match="it has no do, observe"):
        trial_of(Half)  # type: ignore[arg-type]


def test_number_is_not_taken_for_a_truth_value() -> None:
    class Booleans(CounterAdapter):
        def observe(self) -> Mapping[str, object]:
            return {"count": bool(self.count)}

    found = divergence(lambda: trial_of(Booleans))
    assert [str(d) for d in found.differences] == ["count: expected 0, observed no"]


def test_definitions_own_values_and_whole_maps_may_be_observed() -> None:
    definition = define(Votes)
    oracle = Oracle(definition, scope_of(definition))
    exercised = Exercised()
    for start in oracle.initial_states():
        trial = Trial(oracle, VotesAdapter, start, exercised)
        for step in oracle.allowed(start).enabled:
            trial.take(step)
            trial.refuse(step)
    assert exercised.observed == {"leads[node0]", "leads[node1]", "voted"}


def test_maps_may_be_observed_by_the_names_of_their_members() -> None:
    class Named(VotesAdapter):
        def observe(self) -> Mapping[str, object]:
            leads = cast("Mapping[Value, bool]", self.leads)
            return {"leads": {show(node): leads[node] for node in leads}}

    definition = define(Votes)
    oracle = Oracle(definition, scope_of(definition))
    exercised = Exercised()
    [start, *_] = oracle.initial_states()
    Trial(oracle, Named, start, exercised)
    assert exercised.observed == {"leads[node0]", "leads[node1]"}


def mailbox(*steps: Step) -> tuple[Oracle, State]:
    oracle = Oracle(define(Mailbox), scope_of(define(Mailbox)))
    [state] = oracle.initial_states()
    for step in steps:
        state = oracle.after(step, state)
    return oracle, state


def seen_in(state: State, oracle: Oracle, **observed: object) -> tuple[list[str], set[str]]:
    """What differs if this is observed in a state, and which leaves it is about."""

    class Fixed:
        def reset(self, initial: State) -> None: ...
        def do(self, step: Step) -> None: ...
        def observe(self) -> Mapping[str, object]:
            return observed

    exercised = Exercised()
    try:
        Trial(oracle, Fixed, state, exercised)
    except ConformanceError as error:
        return [str(d) for d in error.divergence.differences], exercised.observed
    return [], exercised.observed


LETTER = {"to": "node1", "urgent": True}
SAME = FrozenMap[Value, Value]({"to": Node("node1"), "urgent": True})
SENT = FrozenMap[str, Value]({"m": SAME})
WRITTEN, CARRIED = Step("write", SENT), Step("carry", SENT)


def test_a_queue_is_observed_whole() -> None:
    oracle, state = mailbox(WRITTEN, CARRIED)
    parts = {"tray.length", "tray[0].to", "tray[0].urgent"}
    assert seen_in(state, oracle, tray=deque([LETTER])) == ([], parts)
    other, _ = seen_in(state, oracle, tray=[{**LETTER, "to": "node0"}])
    assert other == ["tray[0].to: expected node1, observed node0"]


@pytest.mark.parametrize("length", [0, 2])
def test_a_queue_that_is_too_short_or_too_long_differs_in_length(length: int) -> None:
    oracle, state = mailbox(WRITTEN, CARRIED)
    differ, _ = seen_in(state, oracle, tray=[LETTER] * length)
    assert differ == [f"tray.length: expected 1, observed {length}"]


def test_a_bag_is_observed_as_the_list_of_its_messages() -> None:
    oracle, state = mailbox(WRITTEN, WRITTEN)
    assert seen_in(state, oracle, post=[LETTER, dict(reversed(LETTER.items()))])[0] == []
    less, observed = seen_in(state, oracle, post=[LETTER])
    assert less == ["post[{to: node1, urgent: yes}]: expected 2, observed 1"]
    assert len(observed) == 4  # also of the letters that are not there
    with pytest.raises(AdapterError, match="urgent: maybe"):
        seen_in(state, oracle, post=[{"to": "node1", "urgent": "maybe"}])


def test_an_adapter_is_looked_at_before_anything_is_planned_for_it() -> None:
    class Misspelt(CounterAdapter):
        def observe(self) -> Mapping[str, object]:
            return {"cuont": self.count}

    class Broken(CounterAdapter):
        def reset(self, initial: State) -> None:
            raise OSError("disk full")

    oracle = Oracle(define(Counter), scope_of(define(Counter)))
    [start] = oracle.initial_states()
    with pytest.raises(AdapterError, match="cuont"):
        look_at_adapter(oracle, Misspelt, start)
    look_at_adapter(oracle, Broken, start)  # that is a finding of the suites
