"""Every reason why a mutant may survive is about something that its machine has: a guard, an effect, a step, an entry.

A guard that is called otherwise would lose its reason without this, and `mutate`, which says so too, takes minutes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from stagewright.checker.mutation.changes.replaced import replacements
from stagewright.checker.mutation.changes.shared_methods import changed_helpers
from stagewright.checker.mutation.report import MutationReport
from stagewright.machines import SHIPPED
from stagewright.spec.define import define, defined_afresh
from stagewright.spec.loading import find
from stagewright.spec.machine import profile_names

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", SHIPPED)
def test_each_reason_is_about_something(name: str) -> None:
    machine = find(name, SHIPPED)
    newest = define(machine)
    of_older = (define(machine, profile) for profile in profile_names(machine))
    changes = [
        *changed_helpers(newest, machine, partial(defined_afresh, machine, newest.profile)),
        *(mutant for action in newest.actions for mutant in replacements(newest, action)),
    ]
    found = MutationReport(newest, (), (), True, False, 0.0, with_parts=changes)
    if found.unmatched:
        found = replace(found, versions=[newest, *of_older])
    assert [(reason.subject, reason.text) for reason in found.unmatched] == []
