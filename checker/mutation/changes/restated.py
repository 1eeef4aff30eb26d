"""Which promises about steps repeat a guard: they hold of every step from every state, reachable or not.

Such a promise is what an action requires, or assigns, once more: it notices when the requirement is dropped,
and says nothing of what the machine is for. So what it alone notices is counted apart.
"""

from __future__ import annotations

from dataclasses import replace

from stagewright.checker.prove import prove
from stagewright.checker.symbolic.limits import Limits
from stagewright.spec.definition import Definition, PropertyKind
from stagewright.spec.errors import StagewrightError
from stagewright.spec.scope import Scope
from stagewright.spec.verdict import Outcome

_SECONDS = 20.0


def restated_guards(definition: Definition, scope: Scope) -> frozenset[str]:
    """The step properties that the solver proves of single steps, nothing assumed of where they begin."""
    of_steps = tuple(p for p in definition.properties if p.kind is PropertyKind.STEP)
    if not of_steps:
        return frozenset()
    names = [p.name for p in of_steps]
    alone = replace(definition, properties=of_steps)
    try:
        report = prove(
            alone, scope, max_k=1, depth=0, limits=Limits(seconds=_SECONDS), properties=names
        )
    except StagewrightError:
        return frozenset()
    if report.interrupted:  # which was meant for all of it
        raise KeyboardInterrupt
    return frozenset(v.name for v in report.verdicts if v.outcome is Outcome.HOLDS)
