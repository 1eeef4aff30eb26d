"""An action that never happens: who notices, and which need not."""

from __future__ import annotations

import pytest
from tests.checker.mutation.machines import evaluated, mutants_of, mutated

from stagewright.checker.mutation.changes.disabled import unknown_actions
from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.evaluation import Fate
from stagewright.checker.mutation.report import hint
from stagewright.spec import (
    Bool,
    DefinitionError,
    FlagVar,
    Machine,
    NumberVar,
    accepts,
    action,
    budget,
    equivalent_disabled,
    equivalents,
    fault_budget,
    final,
    flag,
    number,
    part,
    require,
)
from stagewright.spec.define import define


class Shop(Machine):
    """Somebody may come as long as it is open, look round, and have an accident."""

    visits = budget(2)
    accidents = fault_budget(1)
    shut: FlagVar = flag()
    inside: NumberVar = number(0, 2)
    seen: NumberVar = number(0, 2)

    @action(spends=visits)
    def come(self) -> None:
        """Somebody comes in."""
        require(~self.shut, "it is open")
        self.inside = self.inside + 1

    @action
    def look(self) -> None:
        """Somebody looks round."""
        require(self.seen < self.inside, "somebody has not looked yet")
        self.seen = self.seen + 1

    @action(spends=accidents)
    def burn(self) -> None:
        """There is a fire."""
        self.shut = True

    @final
    def any_time(self) -> Bool:
        return self.inside >= 0

    harmless = equivalents(equivalent_disabled(look, because="nobody has to"))


class Open(Shop):
    """The same, with a promise to those who come."""

    @accepts(Shop.come)
    def whoever_comes_is_let_in(self) -> Bool:
        return ~self.shut


class Street(Machine):
    """A shop is a part of it."""

    shop = part(Open)


def fate_of(machine: type[Machine], action: str) -> Fate:
    return evaluated(mutated(machine), f"disable / {action} / it is never enabled").fate


def test_a_request_that_is_always_refused_survives_until_a_property_promises_it() -> None:
    report = mutated(Shop)
    (finding,) = [f for f in report.unexplained if f.mutant.kind is Kind.DISABLE]
    assert (finding.mutant.action, finding.fate) == ("come", Fate.SURVIVED)
    assert "add an `@accepts`" in hint(finding, report.originals)
    assert fate_of(Open, "come") is Fate.CAUGHT


def test_a_fault_need_not_happen_and_needs_no_reason() -> None:
    report = mutated(Open)
    assert [f.mutant.id for f in report.unexplained if f.mutant.kind is Kind.DISABLE] == []
    why = {
        m.action: [r.text for r in m.reasons] for m in mutants_of(Open) if m.kind is Kind.DISABLE
    }
    assert why == {"come": [], "look": ["nobody has to"], "burn": ["it is a fault"]}


def test_a_reason_of_a_part_is_one_of_the_system_too() -> None:
    why = {
        m.action: [r.text for r in m.reasons] for m in mutants_of(Street) if m.kind is Kind.DISABLE
    }
    assert why["shop.look"] == ["nobody has to"]


def test_a_reason_for_no_action_means_every_action_of_the_machine() -> None:
    class Whatever(Shop):
        """The same."""

        more = equivalents(equivalent_disabled(because="it is a record"))

    why = {m.action: m.reasons for m in mutants_of(Whatever) if m.kind is Kind.DISABLE}
    assert all("it is a record" in [r.text for r in reasons] for reasons in why.values())


def test_a_reason_for_an_action_that_the_machine_does_not_have_is_reported() -> None:
    class Wrong(Shop):
        """The same, with a reason of another machine."""

        more = equivalents(equivalent_disabled(Other.leave, because="it stays"))

    assert [said.reason.text for said in unknown_actions([define(Wrong)])] == ["it stays"]
    with pytest.raises(DefinitionError, match="what is no action"):
        equivalent_disabled(print, because="it is none")


class Other(Machine):
    """Another machine."""

    gone: FlagVar = flag()

    @action
    def leave(self) -> None:
        """Somebody goes."""
        self.gone = True
