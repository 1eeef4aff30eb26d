"""What a part accepts its system accepts, too: the steps that join the part's action are asked, or it says why not."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import pytest
from tests.checker.test_properties import ENGINES, checked, verdicts
from tests.models.workers import Task

from stagewright.checker.check import check
from stagewright.checker.counterexample.files import plain_text
from stagewright.checker.engines import EngineKind
from stagewright.checker.limits import Limits
from stagewright.checker.mutation.original import kept_by, original_at
from stagewright.checker.prove import prove
from stagewright.checker.tla.module import tla_module
from stagewright.spec import (
    Bool,
    FlagVar,
    Machine,
    Number,
    NumberVar,
    SetOf,
    Term,
    accepts,
    action,
    between,
    budget,
    constant,
    define,
    flag,
    many,
    number,
    part,
    require,
    restricted,
    scope_of,
    set_of,
)
from stagewright.spec.definition import Definition
from stagewright.spec.errors import ReasonError
from stagewright.spec.verdict import Outcome, PropertyVerdict

VALUE = between(1, 2)
PROMISE = "replicas.newer_values_are_stored"


class Replica(Machine):
    """Stores what is newer than what it has."""

    down = flag()
    newest = number(0, 2)

    @action
    def store(self, value: Annotated[Number, VALUE]) -> None:
        """A newer value."""
        require(~self.down, "it is up")
        require(value > self.newest, "the value is newer")
        self.newest = value

    @action
    def stop(self) -> None:
        """It stops, and comes back."""
        self.down = ~self.down

    @accepts(store)
    def newer_values_are_stored(self, value: Annotated[Number, VALUE]) -> Bool:
        """A newer value is not refused."""
        return ~self.down & (value > self.newest)


class Database(Machine):
    """Any node's replica is written."""

    replicas = many(Replica, over=Task)

    @action
    def write(self, node: Term[Task], v: Annotated[Number, VALUE]) -> None:
        """A client writes."""
        self.replicas[node].store(v)


class OneAtATime(Machine):
    """A write waits for the one before to have come to all replicas."""

    replicas = many(Replica, over=Task)
    last = number(0, 2)

    @action
    def write(self, node: Term[Task], v: Annotated[Number, VALUE]) -> None:
        """A client writes one newer value after the other."""
        require(v == self.last + 1, "it is the next")
        self.replicas[node].store(v)
        self.last = v


def of(machine: type[Machine], engine: EngineKind = EngineKind.NUMPY) -> PropertyVerdict:
    return verdicts(checked(define(machine), engine))[PROMISE]


@ENGINES
def test_steps_that_join_an_action_are_asked_for_it(engine: EngineKind) -> None:
    assert of(Database, engine).outcome is Outcome.HOLDS
    refused = of(OneAtATime, engine)
    assert refused.outcome is Outcome.VIOLATED
    assert dict(refused.arguments)["value"] == 2


def test_the_counterexample_names_the_systems_guard() -> None:
    definition = define(OneAtATime)
    text = plain_text(definition, of(OneAtATime), scope_of(definition))
    assert "`replicas.store` is refused" in text
    assert "write is refused by `it is the next`" in text
    assert "write(task0, 1)" not in text, "the other value is not the one that is asked for"


def test_the_solver_and_tla_say_the_same() -> None:
    right, wrong = define(Database), define(OneAtATime)
    assert verdicts(prove(right, scope_of(right)))[PROMISE].outcome is Outcome.HOLDS
    assert verdicts(prove(wrong, scope_of(wrong)))[PROMISE].outcome is Outcome.VIOLATED
    assert "\n  replicas_newer_values_are_stored\n" in tla_module(wrong, scope_of(wrong)).config


class Restricting(Machine):
    """The same as before, with the reason."""

    replicas = many(
        Replica,
        over=Task,
        restricts=(restricted(Replica.newer_values_are_stored, because="a log has no gaps"),),
    )
    last = number(0, 2)

    @action
    def write(self, node: Term[Task], v: Annotated[Number, VALUE]) -> None:
        """A client writes one newer value after the other."""
        require(v == self.last + 1, "it is the next")
        self.replicas[node].store(v)
        self.last = v


class Needless(Machine):
    """It says that it restricts, and does not."""

    replicas = many(
        Replica,
        over=Task,
        restricts=(restricted(Replica.newer_values_are_stored, because="who knows"),),
    )

    @action
    def write(self, node: Term[Task], v: Annotated[Number, VALUE]) -> None:
        """A client writes."""
        self.replicas[node].store(v)


@ENGINES
def test_a_restriction_is_a_witness_that_it_is_needed(engine: EngineKind) -> None:
    needed = of(Restricting, engine)
    assert needed.outcome is Outcome.HOLDS
    assert needed.witness is not None
    stale = of(Needless, engine)
    assert stale.outcome is Outcome.VIOLATED
    assert "remove it from `restricts`" in stale.note


def test_a_restriction_is_shown_with_what_it_refuses() -> None:
    definition = define(Restricting)
    text = plain_text(definition, of(Restricting), scope_of(definition))
    assert "it would be accepted" in text
    assert "write is refused by `it is the next`" in text


def without_a_scope_of_its_own(machine: type[Machine]) -> Definition:
    definition = define(machine)
    properties = tuple(replace(p, at=None) for p in definition.properties)
    return replace(definition, properties=properties)


def test_a_restriction_is_sought_at_one_scope() -> None:
    definition = define(Restricting)
    found = check(definition, scope_of(definition, {"task": 1}), engine=EngineKind.NUMPY)
    assert verdicts(found)[PROMISE].scope == "Task=2"
    assert PROMISE not in verdicts(prove(definition, scope_of(definition)))


def test_the_solver_finds_a_needless_restriction() -> None:
    needed, stale = map(without_a_scope_of_its_own, (Restricting, Needless))
    assert verdicts(prove(needed, scope_of(needed)))[PROMISE].outcome is Outcome.HOLDS
    assert verdicts(prove(stale, scope_of(stale)))[PROMISE].outcome is Outcome.VIOLATED
    assert "Never_replicas_newer_values" in tla_module(needed, scope_of(needed)).config


def test_a_restriction_is_no_promise_that_catches_mutants() -> None:
    definition = define(Restricting)
    original = original_at(definition, scope_of(definition), Limits())
    assert [p.name for p in kept_by(original, definition).properties] == []


def test_a_restriction_may_show_at_a_scope_of_its_own() -> None:
    class Once(Machine):
        halts = budget(0)
        replicas = many(
            Replica,
            over=Task,
            restricts=(
                restricted(Replica.newer_values_are_stored, because="it has halted", at={halts: 1}),
            ),
        )
        halted: FlagVar = flag()

        @action(spends=halts)
        def halt(self) -> None:
            self.halted = True

        @action
        def write(self, node: Term[Task], v: Annotated[Number, VALUE]) -> None:
            require(~self.halted, "it goes on")
            self.replicas[node].store(v)

    found = of(Once)
    assert found.outcome is Outcome.HOLDS
    assert found.scope == "Task=2, halts=1"


def test_the_arguments_of_the_call_are_those_that_are_asked_for() -> None:
    class OnlyOnes(Machine):
        replicas = many(Replica, over=Task)
        one: NumberVar = constant(number(1, 1))

        @action
        def write(self, node: Term[Task]) -> None:
            self.replicas[node].store(self.one)

    assert dict(of(OnlyOnes).arguments)["value"] == 2


def test_one_parameter_of_a_step_may_be_two_of_the_action() -> None:
    class Pairs(Machine):
        seen = set_of(Task)
        last = set_of(Task)

        @action
        def join(self, a: Term[Task], b: Term[Task]) -> None:
            require(~self.seen.has(a) & ~self.last.has(b), "both are free")
            self.seen.add(a)
            self.last.add(b)

        @accepts(join)
        def free_ones_join(self, a: Term[Task], b: Term[Task]) -> Bool:
            return ~self.seen.has(a) & ~self.last.has(b)

    class Alone(Machine):
        pairs = part(Pairs)

        @action
        def join(self, a: Term[Task]) -> None:
            self.pairs.join(a, a)

    found = verdicts(checked(define(Alone)))["pairs.free_ones_join"]
    assert found.outcome is Outcome.VIOLATED
    assert found.arguments["a"] != found.arguments["b"]


def test_a_loop_joins_an_action_for_the_members_of_its_set_alone() -> None:
    class ToChosen(Machine):
        replicas = many(Replica, over=Task)
        chosen = set_of(Task)

        @action
        def choose(self, one: Term[Task]) -> None:
            self.chosen.add(one)

        @action
        def write(self, v: Annotated[Number, VALUE]) -> None:
            for node in self.chosen:
                self.replicas[node].store(v)

    class ToAny(Machine):
        replicas = many(Replica, over=Task)

        @action
        def write(self, v: Annotated[Number, VALUE], to: SetOf[Task]) -> None:
            for node in to:
                self.replicas[node].store(v)

    refused = of(ToChosen)
    assert refused.run is not None
    assert not refused.run.steps, "nobody is chosen yet"
    assert of(ToAny).outcome is Outcome.HOLDS


def test_a_part_of_a_part_is_asked_of_the_outermost_step() -> None:
    class Cluster(Machine):
        inner = part(Database)
        paused: FlagVar = flag()

        @action
        def pause(self) -> None:
            self.paused = True

        @action
        def write(self, node: Term[Task], v: Annotated[Number, VALUE]) -> None:
            require(~self.paused, "it is not paused")
            self.inner.write(node, v)

    definition = define(Cluster)
    name = f"inner.{PROMISE}"
    found = check(definition, scope_of(definition), properties=[name], engine=EngineKind.NUMPY)
    assert found.outcome is Outcome.VIOLATED


def test_what_is_left_out_is_listed_as_not_asked() -> None:
    class Silent(Machine):
        replica = part(Replica, without=(Replica.store,))

    class Careless(Machine):
        replica = part(Replica, without=(Replica.newer_values_are_stored,))

    for machine, why in (
        (Silent, "`replica.store` never happens here"),
        (Careless, "the system leaves it out"),
    ):
        definition = define(machine)
        assert not definition.properties
        (left,) = definition.not_asked
        assert (left.name, left.why) == ("replica.newer_values_are_stored", why)


def test_a_restriction_that_means_nothing_is_refused() -> None:
    with pytest.raises(ReasonError, match="no @accepts"):
        restricted(Replica.store, because="it is an action")
    with pytest.raises(ReasonError, match="no @accepts"):
        restricted(because="of nothing")
    with pytest.raises(ReasonError, match="without a reason"):
        restricted(Replica.newer_values_are_stored, because=" ")
    said = restricted(Replica.newer_values_are_stored, because="a log has no gaps")
    with pytest.raises(ReasonError, match="not asked anyway"):
        part(Replica, without=(Replica.store,), restricts=(said,))
    with pytest.raises(ReasonError, match="`restricts` of Replica names"):
        part(Replica, restricts=(Replica.newer_values_are_stored,))  # type: ignore[arg-type]


def test_a_restriction_of_another_machine_is_refused() -> None:
    class Other(Machine):
        on = flag()

        @action
        def turn(self) -> None:
            self.on = ~self.on

        @accepts(turn)
        def it_turns(self) -> Bool:
            return self.on

    class Confused(Machine):
        replica = part(Replica, restricts=(restricted(Other.it_turns, because="why not"),))

    with pytest.raises(ReasonError, match="belongs to no part of Replica"):
        define(Confused)
