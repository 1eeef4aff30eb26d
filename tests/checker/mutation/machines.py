"""A small machine whose mutants are easily told, and evaluating that goes without the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from stagewright.checker.limits import Limits
from stagewright.checker.mutation.changes.mutants import Mutant, all_mutants
from stagewright.checker.mutation.claims import Claims
from stagewright.checker.mutation.evaluation import Evaluation
from stagewright.checker.mutation.original import original_at
from stagewright.checker.mutation.report import Finding, MutationReport
from stagewright.checker.mutation.run import Budget, evaluate_all
from stagewright.spec import (
    Bool,
    Entity,
    Fairness,
    FlagVar,
    LeadsTo,
    Machine,
    NumberVar,
    OneVar,
    States,
    Term,
    action,
    budget,
    checked_alone,
    choose,
    equivalent_disabled,
    equivalent_drop,
    equivalent_loss,
    equivalent_step,
    equivalent_value,
    equivalents,
    every,
    flag,
    invariant,
    leads_to,
    liveness,
    number,
    one_of,
    part,
    per,
    require,
    scopes,
    step_property,
)
from stagewright.spec.declarations.exercised import exercising_scopes
from stagewright.spec.define import define


class Light(States):
    """The lights of a crossing, and whether cars go."""

    red = False
    green = True
    amber = False

    def __init__(self, go: bool) -> None:
        self.go = go


class Crossing(Machine):
    """Cars wait at a light, and go while it is green."""

    failures = budget(0)

    light: OneVar[Light] = one_of(Light, init=Light.red)
    waiting: NumberVar = number(0, 2)
    crossing: FlagVar = flag()

    @light.step(Light.red, Light.green, fair=Fairness.WEAK)
    def open(self) -> None:
        """The light turns green."""

    @light.step(Light.green, Light.amber, fair=Fairness.WEAK)
    def warn(self) -> None:
        """The light turns amber."""

    @light.step(Light.amber, Light.red, fair=Fairness.WEAK)
    def close(self) -> None:
        """The light turns red once nobody is on the crossing."""
        require(~self.crossing, "the crossing is empty")

    @action
    def arrive(self) -> None:
        """A car comes."""
        require(self.waiting < 2, "there is room")
        self.waiting = self.waiting + 1

    @action
    def enter(self) -> None:
        """A car goes."""
        require(self.light.column(lambda light: light.go), "cars may go")
        require((self.waiting > 0) & ~self.crossing, "one waits, and none is before it")
        self.waiting = self.waiting - 1
        self.crossing = True

    @action(fair=Fairness.WEAK)
    def leave(self) -> None:
        """It has crossed."""
        self.crossing = choose(self.crossing, False, self.crossing)

    @action(spends=failures)
    def fail(self) -> None:
        """The light fails: it shows amber."""
        self.light = Light.amber

    @invariant
    def nobody_crosses_at_red(self) -> Bool:
        return ~(self.crossing & (self.light == Light.red))

    @step_property
    def cars_enter_one_by_one(self, after: Self) -> Bool:
        entered = after.waiting < self.waiting
        return entered.implies(~self.crossing & (self.light == Light.green))

    @liveness
    def the_light_turns_green(self) -> LeadsTo:
        return leads_to(self.light == Light.red, self.light == Light.green)


class Explained(Crossing):
    """The same, with a reason for some of what survives; two of them are not so."""

    exercised_at = scopes({}, {Crossing.failures: 1})

    @action
    def arrive(self) -> None:
        """A car comes."""
        require(self.waiting < 2, "there is room")
        self.waiting = self.waiting + 1

    @action(fair=Fairness.WEAK)
    def leave(self) -> None:
        """It has crossed."""
        self.crossing = choose(self.crossing, False, self.crossing)

    harmless = equivalents(
        equivalent_step(Crossing.light, Light.amber, Light.green, because="it is only early"),
        equivalent_step(Crossing.light, Light.red, Light.amber, because="it is only careful"),
        equivalent_step(Crossing.light, Light.red, Light.green, because="there is such a step"),
        equivalent_value(Light.red, lambda light: light.go, because="red is red"),
        equivalent_drop(arrive, "there is room", because="numbers are bounded"),
        equivalent_loss(leave, Crossing.crossing, because="a car may stand for ever"),
    )


class Cautious(Crossing):
    """The same, with a requirement that never refuses alone."""

    @action
    def enter(self) -> None:
        """A car goes."""
        require(self.light.column(lambda light: light.go), "cars may go")
        require(self.light != Light.red, "it is not red")
        require((self.waiting > 0) & ~self.crossing, "one waits, and none is before it")
        self.waiting = self.waiting - 1
        self.crossing = True


class Hasty(Crossing):
    """The same, with a light that does not wait until the crossing is empty."""

    @Crossing.light.step(Light.amber, Light.red, fair=Fairness.WEAK)
    def close(self) -> None:
        """The light turns red."""


class Railway(Machine):
    """A crossing with a gate, which is shut in the step in which the light turns red."""

    shut: FlagVar = flag(init=True)
    crossing = part(Crossing)

    @action(fair=Fairness.WEAK)
    def shut_gate(self) -> None:
        """The light turns red, and the gate is shut."""
        self.crossing.close()
        self.shut = True

    @action(fair=Fairness.WEAK)
    def open_gate(self) -> None:
        """The light turns green once the gate is open."""
        self.crossing.open()
        self.shut = False

    @invariant
    def the_gate_is_shut_at_red(self) -> Bool:
        return self.shut == (self.crossing.light == Light.red)


class Signals(Railway):
    """The same; what the crossing says is evaluated with the crossing."""

    each_alone = checked_alone(Railway.crossing)
    harmless = equivalents(
        equivalent_disabled(Railway.shut_gate, because="a light may stay as it is for ever")
    )


class Car(Entity, scope=2):
    """A car at the crossing."""


class Queue(Machine):
    """Two cars change places."""

    place = per(Car, number(0, 3))

    @action
    def change(self, car: Term[Car], other: Term[Car]) -> None:
        """One lets the other go before it."""
        require(car != other, "they are two cars")
        require(self.place[car] <= self.place[other], "it is not behind")
        before, behind = self.place[car], self.place[other]
        self.place[car] = behind
        self.place[other] = before

    @invariant
    def places_are_few(self) -> Bool:
        return every(self.place[car] < 3 for car in Car)


def mutants_of(machine: type[Machine], profile: str = "") -> list[Mutant]:
    """Every mutant."""
    definition = define(machine, profile)
    return all_mutants(definition, machine)


def mutated(
    machine: type[Machine],
    profile: str = "",
    *,
    mutants: Sequence[Mutant] | None = None,
    workers: int = 1,
    budget: Budget | None = None,
    reasons: bool = False,
) -> MutationReport:
    """All mutants, or those given, or those that its reasons ask for, evaluated at the machine's own scopes."""
    definition = define(machine, profile)
    asked = mutants_of(machine, profile) if mutants is None else mutants
    originals = [original_at(definition, s, Limits()) for s in exercising_scopes(definition)]
    claims = Claims(definition, asked) if reasons else None
    evaluations, interrupted = evaluate_all(
        asked, originals, budget or Budget(), workers=workers, claims=claims
    )
    findings = [
        Finding(m, j)
        for i, (m, j) in enumerate(zip(asked, evaluations, strict=True))
        if claims is None or claims.asks(i)
    ]
    whole = mutants is None and not reasons
    return MutationReport(
        definition, originals, findings, whole, interrupted, 0.0, reasons_alone=reasons
    )


def evaluated(report: MutationReport, identity: str) -> Evaluation:
    """What became of the one mutant with this id."""
    (found,) = [f.evaluation for f in report.findings if f.mutant.id == identity]
    return found
