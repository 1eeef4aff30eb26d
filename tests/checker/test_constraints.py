"""Constraints bound a check as TLC's CONSTRAINT does, in every backend; deadlock can be allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.checker.sharded.both_ways import over_shards
from tests.checker.tla.tlc import Tlc, tlc_in

from stagewright.checker.check import check
from stagewright.checker.engines import EngineKind
from stagewright.checker.prove import prove
from stagewright.commands.facts.of_definition import facts_of
from stagewright.commands.pages.text import markdown_machine
from stagewright.impl.runtime import Instance, Program
from stagewright.spec import (
    Bool,
    DefinitionError,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    Term,
    action,
    allowed,
    always_reachable,
    constraint,
    define,
    every,
    flag,
    invariant,
    leads_to,
    liveness,
    number,
    per,
    require,
    scope_of,
    step_property,
)
from stagewright.spec.definition import NO_DEADLOCK
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Outcome, Report, Step

WEAK = Fairness.WEAK


class Node(Entity, scope=2):
    """A process with a clock."""


class Clocks(Machine):
    """Clocks that run apart for ever; a check looks at the first few ticks."""

    clock = per(Node, number(0, 100))
    seen: FlagVar = flag()

    @constraint
    def early(self, n: Term[Node]) -> Bool:
        """Only the first two ticks of each clock."""
        return self.clock[n] < 3

    @action(fair=WEAK)
    def tick(self, n: Term[Node]) -> None:
        require(self.clock[n] < 100, "clock runs")
        self.clock[n] = self.clock[n] + 1

    @action
    def see(self, n: Term[Node]) -> None:
        require(self.clock[n] == 2, "two o'clock")
        self.seen = True

    @invariant
    def not_late(self, n: Term[Node]) -> Bool:
        return self.clock[n] <= 3

    @invariant
    def three_is_never_met(self, n: Term[Node]) -> Bool:
        return self.clock[n] != 3

    @invariant
    def not_both_late(self) -> Bool:
        return ~every(self.clock[n] == 3 for n in Node)

    @step_property
    def clocks_advance(self, after: Clocks, n: Term[Node]) -> Bool:
        return self.clock[n] <= after.clock[n]

    @always_reachable
    def can_be_seen(self) -> Bool:
        return self.seen

    @liveness
    def someone_is_at_one(self) -> LeadsTo:
        return leads_to(
            every(self.clock[n] == 0 for n in Node), ~every(self.clock[n] == 0 for n in Node)
        )

    @liveness
    def is_seen(self) -> LeadsTo:
        return leads_to(~self.seen, self.seen)


def outcomes(report: Report) -> dict[str, Outcome]:
    return {v.name: v.outcome for v in report.verdicts}


@pytest.mark.parametrize("engine", [EngineKind.NATIVE, EngineKind.NUMPY])
@pytest.mark.parametrize("symmetry", [False, True])
def test_states_beyond_are_checked_but_neither_counted_nor_left(
    engine: EngineKind, symmetry: bool
) -> None:
    definition = define(Clocks)
    names = ["not_late", "three_is_never_met", "not_both_late", "clocks_advance", NO_DEADLOCK]
    report = check(
        definition, scope_of(definition), engine=engine, symmetry=symmetry, properties=names
    )
    found = outcomes(report)
    assert found["not_late"] is Outcome.HOLDS
    assert found["three_is_never_met"] is Outcome.VIOLATED  # met where the constraint ends
    assert found["not_both_late"] is Outcome.HOLDS  # (3, 3) is two steps beyond
    assert found["clocks_advance"] is Outcome.HOLDS
    assert found[NO_DEADLOCK] is Outcome.HOLDS
    # 3 * 3 clocks; and seen, unless both are before two.
    assert (report.states if not symmetry else report.reduction and report.reduction.states) == 14
    assert report.depth == 5
    assert "bounded by `early`: " in report.note
    assert report.exhausted


def test_goals_and_liveness_are_decided_within_or_not_at_all() -> None:
    definition = define(Clocks)
    report = check(definition, scope_of(definition))
    found = outcomes(report)
    assert found["can_be_seen"] is Outcome.HOLDS
    assert found["someone_is_at_one"] is Outcome.HOLDS  # nobody leaves while waiting for it
    assert found["is_seen"] is Outcome.UNDECIDED
    (verdict,) = (v for v in report.verdicts if v.name == "is_seen")
    assert verdict.note == (
        "runs that wait for the conclusion leave the constraint, and what is beyond was not searched"
    )


class Waiting(Clocks):
    """The same, with a promise that a run within the constraint breaks."""

    stuck: FlagVar = flag()

    @action
    def stop(self) -> None:
        require(every(self.clock[n] == 0 for n in Node), "just begun")
        self.stuck = True

    @action(fair=WEAK)
    def tick(self, n: Term[Node]) -> None:
        require(~self.stuck, "not stuck")
        require(self.clock[n] < 100, "clock runs")
        self.clock[n] = self.clock[n] + 1

    @liveness
    def time_goes_on(self) -> LeadsTo:
        return leads_to(self.stuck, ~self.stuck)

    @always_reachable
    def can_get_late(self) -> Bool:
        return ~every(self.clock[n] <= 2 for n in Node)


def test_what_is_broken_within_is_violated() -> None:
    definition = define(Waiting)
    found = outcomes(check(definition, scope_of(definition)))
    assert found["time_goes_on"] is Outcome.VIOLATED
    assert found["can_get_late"] is Outcome.VIOLATED  # never from where it is stuck
    assert found["someone_is_at_one"] is Outcome.VIOLATED


def test_a_goal_beyond_is_undecided() -> None:
    class Late(Clocks):
        @always_reachable
        def can_get_late(self) -> Bool:
            return ~every(self.clock[n] <= 4 for n in Node)

    definition = define(Late)
    report = check(definition, scope_of(definition), properties=["can_get_late"])
    assert outcomes(report)["can_get_late"] is Outcome.UNDECIDED


def test_a_proof_is_bounded_alike() -> None:
    definition = define(Clocks)
    found = outcomes(prove(definition, scope_of(definition), max_k=3, depth=6))
    assert found["not_late"] is Outcome.HOLDS
    assert found["three_is_never_met"] is Outcome.VIOLATED


def test_a_running_system_knows_no_constraint() -> None:
    definition = define(Clocks)
    program = Program(definition, scope_of(definition))
    instance = Instance(program)
    node = definition.entities[0]
    step = Step("tick", FrozenMap({"n": scope_members(node)[0]}))
    for _ in range(10):
        instance.fire(step)


def scope_members(kind: type[Entity]) -> list[Entity]:
    from stagewright.spec.grounding.domains import values_of
    from stagewright.spec.sorts import EntitySort

    definition = define(Clocks)
    return [v for v in values_of(EntitySort(kind), scope_of(definition)) if isinstance(v, Entity)]


def test_tlc_counts_and_finds_the_same(tmp_path: Path) -> None:
    tlc: Tlc = tlc_in(tmp_path)
    definition = define(Clocks)
    scope = scope_of(definition)
    names = ["not_late", "not_both_late", "clocks_advance", NO_DEADLOCK, "someone_is_at_one"]
    report = check(definition, scope, properties=names)
    found = tlc.check_safety(define(Bounded), scope)
    assert found.broken == ()
    assert found.distinct == report.states
    assert tlc.check_safety(definition, scope).broken == ("three_is_never_met",)


class Bounded(Clocks):
    """Without the invariant that is broken just beyond."""

    @invariant
    def three_is_never_met(self, n: Term[Node]) -> Bool:
        return self.clock[n] <= 3


class Leaving(Machine):
    """A client that may leave for good."""

    here: FlagVar = flag(init=True)
    deadlock = allowed(because="clients may leave")

    @action
    def leave(self) -> None:
        require(self.here, "here")
        self.here = False


class NotSaid(Machine):
    """The same, without a word on it."""

    here: FlagVar = flag(init=True)

    @action
    def leave(self) -> None:
        require(self.here, "here")
        self.here = False


def test_a_definition_can_allow_its_runs_to_end_anywhere() -> None:
    definition = define(Leaving)
    assert definition.deadlock_allowed is not None
    assert definition.deadlock_allowed.text == "clients may leave"
    found = outcomes(check(definition, scope_of(definition)))
    assert NO_DEADLOCK not in found
    assert set(found.values()) == {Outcome.HOLDS}


def test_a_check_can_leave_deadlocks_out() -> None:
    definition = define(NotSaid)
    scope = scope_of(definition)
    assert outcomes(check(definition, scope))[NO_DEADLOCK] is Outcome.VIOLATED
    assert NO_DEADLOCK not in outcomes(check(definition, scope, deadlock=False))


@pytest.mark.parametrize(("machine", "broken"), [(Leaving, ()), (NotSaid, ("NoDeadlock",))])
def test_tlc_is_told_what_may_end(
    machine: type[Machine], broken: tuple[str, ...], tmp_path: Path
) -> None:
    definition = define(machine)
    found = tlc_in(tmp_path).check(definition, scope_of(definition))
    assert found.broken == broken


def test_a_reason_is_needed() -> None:
    with pytest.raises(DefinitionError, match="gives no reason"):
        allowed(because=" ")


def test_shards_bound_alike(tmp_path: Path) -> None:
    definition = define(Clocks)
    scope = scope_of(definition)
    names = ["not_late", "three_is_never_met", "not_both_late", "clocks_advance", NO_DEADLOCK]
    one = check(definition, scope, properties=names, workers=1)
    many = over_shards(definition, scope, tmp_path, 3, properties=names)
    assert outcomes(many) == outcomes(one)
    assert (many.states, many.transitions, many.depth, many.note) == (
        one.states,
        one.transitions,
        one.depth,
        one.note,
    )
    assert many.coverage == one.coverage
    assert one.coverage is not None
    # Where a clock is at three nothing is asked of the actions any more.
    assert one.coverage.requirement_false["see", "two o'clock"] == 16


def test_a_machine_shows_its_bounds() -> None:
    clocks = facts_of(define(Clocks))
    assert clocks.constraints == (("early", "every n in Node: clock[n] < 3"),)
    assert facts_of(define(Leaving)).deadlock_allowed == "clients may leave"
    text = markdown_machine(clocks)
    assert "Checks are bounded by early: " in text
    assert "A run may end anywhere: clients may leave." in markdown_machine(
        facts_of(define(Leaving))
    )
