"""A guard or an effect that names something else: which mutants there are, who notices, and which need no reason."""

from __future__ import annotations

from typing import Self

import pytest
from tests.checker.mutation.machines import Light, evaluated, mutants_of, mutated

from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.reasons import unknown_changes
from stagewright.checker.mutation.evaluation import Fate
from stagewright.spec import (
    Bool,
    DefinitionError,
    Entity,
    FlagVar,
    Machine,
    OneVar,
    Term,
    accepts,
    action,
    each,
    equivalent_loss,
    equivalent_replacement,
    equivalents,
    every,
    fault_budget,
    final,
    flag,
    number,
    one_of,
    part,
    per,
    require,
    step_property,
    total,
)
from stagewright.spec.define import define


class Account(Entity):
    """Money lies there."""


class Bank(Machine):
    """A coin goes from one account to another, while the light is green."""

    accidents = fault_budget(1)
    light: OneVar[Light] = one_of(Light, init=Light.green)
    coins = per(Account, number(0, 2), init=lambda a: 1)
    shut: FlagVar = flag()

    @action
    def pay(self, payer: Term[Account], payee: Term[Account]) -> None:
        """A coin goes over."""
        require(self.light == Light.green, "the light is green")
        require(payer != payee, "these are two accounts")
        require(every(self.coins[a] < 2 for a in each(Account)), "nobody is rich")
        self.coins[payer] = self.coins[payer] - 1
        self.coins[payee] = self.coins[payee] + 1

    @action(spends=accidents)
    def burn(self) -> None:
        """There is a fire."""
        require(~self.shut, "it is open")
        self.light = Light.red
        self.shut = True

    @final
    def any_time(self) -> Bool:
        return every(self.coins[a] >= 0 for a in each(Account))


class Audited(Bank):
    """The same, with what a customer relies on."""

    @step_property
    def no_coin_is_lost(self, after: Self) -> Bool:
        return total(after.coins[a] for a in each(Account)) == total(
            self.coins[a] for a in each(Account)
        )

    @accepts(Bank.pay)
    def whoever_is_poor_pays(self, payer: Term[Account], payee: Term[Account]) -> Bool:
        poor = every(self.coins[a] <= 1 for a in each(Account))
        return (payer != payee) & poor & ~self.shut


def replaced(machine: type[Machine]) -> dict[str, Fate]:
    """What became of each such mutant, by its action and text."""
    findings = [f for f in mutated(machine).findings if f.mutant.kind is Kind.REPLACE]
    return {f.mutant.id.removeprefix("replace / "): f.fate for f in findings}


def test_everything_that_a_step_names_is_replaced_in_turn() -> None:
    assert list(replaced(Bank)) == [
        "pay / the light is green: amber for green",
        "pay / these are two accounts: payee for payer",
        "pay / these are two accounts: payer for payee",
        "pay / nobody is rich: some a in Account: coins[a] < 2",
        "pay / nobody is rich: payer for a",
        "pay / nobody is rich: payee for a",
        "pay / nobody is rich: 1 for 2",
        "pay / nobody is rich: 3 for 2",
        "pay / coins[payer] becomes: payee for payer",
        "pay / coins[payer] becomes: 0 for 1",
        "pay / coins[payer] becomes: 2 for 1",
        "pay / coins[payer] is assigned: payee for payer",
        "pay / coins[payee] becomes: payer for payee",
        "pay / coins[payee] becomes: 0 for 1",
        "pay / coins[payee] becomes: 2 for 1",
        "pay / coins[payee] is assigned: payer for payee",
        "burn / light becomes: green for red",
        "burn / shut becomes: no for yes",
    ]


def test_what_is_done_wrongly_and_what_is_refused_wrongly_is_noticed_by_different_properties() -> (
    None
):
    before, after = replaced(Bank), replaced(Audited)
    wrong = "pay / coins[payer] becomes: 0 for 1"
    refused = "pay / the light is green: amber for green"
    assert (before[wrong], before[refused]) == (Fate.SURVIVED, Fate.SURVIVED)
    assert (after[wrong], after[refused]) == (Fate.CAUGHT, Fate.CAUGHT)
    report = mutated(Audited)
    assert evaluated(report, f"replace / {wrong}").by == ("no_coin_is_lost",)
    assert evaluated(report, f"replace / {refused}").by == ("whoever_is_poor_pays",)


def test_a_change_that_shows_in_no_step_means_the_same() -> None:
    assert replaced(Bank)["pay / coins[payer] becomes: payee for payer"] is Fate.SAME


def test_what_a_fault_may_leave_undone_it_may_do_otherwise() -> None:
    class Fireproof(Bank):
        """The same, where a fire need not be seen."""

        @action(spends=Bank.accidents)
        def burn(self) -> None:
            """There is a fire."""
            super().burn()

        harmless = equivalents(equivalent_loss(burn, Bank.light, because="it may be a small fire"))

    def reasons(machine: type[Machine]) -> dict[str, list[str]]:
        found = [m for m in mutants_of(machine) if m.kind is Kind.REPLACE and m.action == "burn"]
        return {m.text: [r.text for r in m.reasons] for m in found}

    assert reasons(Bank) == {"light becomes: green for red": [], "shut becomes: no for yes": []}
    assert reasons(Fireproof)["light becomes: green for red"] == ["it is a fault"]
    assert reasons(Fireproof)["shut becomes: no for yes"] == []


def test_a_reason_is_of_a_change_in_words_also_where_the_machine_is_a_part() -> None:
    class Explained(Audited):
        """The same, with a reason for what survives."""

        @action
        def pay(self, payer: Term[Account], payee: Term[Account]) -> None:
            """A coin goes over."""
            super().pay(payer, payee)

        harmless = equivalents(
            equivalent_replacement(
                pay, "nobody is rich: payee for a", because="who gets a coin has to have room"
            )
        )

    class City(Machine):
        """It is a part."""

        bank = part(Explained)

    for machine, name in ((Explained, "pay"), (City, "bank.pay")):
        why = {
            m.text: [r.text for r in m.reasons]
            for m in mutants_of(machine)
            if m.kind is Kind.REPLACE and m.action == name
        }
        assert why.pop("nobody is rich: payee for a") == ["who gets a coin has to have room"]
        assert not any(why.values())


def test_a_reason_that_is_of_no_change_is_reported() -> None:
    class Wrong(Bank):
        """The same, with a reason that matches nothing."""

        @action
        def pay(self, payer: Term[Account], payee: Term[Account]) -> None:
            """A coin goes over."""
            super().pay(payer, payee)

        harmless = equivalents(
            equivalent_replacement(pay, "yellow for green", because="there is no yellow")
        )

    (said,) = unknown_changes(define(Wrong), mutants_of(Wrong))
    assert said.reason.text == "there is no yellow"
    assert said.reason.subject == "yellow for green in `pay`"
    with pytest.raises(DefinitionError, match=r"equivalent_replacement\(\.\.\.\)"):
        equivalent_replacement(Bank.light, because="it is no method")  # type: ignore[arg-type]


class Round(Machine):
    """A number that begins anew after the last one."""

    turn = number(0, 2)

    @action
    def go_round(self) -> None:
        """The next one."""
        require(self.turn < 3, "always")
        self.turn = (self.turn + 1) % 3

    @final
    def any_time(self) -> Bool:
        return self.turn >= 0


def test_a_divisor_stays_as_it_is() -> None:
    found = [text for text in replaced(Round) if "becomes" in text]
    assert found == ["go_round / turn becomes: 0 for 1", "go_round / turn becomes: 2 for 1"]
