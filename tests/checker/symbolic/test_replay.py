"""Every run that is reported happens; a run that does not is an error, never a verdict."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stagewright.checker.symbolic.claims import Claim, claims_of
from stagewright.checker.symbolic.replay import Path, Replay, ReplayError
from stagewright.spec import DomainError, scope_of
from stagewright.spec.definition import Definition, PropertyKind
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.verdict import Outcome, PropertyVerdict, Run

Load = Callable[[str], Definition]
Prove = Callable[..., dict[str, PropertyVerdict]]
ALL = ["Handover", "HastyHandover", "TwoRings", "Counting", "Pacing", "Steps", "Mixture"]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("max_k", [1, 3])
def test_every_run_happens_on_the_interpreter_and_ends_in_the_breach(
    name: str, max_k: int, machine: Load, verdicts: Prove
) -> None:
    definition = machine(name)
    interpreter = Interpreter(definition, scope_of(definition))
    shown = [v for v in verdicts(name, max_k=max_k, deadlock=True).values() if v.run is not None]
    assert shown
    for verdict in shown:
        run = verdict.run
        assert run is not None
        if verdict.outcome is Outcome.VIOLATED:
            assert run.states[0] in list(interpreter.initial_states())
        else:
            assert len(run.steps) == max_k
            assert all(not breaks(interpreter, verdict, run, end) for end in range(max_k))
        for old, step, new in zip(run.states, run.steps, run.states[1:], strict=False):
            assert interpreter.take(step, old) == new
        assert breaks(interpreter, verdict, run, len(run.steps))


def breaks(interpreter: Interpreter, verdict: PropertyVerdict, run: Run, end: int) -> bool:
    """Whether the promise, for the values the verdict names, is broken at this point of the run."""
    state = run.states[end]
    if verdict.name == "assigned values stay in bounds":
        with pytest.raises(DomainError):
            list(interpreter.successors(state))
        return True
    if verdict.name == "no deadlock":
        return not list(interpreter.successors(state)) and not interpreter.is_final(state)
    prop = interpreter.definition.property(verdict.name)
    if prop.kind is PropertyKind.STEP:
        return end > 0 and not interpreter.holds(prop, run.states[end - 1], state)[0]
    values = {p: verdict.arguments[p.name] for p in prop.params}
    if end < len(run.steps):
        return not interpreter.holds(prop, state)[0]
    return not interpreter.evaluate(prop.condition, state, None, values)


Setting = tuple[Replay, Claim, GroundModel]


@pytest.fixture
def rings(machine: Load) -> Setting:
    """`never_five` of the two rings: `spot` counts 0 1 2 0, and elsewhere 3 4 5."""
    definition = machine("TwoRings")
    model = ground(definition, scope_of(definition))
    (claim,) = claims_of(model, frozenset({"never_five"}))
    return Replay(definition, model), claim, model


AROUND, HOME, AROUND_ELSEWHERE, STAY_ELSEWHERE = range(4)


def test_a_true_run_is_confirmed(rings: Setting) -> None:
    replay, claim, _ = rings
    breach = replay.confirm(claim, Path([(4,), (5,)], [AROUND_ELSEWHERE]), initial=False)
    assert [state["spot"] for state in breach.run.states] == [4, 5]


@pytest.mark.parametrize(
    ("path", "initial", "why"),
    [
        (Path([(4,), (5,)], [AROUND_ELSEWHERE]), True, "not initial"),
        (Path([(4,), (5,)], [AROUND]), False, "cannot happen"),
        (Path([(3,), (5,)], [AROUND_ELSEWHERE]), False, "does not lead"),
        (Path([(4,), (6,)], [AROUND_ELSEWHERE]), False, "the value 6"),
        (Path([(0,), (1,)], [AROUND]), True, "does not break"),
        (Path([(5,)], []), True, "not initial"),
        (Path([(2,), (0,)], [HOME]), False, "does not break"),
    ],
)
def test_a_false_run_is_an_error(path: Path, initial: bool, why: str, rings: Setting) -> None:
    replay, claim, _ = rings
    with pytest.raises(ReplayError, match=why):
        replay.confirm(claim, path, initial=initial)


def test_an_induction_s_run_must_keep_the_promise_until_its_end(machine: Load) -> None:
    definition = machine("Pacing")
    model = ground(definition, scope_of(definition))
    (claim,) = claims_of(model, frozenset({"one_at_a_time"}))
    up, leap = 0, 1
    path = Path([(2,), (-2,), (-1,), (0,), (1,), (2,), (-2,)], [leap, up, up, up, up, leap])
    with pytest.raises(ReplayError, match="before its end"):
        Replay(definition, model).confirm(claim, path, initial=False)
