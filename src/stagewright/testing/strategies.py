"""Hypothesis strategies made from a definition: its initial states, its runs, its reachable states.

    @given(runs(Lease, sizes={"node": 2}))
    def test_a_log_of_a_run_can_be_read_back(run): ...

The reference interpreter takes the steps. A run shrinks towards fewer steps and towards the actions that the
definition lists first.
"""

from __future__ import annotations

from itertools import groupby

from hypothesis import strategies as st

from stagewright.spec.definition import Definition
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.machine import Machine
from stagewright.spec.values import State
from stagewright.spec.verdict import Run, Step
from stagewright.testing.subject import Budgets, Sizes, resolved

LONGEST_RUN = 20  # steps, unless asked for more


def initial_states(
    machine: type[Machine] | Definition,
    *,
    profile: str = "",
    sizes: Sizes | None = None,
    budgets: Budgets | None = None,
) -> st.SearchStrategy[State]:
    """The initial states of a machine at a scope."""
    definition, scope = resolved(machine, profile, sizes, budgets)
    return st.sampled_from(list(Interpreter(definition, scope).initial_states()))


def runs(
    machine: type[Machine] | Definition,
    *,
    profile: str = "",
    sizes: Sizes | None = None,
    budgets: Budgets | None = None,
    max_steps: int = LONGEST_RUN,
) -> st.SearchStrategy[Run]:
    """Runs of a machine from an initial state, of at most `max_steps` enabled steps.

    A run ends earlier where no step is enabled, or at a state outside of the definition's constraints. Budgets are
    spent as in a check; they are part of the states.
    """
    definition, scope = resolved(machine, profile, sizes, budgets)
    interpreter = Interpreter(definition, scope)
    starts = list(interpreter.initial_states())
    goes_on = st.sampled_from([False] + [True] * max_steps)

    @st.composite
    def run(draw: st.DrawFn) -> Run:
        visited = [draw(st.sampled_from(starts))]
        taken: list[Step] = []
        # Whether it goes on is drawn before each step: so any step can be left out when a run shrinks.
        while len(taken) < max_steps and draw(goes_on):
            chosen = _step(draw, interpreter, visited[-1])
            if chosen is None:
                break
            taken.append(chosen[0])
            visited.append(chosen[1])
        return Run(tuple(visited), tuple(taken))

    return run()


def states(
    machine: type[Machine] | Definition,
    *,
    profile: str = "",
    sizes: Sizes | None = None,
    budgets: Budgets | None = None,
    max_steps: int = LONGEST_RUN,
) -> st.SearchStrategy[State]:
    """States that a machine reaches in at most `max_steps` steps."""
    made = runs(machine, profile=profile, sizes=sizes, budgets=budgets, max_steps=max_steps)

    @st.composite
    def state(draw: st.DrawFn) -> State:
        return draw(made).states[-1]

    return state()


def _step(draw: st.DrawFn, interpreter: Interpreter, state: State) -> tuple[Step, State] | None:
    """An enabled step with the state that it leads to: first its action is drawn, then the step."""
    if not interpreter.is_within(state):
        return None
    enabled = list(interpreter.successors(state))
    if not enabled:
        return None
    actions = [list(steps) for _, steps in groupby(enabled, lambda found: found[0].action)]
    return draw(st.sampled_from(draw(st.sampled_from(actions))))
