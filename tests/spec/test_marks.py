"""What a definition says of its variables: committed, volatile, observed, history; and what it may not."""

import pytest

from stagewright.commands.facts.of_definition import facts_of
from stagewright.spec import (
    ANY,
    Actor,
    DefinitionError,
    Entity,
    FlagVar,
    Machine,
    Record,
    Term,
    action,
    choose,
    define,
    flag,
    history,
    observed,
    per,
    record,
    require,
    set_of,
    volatile,
)
from stagewright.spec.definition import Kept

BOSS = Actor("boss")


class Job(Entity):
    """What is done."""


class Row(Record):
    """A record with a field that may not be marked."""

    seen = history(flag())


class Work(Machine):
    """Jobs that are done once."""

    done = set_of(Job)
    called = per(Job, volatile(flag(), of=BOSS))
    late = observed(set_of(Job), of=Actor("network"))
    ever: FlagVar = history(flag())
    twice: FlagVar = history(flag())

    @action(by=BOSS)
    def call(self, j: Term[Job]) -> None:
        """The boss calls for a job."""
        require(~self.done.has(j), "not done")
        self.called[j] = True
        self.late.discard(j)

    @action
    def finish(self, j: Term[Job]) -> None:
        """The job is done."""
        require(self.called[j], "called")
        self.done.add(j)
        self.late.add(j)
        self.twice = self.twice | self.ever
        self.ever = True


def test_marks_are_part_of_the_definition_and_shown() -> None:
    kept = {v.name: v.kept for v in define(Work).variables}
    assert kept == {
        "done": Kept.COMMITTED,
        "called": Kept.VOLATILE,
        "late": Kept.OBSERVED,
        "ever": Kept.HISTORY,
        "twice": Kept.HISTORY,
    }
    shown = {v.name: v.kept for v in facts_of(define(Work)).variables}
    assert shown["called"] == "volatile, of boss"
    assert shown["late"] == "observed, of network"
    assert shown["done"] == "committed"


def test_history_may_not_be_required() -> None:
    class Guarded(Machine):
        x: FlagVar = flag()
        ever: FlagVar = history(flag())

        @action
        def step(self) -> None:
            require(~self.ever, "never")
            self.x = True
            self.ever = True

    with pytest.raises(DefinitionError) as caught:
        define(Guarded)
    assert "`ever` is history, but the requirement `never` of action `step` reads it" in str(
        caught.value
    )


def test_history_may_not_decide_what_is_assigned() -> None:
    class Steered(Machine):
        x: FlagVar = flag()
        ever: FlagVar = history(flag())

        @action
        def step(self) -> None:
            self.x = choose(self.ever, self.x, ~self.x)
            self.ever = True

    with pytest.raises(DefinitionError, match="the effect on `x` of action `step` reads it"):
        define(Steered)


def test_what_is_forgotten_must_start_as_something() -> None:
    with pytest.raises(DefinitionError, match="a volatile variable may start as anything"):
        volatile(flag(ANY), of=BOSS)


def test_only_whole_records_are_marked() -> None:
    with pytest.raises(DefinitionError, match="the field `seen` of Row is history"):
        record(Row)


def test_marks_are_given_to_variables() -> None:
    with pytest.raises(DefinitionError, match=r"write `history\(one_of"):
        history(True)  # type: ignore[arg-type]
