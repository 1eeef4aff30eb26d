"""Each kind of mutant changes what it says, and nothing else."""

from __future__ import annotations

import pytest
from tests.checker.mutation.machines import (
    Crossing,
    Explained,
    Light,
    Railway,
    Signals,
    evaluated,
    mutants_of,
    mutated,
)

from stagewright.checker.mutation.changes.effects import unknown_joins
from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import (
    all_mutants,
    changed_actions,
    evaluated_here,
)
from stagewright.checker.mutation.changes.requirements import weaker
from stagewright.checker.mutation.changes.restated import restated_guards
from stagewright.checker.mutation.evaluation import Fate
from stagewright.checker.mutation.report import Catcher
from stagewright.spec import (
    Bool,
    DefinitionError,
    Entity,
    FlagVar,
    Machine,
    Term,
    action,
    count,
    equivalent_without,
    equivalents,
    every,
    flag,
    invariant,
    number,
    one_of,
    per,
    require,
    scopes,
    set_of,
    some,
    sometimes,
)
from stagewright.spec.declarations.exercised import exercising_scopes
from stagewright.spec.define import define
from stagewright.spec.nodes import Apply, Op
from stagewright.spec.scope import scope_of
from stagewright.spec.text.words import words


class Node(Entity):
    """Something of which there are several."""


class Nested(Machine):
    """Its one action requires what is under test."""

    a: FlagVar = flag()
    b: FlagVar = flag()
    c: FlagVar = flag()
    n = number(0, 3)
    m = number(0, 3)
    up = per(Node, flag())
    done = set_of(Node)

    def asked(self) -> Bool:
        """What the action requires."""
        raise NotImplementedError

    @action
    def act(self) -> None:
        """Requires it, and does something to everything."""
        require(self.asked(), "asked")
        for node in Node:
            self.up[node] = self.a
            self.done.add(node)
        self.a, self.b, self.c = self.b, self.c, self.a
        self.n, self.m = self.m, self.n


class Both(Nested):
    def asked(self) -> Bool:
        return self.a & self.b


class NotEither(Nested):
    def asked(self) -> Bool:
        return ~(self.a | self.b)


class Implied(Nested):
    def asked(self) -> Bool:
        return (self.a & self.b).implies(self.c & (self.n == 1))


class Compared(Nested):
    def asked(self) -> Bool:
        return (self.n < self.m) & ~(self.n <= 1)


class EveryOne(Nested):
    def asked(self) -> Bool:
        return every(self.up[n] & ~self.done.has(n) for n in Node)


class NoOne(Nested):
    def asked(self) -> Bool:
        return ~some(self.up[n] & self.done.has(n) for n in Node)


class AtMost(Nested):
    def asked(self) -> Bool:
        return count(self.up[n] for n in Node) <= 1


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (Both, {"b", "a"}),
        (NotEither, {"not b", "not a"}),
        (Implied, {"a and b implies n is 1", "a and b implies c"}),
        (Compared, {"n > 1", "n < m", "n ≤ m and n > 1", "n < m and n ≥ 1"}),
        (EveryOne, {"every n in Node: n is not in done", "every n in Node: up[n]"}),
        (NoOne, set()),
        (AtMost, {"size of Node with up ≤ 1 + 1"}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_condition_is_weakened_in_one_place_at_a_time(
    machine: type[Machine], expected: set[str]
) -> None:
    (guard,) = define(machine).action("act").requirements
    found = {words(less) for less in weaker(guard.condition)}
    if machine is AtMost:
        assert len(found) == 1
        assert found.pop().endswith("1 + 1")
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("machine", "barriers"),
    [(Both, 0), (EveryOne, 1), (NoOne, 1), (AtMost, 0)],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_barrier_does_not_wait_for_one(machine: type[Machine], barriers: int) -> None:
    found = [m for m in all_mutants(define(machine)) if m.kind is Kind.SKIP]
    assert len(found) == barriers
    for mutant in found:
        (guard,) = mutant.made().action("act").requirements
        assert isinstance(guard.condition, Apply)
        assert guard.condition.op is Op.LE
        assert "all but one" in mutant.text


def test_each_kind_of_mutant_is_made() -> None:
    found = [m.id for m in mutants_of(Crossing)]
    assert len(found) == len(set(found))
    for expected in (
        "drop / enter / cars may go: light.go",
        "weaken / enter / one waits, and none is before it: only waiting > 0",
        "weaken / arrive / there is room: only waiting ≤ 2",
        "lose / open / light becomes green",
        "lose / leave / crossing becomes no, always",
        "swap / Light.amber.go is yes, not no",
        "edge / light: amber → green",
    ):
        assert expected in found
    edges = [m for m in mutants_of(Crossing) if m.kind is Kind.EDGE]
    assert len(edges) == 6 - 3  # all pairs but those that have a step


def test_a_mutant_differs_from_the_original_in_one_action() -> None:
    original = define(Crossing)
    for mutant in mutants_of(Crossing):
        changed = mutant.made()
        differing = list(changed_actions(original, changed))
        if mutant.kind is Kind.EDGE:
            ((old, new),) = differing
            assert old is None
            assert new is not None
        elif mutant.kind is not Kind.SWAP:
            ((old, new),) = differing
            assert old is not None
            assert old.name == mutant.action
        assert changed.fingerprint() != original.fingerprint()


def test_a_table_is_as_before_after_its_mutants_were_made() -> None:
    before = [light.go for light in Light]
    fingerprint = define(Crossing).fingerprint()
    for mutant in mutants_of(Crossing):
        mutant.made()
    assert [light.go for light in Light] == before
    assert define(Crossing).fingerprint() == fingerprint


def test_every_mutant_of_a_row_names_its_line() -> None:
    swaps = [m for m in mutants_of(Crossing) if m.kind is Kind.SWAP]
    lines = [m.where.text().split("=")[0].strip() for m in swaps if m.where is not None]
    assert lines == ["red", "green", "amber"]


def test_without_tracing_afresh_tables_stay_as_they_are() -> None:
    assert not [m for m in all_mutants(define(Crossing)) if m.kind is Kind.SWAP]


def test_reasons_change_no_fingerprint_and_no_equality() -> None:
    class Silent(Explained):
        harmless = equivalents()

        @action
        def arrive(self) -> None:
            """A car comes."""
            require(self.waiting < 2, "there is room")
            self.waiting = self.waiting + 1

    silent, explained = define(Silent), define(Explained)
    assert silent.action("arrive") == explained.action("arrive")
    found = {m.id: [r.text for r in m.reasons] for m in mutants_of(Explained) if m.reasons}
    assert found["drop / arrive / there is room: waiting < 2"] == ["numbers are bounded"]
    assert "drop / arrive / there is room: waiting < 2" not in {
        m.id for m in mutants_of(Silent) if m.reasons
    }, "a body that is overridden takes its reasons with it"


def test_scopes_are_named_by_what_differs_and_without_repetition() -> None:
    class Exercised(Nested):
        exercised_at = scopes({}, {Node: 3}, {Node: 2})

        def asked(self) -> Bool:
            return self.a

    found = exercising_scopes(define(Exercised))
    assert [str(scope) for scope in found] == ["Node=2", "Node=3"]
    assert [str(scope) for scope in exercising_scopes(define(Both))] == ["Node=2"]


def test_scopes_take_entities_and_budgets_only() -> None:
    with pytest.raises(DefinitionError, match="neither an entity nor a budget"):
        scopes({"node": 3})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]


def test_the_added_step_of_a_family_takes_its_key() -> None:
    class Lights(Machine):
        lights = per(Node, one_of(Light, init=Light.red))

        @lights.step(Light.red, Light.green)
        def open(self, n: Term[Node]) -> None:
            """One turns green."""

    edges = [m for m in all_mutants(define(Lights)) if m.kind is Kind.EDGE]
    assert len(edges) == 6 - 1
    added = edges[0].made().actions[-1]
    assert [p.name for p in added.params] == ["n"]


def test_of_a_system_what_its_parts_say_is_left_to_those_that_are_checked_alone() -> None:
    everything = mutants_of(Signals)
    here = evaluated_here(define(Signals), everything)
    assert {mutant.part for mutant in everything} == {"", "crossing."}
    assert [m.id for m in here if m.kind in {Kind.DROP, Kind.WEAKEN, Kind.LOSE}] == [
        "lose / shut_gate / shut becomes yes",
        "lose / shut_gate / all of `crossing.close`",
        "lose / open_gate / shut becomes no",
        "lose / open_gate / all of `crossing.open`",
    ]
    assert evaluated_here(define(Railway), mutants_of(Railway)) == tuple(mutants_of(Railway))


def test_a_column_that_the_system_reads_is_its_own() -> None:
    class Reads(Signals):
        """The same, which asks whether cars go."""

        @invariant
        def no_car_goes_over_a_shut_gate(self) -> Bool:
            return self.crossing.light.column(lambda light: light.go).implies(~self.shut)

    here = evaluated_here(define(Reads), mutants_of(Reads))
    assert [m.id for m in here if m.kind is Kind.SWAP] == [
        "swap / Light.red.go is yes, not no",
        "swap / Light.green.go is no, not yes",
        "swap / Light.amber.go is yes, not no",
    ]


def test_a_step_may_forget_what_no_promise_would_miss() -> None:
    class Says(Railway):
        """The same, with a reason."""

        harmless = equivalents(
            equivalent_without(Crossing.close, because="the gate is what counts"),
        )

    found = {m.id: [r.text for r in m.reasons] for m in mutants_of(Says) if "all of" in m.id}
    assert found == {
        "lose / shut_gate / all of `crossing.close`": ["the gate is what counts"],
        "lose / open_gate / all of `crossing.open`": [],
    }
    assert list(unknown_joins(define(Says))) == []

    class SaysTooMuch(Railway):
        """A reason for what no step joins."""

        harmless = equivalents(equivalent_without(Crossing.arrive, because="nobody waits"))

    assert [said.reason.text for said in unknown_joins(define(SaysTooMuch))] == ["nobody waits"]
    with pytest.raises(DefinitionError, match="what is no action"):
        equivalent_without(print, because="it is none")


def test_a_step_of_a_system_can_forget_a_part_of_it() -> None:
    (forgets,) = [m for m in mutants_of(Railway) if m.id.startswith("lose / shut_gate / all of")]
    ((old, new),) = changed_actions(define(Railway), forgets.made())
    assert old is not None
    assert new is not None
    assert [r.name for r in old.requirements] == ["light is amber", "the crossing is empty"]
    assert new.requirements == ()
    assert len(old.assignments) == 2
    assert len(new.assignments) == 1


class Seat(Entity, scope=2):
    """Where somebody works."""


class Desk(Machine):
    """Desks that are each free or not."""

    light = per(Seat, one_of(Light, init=Light.red))
    open: FlagVar = flag()

    @light.step(Light.red, Light.green)
    def begin(self, s: Term[Seat]) -> None:
        """Somebody begins."""
        require(self.open, "it is open")

    @light.step(Light.green, Light.red)
    def end(self, s: Term[Seat]) -> None:
        """Somebody ends."""

    @action
    def unlock(self) -> None:
        """It opens."""
        self.open = True

    @sometimes
    def two_work_at_once(self) -> Bool:
        return count(self.light[s] == Light.green for s in Seat) >= 2


def test_an_action_is_tightened_in_each_way() -> None:
    ids = {m.id for m in mutants_of(Desk) if m.kind is Kind.TIGHTEN and m.action == "begin"}
    assert ids == {
        "tighten / begin / not while light[s] is red",
        "tighten / begin / not while light[s] is green",
        "tighten / begin / not while light[s] is amber",
        "tighten / begin / only while every another in Seat: another = s or light[another] is red",
        "tighten / begin / also, as end, light is green",
    }


def test_what_is_serialised_is_noticed_by_a_witness() -> None:
    report = mutated(Desk)
    (alone,) = [m for m in mutants_of(Desk) if "begin / only while" in m.id]
    found = evaluated(report, alone.id)
    assert found.fate is Fate.CAUGHT
    assert found.by == ("two_work_at_once",)
    numbers = report.summary(Kind.TIGHTEN)
    assert numbers.unexplained == 0
    assert numbers.unobserved == len(report.tightened) > 0, "nothing says that somebody ends"
    assert report.catchers[Catcher.PROMISE] > 0


def test_a_promise_that_repeats_a_guard_is_told_from_others() -> None:
    definition = define(Crossing)
    found = restated_guards(definition, scope_of(definition))
    assert found == {"cars_enter_one_by_one"}
