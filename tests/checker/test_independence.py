"""What actions do not wait for: variables, parts, and the other members of a sort."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest
from tests.checker.test_properties import ENGINES, checked, verdicts
from tests.models.workers import Task, WatchedWorker, Worker

from stagewright.checker.counterexample.files import plain_text
from stagewright.checker.engines import EngineKind
from stagewright.checker.limits import Limits
from stagewright.checker.mutation.original import kept_by, original_at
from stagewright.checker.prove import prove
from stagewright.checker.tla.module import tla_module
from stagewright.spec import (
    DefinitionError,
    Machine,
    Term,
    action,
    define,
    every,
    flag,
    independent,
    part,
    require,
    scope_of,
)
from stagewright.spec.verdict import Outcome

WATCHED, EACH = "nobody_waits_for_who_watches", "no_task_waits_for_another"


class WaitsForWatchers(WatchedWorker):
    """Tasks begin when nobody looks."""

    @action
    def start(self, t: Term[Task]) -> None:
        """A task begins."""
        super().start(t)
        require(~self.watched, "nobody watches")


class WaitsForTheClock(WatchedWorker):
    """Tasks begin once the clock has ticked."""

    @action
    def start(self, t: Term[Task]) -> None:
        """A task begins."""
        super().start(t)
        require(self.clock.ticks == 1, "it has ticked")


class WaitsForOthers(WatchedWorker):
    """A task begins when no other one is under way."""

    @action
    def start(self, t: Term[Task]) -> None:
        """A task begins."""
        require(every((o == t) | ~self.busy.has(o) for o in Task), "no other is under way")
        super().start(t)


class WaitsForTheRest(WatchedWorker):
    """The same of the set as a whole."""

    @action
    def start(self, t: Term[Task]) -> None:
        """A task begins."""
        require(self.busy.is_empty(), "nothing is under way")
        super().start(t)


class Follows(WatchedWorker):
    """What is required beside follows from the rest: a worker that is up was not seen to be down."""

    @action
    def start(self, t: Term[Task]) -> None:
        """A task begins."""
        super().start(t)
        require(self.watched | ~self.watched, "somebody watches, or nobody does")


@ENGINES
@pytest.mark.parametrize(
    ("machine", "broken"),
    [
        (WatchedWorker, set[str]()),
        (Follows, set[str]()),
        (WaitsForWatchers, {WATCHED}),
        (WaitsForTheClock, {WATCHED}),
        (WaitsForOthers, {EACH}),
        (WaitsForTheRest, {EACH}),
    ],
)
def test_an_action_that_waits_for_more_breaks_what_it_is_said_not_to_wait_for(
    machine: type[Machine], broken: set[str], engine: EngineKind
) -> None:
    found = verdicts(checked(define(machine), engine))
    assert {n for n in (WATCHED, EACH) if found[n].outcome is Outcome.VIOLATED} == broken


def test_the_solver_and_tla_say_the_same() -> None:
    right, wrong = define(WatchedWorker), define(WaitsForTheClock)
    assert verdicts(prove(right, scope_of(right)))[WATCHED].outcome is Outcome.HOLDS
    assert verdicts(prove(wrong, scope_of(wrong)))[WATCHED].outcome is Outcome.VIOLATED
    assert f"\n  {WATCHED}\n" in tla_module(wrong, scope_of(wrong)).config


def test_the_counterexample_says_what_an_action_waits_for() -> None:
    definition = define(WaitsForWatchers)
    found = verdicts(checked(definition))[WATCHED]
    text = plain_text(definition, found, scope_of(definition))
    assert "In state 1 it waits for what it should not (`start`, `finish`):" in text
    assert "but watched is yes" in text


def test_mutants_that_wait_for_more_are_caught() -> None:
    definition = define(WatchedWorker)
    original = original_at(definition, scope_of(definition), Limits())
    assert {WATCHED, EACH} <= {p.name for p in kept_by(original, definition).properties}


class Both(Machine):
    """Two watched workers, of which one begins when nobody watches the other."""

    one = part(WatchedWorker)
    other = part(WatchedWorker)

    @action
    def start(self, t: Term[Task]) -> None:
        """The first worker begins a task."""
        self.one.start(t)
        require(~self.other.watched, "nobody watches the other")


def test_what_a_part_says_of_its_own_actions_is_not_asked_of_a_system() -> None:
    definition = define(Both)
    assert {f"one.{WATCHED}", f"other.{EACH}"} <= {left.name for left in definition.not_asked}
    assert WATCHED not in {p.name.rpartition(".")[2] for p in definition.properties}


class Shop(Machine):
    """A worker as a part, whose own actions happen by themselves."""

    worker = part(Worker)
    open = flag()

    @action
    def turn_the_sign(self) -> None:
        """It opens, or shuts."""
        require(self.open | ~self.open, "at any time")
        self.open = ~self.open

    @independent(Worker.start, Worker.finish, of=Task)
    def no_task_waits_for_another(self) -> None:
        """Tasks begin and end each for itself."""

    @independent(turn_the_sign, of=Worker.busy)
    def the_sign_waits_for_no_task(self) -> None:
        """It is turned whatever the worker does."""


class Waiting(Shop):
    """The sign is turned when the worker has nothing to do."""

    @action
    def turn_the_sign(self) -> None:
        """It opens, or shuts."""
        super().turn_the_sign()
        require(self.worker.busy.is_empty(), "no task is under way")


class Other(Shop):
    """Another worker stands in the place of the first."""

    worker = part(WatchedWorker)


def test_a_system_may_speak_of_what_its_parts_do_by_themselves_and_of_their_variables() -> None:
    of = {p.name: (p.independent, p.apart) for p in define(Shop).properties}
    assert of[EACH] == (("worker.start", "worker.finish"), ("Task",))
    assert of["the_sign_waits_for_no_task"] == (("turn_the_sign",), ("worker.busy",))
    assert verdicts(checked(define(Shop)))[EACH].outcome is Outcome.HOLDS
    waits = verdicts(checked(define(Waiting)))["the_sign_waits_for_no_task"]
    assert waits.outcome is Outcome.VIOLATED
    replaced = {p.name: p.apart for p in define(Other).properties}
    assert replaced["the_sign_waits_for_no_task"] == ("worker.busy",)


def test_it_takes_part_in_the_fingerprint() -> None:
    class Less(WatchedWorker):
        @independent(Worker.start, of=WatchedWorker.watched)
        def nobody_waits_for_who_watches(self) -> None:
            """Tasks begin whoever watches."""

    of = replace(define(Less), name=WatchedWorker.__name__)
    assert of.fingerprint() != define(WatchedWorker).fingerprint()


def test_it_is_given_actions_and_what_they_do_not_wait_for() -> None:
    with pytest.raises(DefinitionError, match="no action, or no variable"):
        independent(Worker.all_tasks_at_once, of=Task)  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="no action, or no variable"):
        independent(Worker.start, of=())
    with pytest.raises(DefinitionError, match="no action, or no variable"):
        independent(of=Task)

    class Elsewhere(Worker):
        @independent(Worker.start, of=WatchedWorker.watched)
        def it_names_what_is_not_here(self) -> None:
            """Nobody watches this one."""

    with pytest.raises(DefinitionError, match="names what this machine does not have"):
        define(Elsewhere)

    class Foreign(Worker):
        @independent(WatchedWorker.watch, of=Task)
        def it_names_an_action_that_is_not_here(self) -> None:
            """Nobody watches this one."""

    with pytest.raises(DefinitionError, match="belongs to no part"):
        define(Foreign)


def test_its_body_is_empty() -> None:
    class Says(Worker):
        @independent(Worker.start, of=Task)
        def it_says_something(self) -> None:
            """It returns a condition."""
            return cast("None", ~self.down)

    with pytest.raises(DefinitionError, match="leave its body empty"):
        define(Says)
