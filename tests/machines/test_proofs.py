"""Promises of control machines are proved: with the lemmas that stand beside them, for runs of any length."""

from __future__ import annotations

import pytest

from stagewright.checker.prove import prove
from stagewright.machines import SHIPPED
from stagewright.spec.loading import load
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome


@pytest.mark.parametrize(
    "name",
    [
        "tablet-resize",
        "intranode-migration",
        "cdc-generations",
        "partition-queries",
    ],
)
def test_every_promise_about_states_and_steps_is_proved(name: str) -> None:
    definition = load(name, "", SHIPPED)
    report = prove(definition, scope_of(definition), max_k=1, depth=0)
    left = {v.name for v in report.verdicts if v.outcome is not Outcome.HOLDS}
    assert left == set()
