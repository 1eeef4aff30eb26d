"""What an older version breaks, its machine says (`known_violations`), and nothing else is broken.

By default the nearest states are searched, where most of what can go wrong shows; a thorough run searches all of them,
and then what is listed must show, at the default scope or at one that the machine is exercised at.
"""

from __future__ import annotations

import pytest
from tests.machines.violated import broken
from tests.thorough import THOROUGH, by_turns

from stagewright.checker.check import check
from stagewright.checker.engines import EngineKind
from stagewright.checker.limits import Limits
from stagewright.machines import SHIPPED
from stagewright.spec.declarations.exercised import exercising_scopes
from stagewright.spec.definition import Definition, PropertyKind
from stagewright.spec.loading import find, load
from stagewright.spec.machine import profile_names
from stagewright.spec.scope import Scope, scope_of

NEAREST = 5_000
OLDER = [
    (name, profile)
    for name in SHIPPED
    for profile in profile_names(find(name, SHIPPED))[:-1]  # the newest one is checked by itself
]
# Only a thorough run needs to know: each process that collects tests would load all older machines.
BREAKING = [
    (name, profile)
    for name, profile in (OLDER if THOROUGH else [])
    if load(name, profile, SHIPPED).known_violations
]
# Budgets of a scope at which a machine is not otherwise checked, and some listed promise shows.
FURTHER = {"index-rows": {"old_leaders": 1}}


def broken_at(definition: Definition, scope: Scope) -> set[str]:
    report = check(
        definition,
        scope,
        limits=Limits(states=None if THOROUGH else NEAREST),
        engine=EngineKind.AUTO if THOROUGH else EngineKind.NUMPY,
        workers=1,
        coverage=False,
        symmetry=True,
    )
    assert report.exhausted or report.states >= NEAREST
    return broken(report)


@pytest.mark.parametrize(("machine", "profile"), by_turns(OLDER))
def test_a_version_breaks_what_its_machine_says_and_nothing_else(
    machine: str, profile: str
) -> None:
    definition = load(machine, profile, SHIPPED)
    # What happens at all, at this scope or at another one, is asked of the newest version.
    witnesses = {p.name for p in definition.properties if p.kind is PropertyKind.SOMETIMES}
    found = broken_at(definition, scope_of(definition)) - witnesses
    assert found <= {known.promise for known in definition.known_violations}


@pytest.mark.thorough
@pytest.mark.parametrize(("machine", "profile"), by_turns(BREAKING))
def test_what_a_machine_lists_can_be_shown(machine: str, profile: str) -> None:
    definition = load(machine, profile, SHIPPED)
    listed = {k.promise for k in definition.known_violations if "." not in k.promise}
    default = scope_of(definition)
    further = [scope_of(definition, {}, FURTHER[machine])] if machine in FURTHER else []
    for scope in [default, *further, *exercising_scopes(definition)]:
        if listed:
            listed -= broken_at(definition, scope)
    assert not listed
