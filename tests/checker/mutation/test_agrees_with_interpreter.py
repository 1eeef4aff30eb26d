"""On random machines a mutant is caught exactly if the reference interpreter says that something breaks."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

from hypothesis import HealthCheck, Phase, given, settings
from tests.random_machines.definitions import RandomMachine, machines
from tests.random_machines.explored import Explored, TooLargeError
from tests.thorough import THOROUGH, examples

from stagewright.checker.limits import Limits
from stagewright.checker.mutation.changes.mutants import Mutant, all_mutants
from stagewright.checker.mutation.evaluation import Fate, evaluate
from stagewright.checker.mutation.original import original_at
from stagewright.checker.verdicts import IN_BOUNDS
from stagewright.spec.definition import NO_DEADLOCK, PropertyKind
from stagewright.spec.errors import DefinitionError
from stagewright.spec.verdict import Outcome

EXAMPLES = examples(36)
MUTANTS = 8  # of each machine
MOST_STATES = 80
PATIENT = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]


def without_fair_runs(machine: RandomMachine) -> RandomMachine:
    """The machine without what must come true in every fair run, which the explorer does not decide."""
    kept = tuple(p for p in machine.definition.properties if p.kind is not PropertyKind.EVENTUALLY)
    return replace(machine, definition=replace(machine.definition, properties=kept))


def broken_in(found: Explored) -> set[str]:
    names = {
        p.name for p in found.machine.definition.properties if found.verdict(p) is Outcome.VIOLATED
    }
    names |= {NO_DEADLOCK} if found.no_deadlock is Outcome.VIOLATED else set()
    return names | ({IN_BOUNDS} if found.overflows else set())


def explored(machine: RandomMachine) -> Explored | None:
    try:
        return Explored(machine, MOST_STATES)
    except (TooLargeError, DefinitionError):
        return None


def agree(machine: RandomMachine, mutant: Mutant, before: Explored) -> Fate | None:
    changed = replace(machine, definition=mutant.made())
    after = explored(changed)
    if after is None:
        return None
    original = original_at(machine.definition, machine.scope, Limits())
    found = evaluate(mutant, [original], Limits())
    old, new = broken_in(before), broken_in(after)
    assert set(original.broken) == old
    if IN_BOUNDS in new:  # what lies beyond an overflow is not defined
        assert found.fate is Fate.CAUGHT
        return found.fate
    assert (found.fate is Fate.CAUGHT) == bool(new - old)
    assert set(found.by) <= new - old
    same = before.states == after.states and set(before.edges) == set(after.edges)
    if found.fate in {Fate.REDUNDANT, Fate.SAME}:
        assert same
    if found.fate is Fate.SURVIVED:
        assert not same
    return found.fate


def test_random_mutants_are_checked_as_the_interpreter_evaluates_them() -> None:
    fates: Counter[Fate | None] = Counter()

    @settings(max_examples=EXAMPLES, suppress_health_check=PATIENT, phases=[Phase.generate])
    @given(machines())
    def look(machine: RandomMachine) -> None:
        machine = without_fair_runs(machine)
        before = explored(machine)
        if before is None or not before.initial or before.overflows:
            return
        mutants = all_mutants(machine.definition)
        for mutant in Random(0).sample(mutants, min(MUTANTS, len(mutants))):
            fates[agree(machine, mutant, before)] += 1

    look()
    assert fates[Fate.CAUGHT] > (5 if THOROUGH else 1)
    assert fates[Fate.REDUNDANT] > (5 if THOROUGH else 1)
    assert fates[Fate.SURVIVED] > (5 if THOROUGH else 1)
