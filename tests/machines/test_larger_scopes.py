"""A machine keeps its properties with one more fault, request or member than its scopes have, as far as a short search goes.

A property that holds only because its scopes are small is false, and a number that is too small for the next scope is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stagewright.checker.check import check
from stagewright.checker.limits import Limits
from stagewright.machines import SHIPPED
from stagewright.spec.declarations.exercised import exercising_scopes
from stagewright.spec.definition import Definition, PropertyKind
from stagewright.spec.errors import InitialStatesError
from stagewright.spec.loading import load
from stagewright.spec.scope import Scope
from stagewright.spec.values import FrozenMap
from stagewright.spec.verdict import Outcome

pytestmark = pytest.mark.thorough

WITNESSES = {PropertyKind.SOMETIMES, PropertyKind.SOMETIMES_STEP, PropertyKind.RESTRICTED}
SHORT = Limits(states=20_000, seconds=20)


@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_breaks_with_one_more(name: str) -> None:
    definition = load(name, "", SHIPPED)
    witnesses = {p.name for p in definition.properties if p.kind in WITNESSES}
    broken: dict[str, set[str]] = {}
    for scope in dict.fromkeys(_with_one_more(definition)):
        try:
            report = check(definition, scope, workers=1, coverage=False, limits=SHORT)
        except InitialStatesError:
            continue  # each tablet of `index-build` needs a row
        found = {v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED} - witnesses
        if found:
            broken[str(scope)] = found
    assert broken == {}


def _with_one_more(definition: Definition) -> Iterator[Scope]:
    for scope in exercising_scopes(definition):
        for name, most in scope.budgets.items():
            if most is not None:
                yield Scope(scope.sizes, FrozenMap({**scope.budgets, name: most + 1}))
        for kind, members in scope.sizes.items():
            if not kind.member_names:
                yield Scope(FrozenMap({**scope.sizes, kind: members + 1}), scope.budgets)
