"""What is only seen, a log or a record, may leave no step out: the machine that takes it would take none.

Such a machine gives one reason why any of its actions may never happen (`equivalent_disabled` of no action): that another
machine does what is seen. So without an action some shipped refinement into it has to fail, or a property of its own; what
neither needs, the machine names with a reason of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

import pytest

from stagewright.checker.explicit.exploration import Exploration
from stagewright.checker.limits import Limits
from stagewright.checker.mutation.changes.disabled import disabled
from stagewright.checker.mutation.evaluation import Fate, evaluate
from stagewright.checker.mutation.original import original_at
from stagewright.checker.refinement.verdicts import Searching, decide
from stagewright.machines import REFINEMENTS, SHIPPED
from stagewright.spec import Machine, Refinement
from stagewright.spec.declarations.exercised import exercising_scopes
from stagewright.spec.define import define
from stagewright.spec.definition import EquivalentDisabled
from stagewright.spec.loading import find
from stagewright.spec.machine import profile_names
from stagewright.spec.refinement import Mapped, refinements_in
from stagewright.spec.scope import Scope
from stagewright.spec.verdict import Outcome

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

DECLARED = [one for place in REFINEMENTS for one in refinements_in(import_module(place))]


def said_of(machine: type[Machine]) -> list[EquivalentDisabled]:
    """Why actions of the machine itself may never happen."""
    found = define(machine).equivalents
    return [e for e in found if isinstance(e, EquivalentDisabled) and not e.prefix]


def seen_only() -> Iterator[str]:
    for called in SHIPPED:
        if any(not said.actions for said in said_of(find(called, SHIPPED))):
            yield called


def cases() -> Iterator[ParameterSet]:
    for called in seen_only():
        marks = [pytest.mark.long] if called == "topology-transition" else []
        yield pytest.param(called, marks=marks)


def actions_of(machine: type[Machine]) -> set[str]:
    """Under whatever profile."""
    profiles = profile_names(machine) or [""]
    return {action.name for profile in profiles for action in define(machine, profile).actions}


class Fails:
    """Whether a refinement fails; what the concrete machine does is searched once."""

    def __init__(self, mapped: Mapped) -> None:
        self.mapped = mapped
        self.concrete = mapped.concrete.fingerprint()
        self.known: dict[tuple[str, Scope], Exploration] = {}

    def without(self, action: str) -> bool:
        """The seen machine has the action no more."""
        (mutant,) = (m for m in disabled(self.mapped.seen) if m.action == action)
        how = Searching(Limits(), known=dict(self.known))
        changed = replace(self.mapped, seen=mutant.made())
        verdict = decide(changed, self.mapped.scopes, how)
        self.known |= {key: x for key, x in how.known.items() if key[0] == self.concrete}
        return verdict.outcome is Outcome.VIOLATED


def needed_by(refinements: Iterable[Refinement], names: set[str]) -> set[str]:
    """Those of the actions without which one of the refinements fails, under one of its profiles."""
    found: set[str] = set()
    for given in refinements:
        for profile in reversed(list(given.covered)):
            fails = Fails(given.mapped(profile))
            there = {a.name for a in fails.mapped.seen.actions}
            found |= {name for name in sorted(names & there - found) if fails.without(name)}
    return found


def noticed_by(machine: type[Machine], names: set[str]) -> set[str]:
    """Those without which a property of the machine fails, under its newest profile."""
    definition = define(machine)
    originals = [original_at(definition, s, Limits()) for s in exercising_scopes(definition)]
    mutants = [mutant for mutant in disabled(definition) if mutant.action in names]
    return {m.action for m in mutants if evaluate(m, originals, Limits()).fate is Fate.CAUGHT}


@pytest.mark.parametrize("called", list(cases()))
def test_every_step_of_what_is_seen_is_needed_or_has_a_reason(called: str) -> None:
    machine = find(called, SHIPPED)
    into = [given for given in DECLARED if given.seen is machine]
    named = {name for said in said_of(machine) for name in said.actions}
    taken = actions_of(machine) - named
    left = taken - needed_by(into, taken)
    assert noticed_by(machine, left) == left


def test_there_are_such_machines() -> None:
    assert {"topology-transition", "topology-node", "recorded-replica"} <= set(seen_only())


def test_a_step_that_nobody_takes_is_found() -> None:
    """Who streams in a session leaves, and is rolled back; nobody joins."""
    (given,) = (g for g in DECLARED if g.name == "what_opens_a_session")
    assert needed_by([given], {"accept", "start_leaving", "roll_back_leave"}) == {
        "start_leaving",
        "roll_back_leave",
    }
