"""Each step is a step of the seen machine or changes nothing that is seen; else the run is shown where it is not."""

from __future__ import annotations

import pytest
from tests.checker.refinement.jobs import (
    Job,
    Phase,
    Worker,
    a_hasty_job,
    a_job,
    decided,
    phase_of,
    steps,
)
from tests.models.transaction_commit import TransactionCommit, commits_transactions
from tests.models.two_phase_commit import Decision, Manager, TwoPhaseCommit

from stagewright.checker.engines import EngineKind
from stagewright.spec import (
    FlagVar,
    Machine,
    NumberVar,
    Term,
    action,
    alike,
    budget,
    choose,
    flag,
    number,
    projection,
    refinement,
    require,
)
from stagewright.spec.verdict import Outcome

HOLDS, VIOLATED = Outcome.HOLDS, Outcome.VIOLATED
ENGINES = [EngineKind.NATIVE, EngineKind.NUMPY]


@pytest.mark.parametrize("engine", ENGINES)
def test_two_phase_commit_commits_transactions(engine: EngineKind) -> None:
    verdict = decided(commits_transactions, engine=engine)
    assert verdict.outcome is HOLDS
    assert verdict.note.startswith(
        "all 1,145 steps of TwoPhaseCommit are steps of TransactionCommit"
    )
    assert verdict.refined is not None
    assert (verdict.refined.taken, verdict.refined.edges) == (93, 93)  # TLC: 94 states generated


def test_steps_that_change_nothing_seen_are_no_steps() -> None:
    verdict = decided(a_job)
    assert (verdict.outcome, verdict.run) == (HOLDS, None)
    assert "2 of its 2 edges are taken" in verdict.note


@pytest.mark.parametrize("engine", ENGINES)
def test_a_step_that_the_seen_machine_does_not_have_is_shown(engine: EngineKind) -> None:
    verdict = decided(a_hasty_job, engine=engine)
    assert (verdict.outcome, steps(verdict)) == (VIOLATED, ["give_up"])
    assert verdict.note == "give_up is no step of Job: phase: idle → done"
    assert verdict.refined is not None
    assert [dict(look) for look in verdict.refined.looks] == [{"phase": "idle"}, {"phase": "done"}]
    assert verdict.refined.instead == ("start: phase: idle → running",)


def test_an_initial_state_that_the_seen_machine_does_not_have_is_shown() -> None:
    @refinement()
    def upside_down(worker: Worker, seen: Job) -> None:
        seen.phase = choose(
            worker.started, Phase.idle, choose(worker.stopped, Phase.idle, Phase.done)
        )

    verdict = decided(upside_down)
    assert (verdict.outcome, steps(verdict)) == (VIOLATED, [])
    assert verdict.note == "no initial state of Job looks so: phase = done"


def test_a_view_may_begin_anywhere_if_that_is_said() -> None:
    @refinement(from_start=False)
    def the_end(worker: Worker, seen: Job) -> None:
        seen.phase = choose(
            worker.stopped, Phase.done, choose(worker.stopped, Phase.done, Phase.running)
        )

    assert decided(the_end).outcome is HOLDS


def test_a_mapping_under_which_nothing_ever_changes_is_refused() -> None:
    @refinement()
    def nothing(worker: Worker, seen: Job) -> None:
        seen.phase = choose(
            worker.started, Phase.idle, choose(worker.started, Phase.idle, Phase.idle)
        )

    verdict = decided(nothing)
    assert (verdict.outcome, verdict.run) == (VIOLATED, None)
    assert verdict.note == "vacuous: no step of Worker changes anything that is seen"


def test_what_the_seen_machine_never_does_is_listed() -> None:
    @refinement()
    def never_done(worker: Worker, seen: Job) -> None:
        seen.phase = choose(
            worker.started, Phase.running, choose(worker.started, Phase.idle, Phase.idle)
        )

    verdict = decided(never_done)
    assert verdict.outcome is HOLDS
    assert verdict.refined is not None
    assert verdict.refined.untaken == ("finish: phase: running → done",)


def test_a_value_that_the_seen_variable_cannot_hold_is_found() -> None:
    class Narrow(Machine):
        rounds: NumberVar = number(0, 2)

        @action
        def more(self) -> None:
            require(self.rounds < 2, "there is room")
            self.rounds = self.rounds + 1

    @refinement()
    def too_many(worker: Worker, seen: Narrow) -> None:
        seen.rounds = worker.rounds

    verdict = decided(too_many)
    assert steps(verdict) == ["begin", "work", "work", "work"]
    assert verdict.note.endswith("rounds: 2 → out of bounds")


# -- hidden variables, and what is known of them -----------------------------------------------------------


class Light(Machine):
    """A lamp that has to cool down after it was on; only whether it is on shows."""

    on: FlagVar = flag()
    hot: FlagVar = flag()

    @action
    def switch_on(self) -> None:
        """It gets hot."""
        require(~self.on & ~self.hot, "it is off and cold")
        self.on = True
        self.hot = True

    @action
    def switch_off(self) -> None:
        """It stays hot."""
        require(self.on, "it is on")
        self.on = False

    @action
    def cool(self) -> None:
        """It may be used again."""
        require(~self.on, "it is off")
        self.hot = False


class Button(Machine):
    """A button that may be pressed twice in a row, if one waits in between or not."""

    lit: FlagVar = flag()
    waited: FlagVar = flag(init=True)

    @action
    def press(self) -> None:
        """On or off."""
        self.lit = ~self.lit
        self.waited = False

    @action
    def wait(self) -> None:
        """A moment."""
        self.waited = True


def test_some_value_must_do_for_a_hidden_variable() -> None:
    @refinement()
    def a_light(button: Button, seen: Light) -> None:
        seen.on = button.lit

    verdict = decided(a_light)
    assert verdict.outcome is HOLDS
    assert verdict.note.endswith("hidden: hot")


def test_what_is_known_of_a_hidden_variable_is_compared() -> None:
    @refinement()
    def a_light(button: Button, seen: Light) -> None:
        seen.on = button.lit
        alike(seen.hot, ~button.waited | button.lit)

    verdict = decided(a_light)
    assert steps(verdict) == ["press", "press", "press"]
    assert verdict.refined is not None
    assert verdict.refined.hidden == ()
    assert dict(verdict.refined.looks[0]) == {"on": "no", "hot": "no"}


def test_the_way_that_is_shown_carries_the_seen_states_that_were_lost() -> None:
    """The nearest path to the last state is not always one on which nothing fits."""

    class Fork(Machine):
        """Of its two ways only one leads to the end."""

        at: NumberVar = number(0, 3)

        @action
        def right(self) -> None:
            require(self.at == 0, "it begins")
            self.at = 1

        @action
        def wrong(self) -> None:
            require(self.at == 0, "it begins")
            self.at = 2

        @action
        def arrive(self) -> None:
            require(self.at == 1, "it went the right way")
            self.at = 3

    class Ways(Machine):
        at: NumberVar = number(0, 3)

        @action
        def short(self) -> None:
            require(self.at == 0, "it begins")
            self.at = 2

        @action
        def long(self) -> None:
            require(self.at == 0, "it begins")
            self.at = 1

        @action
        def on(self) -> None:
            require(self.at == 1, "it went the long way")
            self.at = 2

        @action
        def end(self) -> None:
            require(self.at == 2, "either way")
            self.at = 3

    @refinement(steps={Ways.short: Fork.right, Ways.long: None, Ways.on: Fork.wrong})
    def by_steps(ways: Ways, seen: Fork) -> None:
        alike(seen.at == 3, ways.at == 3)

    assert steps(decided(by_steps)) == ["long", "on", "end"]


# -- projections: neither machine does more than the other ------------------------------------------------


class LongJob(Job):
    """A job that may be paused."""

    @Job.phase.step(Phase.running, Phase.idle)
    def pause(self) -> None:
        """It waits."""


def as_a_job(worker: Worker, seen: LongJob) -> None:
    seen.phase = phase_of(worker)


def test_a_projection_does_nothing_that_the_concrete_machine_does_not_do() -> None:
    verdict = decided(projection()(as_a_job))
    assert (verdict.outcome, verdict.run) == (VIOLATED, None)
    assert verdict.note == (
        "LongJob has 1 step that Worker never takes, and that `beyond` does not name: "
        "pause: phase: running → idle"
    )


def test_but_for_what_is_said_to_be_beyond_it() -> None:
    verdict = decided(projection(beyond={"": (LongJob.pause,)})(as_a_job))
    assert verdict.outcome is HOLDS


def test_what_is_needlessly_said_to_be_beyond_it_is_refused() -> None:
    verdict = decided(projection(beyond={"": (LongJob.pause, LongJob.start)})(as_a_job))
    assert verdict.outcome is VIOLATED
    assert verdict.note == "`beyond` names start, all of whose steps Worker takes"


def test_what_one_scope_does_not_show_another_one_may() -> None:
    class Counted(Machine):
        """As often as its budget says."""

        steps = budget(1)
        count: NumberVar = number(0, 2)

        @action(spends=steps)
        def more(self) -> None:
            self.count = self.count + 1

    class Count(Machine):
        count: NumberVar = number(0, 2)

        @action
        def more(self) -> None:
            require(self.count < 2, "there is room")
            self.count = self.count + 1

    def counted(it: Counted, seen: Count) -> None:
        seen.count = it.count

    assert decided(projection()(counted)).outcome is VIOLATED
    assert decided(projection(at=({}, {Counted.steps: 2}))(counted)).outcome is HOLDS


# -- mutants -------------------------------------------------------------------------------------------------


def test_mutants_of_a_protocol_and_of_a_mapping_are_caught() -> None:
    class Eager(TwoPhaseCommit):
        """The transaction manager commits when one is prepared."""

        @action
        def commit_early(self, m: Term[Manager]) -> None:
            require(self.deciding & self.prepared.has(m), "one is prepared")
            self.deciding = False
            self.commit_sent = True

    @refinement()
    def eager(protocol: Eager, seen: TransactionCommit) -> None:
        for m in Manager:
            seen.decision[m] = protocol.decision[m]

    @refinement()
    def hears_too_much(protocol: TwoPhaseCommit, seen: TransactionCommit) -> None:
        for m in Manager:
            seen.decision[m] = choose(
                protocol.commit_sent, Decision.COMMITTED, protocol.decision[m]
            )

    assert steps(decided(eager))[-1] == "hear_commit(manager0)"
    assert steps(decided(hears_too_much))[-1] == "commit"
