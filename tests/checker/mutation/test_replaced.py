"""A guard or an effect that names something else: which mutants there are, who notices, and which need not be noticed."""

from __future__ import annotations

import pytest
from tests.checker.mutation.machines import Light, evaluated, mutants_of, mutated

from stagewright.checker.mutation.changes.mutants import Kind
from stagewright.checker.mutation.changes.reasons import unknown_changes
from stagewright.checker.mutation.evaluation import Fate
from stagewright.spec import (
    DefinitionError,
    Entity,
    FlagVar,
    Machine,
    MapVar,
    NumberVar,
    OneVar,
    Term,
    action,
    equivalent_replacement,
    equivalents,
    every,
    fault_budget,
    flag,
    number,
    one_of,
    part,
    per,
    require,
    some,
    step_property,
)
from stagewright.spec.define import define


class Account(Entity):
    """Money lies there."""

    size = 2


class Bank(Machine):
    """Money goes from one account to another, while the light is green."""

    accidents = fault_budget(1)
    light: OneVar[Light] = one_of(Light, init=Light.green)
    money: MapVar[Account, int] = per(Account, int, low=0, high=2, init=1)
    counted: NumberVar = number(0, 2)
    shut: FlagVar = flag()

    @action
    def transfer(self, payer: Term[Account], payee: Term[Account]) -> None:
        """A coin goes over."""
        require(self.light == Light.green, "the light is green")
        require(payer != payee, "two accounts")
        require(self.money[payer] >= 1, "the payer has one")
        require(every(Account, lambda a: self.money[a] <= 1), "nobody is rich")
        self.money[payer] = self.money[payer] - 1
        self.money[payee] = self.money[payee] + 1

    @action(spends=accidents)
    def burn(self) -> None:
        """There is a fire."""
        self.light = Light.red
        self.shut = True

    @step_property
    def nothing_is_lost(self) -> object:
        return some(Account, lambda a: self.new.money[a] >= 1)
