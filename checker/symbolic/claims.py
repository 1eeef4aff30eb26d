"""What is to be proved: promises about every state, or about every step, as ground conditions."""

from __future__ import annotations

from dataclasses import dataclass

from stagewright.spec.definition import NO_DEADLOCK, Property, PropertyKind
from stagewright.spec.grounding.ground import GroundModel, GroundNode, GroundProperty

HANDLES = frozenset({PropertyKind.INVARIANT, PropertyKind.STEP, PropertyKind.ACCEPTS})
LOOKED_FOR = frozenset(
    {PropertyKind.SOMETIMES, PropertyKind.SOMETIMES_STEP, PropertyKind.RESTRICTED}
)
"""Decided by the opposite claim, that it is never so, where it has no parameters and no scope of its own."""

IN_BOUNDS = "assigned values stay in bounds"


@dataclass(frozen=True)
class Claim:
    """A promise that holds when all conditions do: of each state, or of each step (`of_step`)."""

    name: str
    of_step: bool
    conditions: tuple[GroundNode, ...]


def is_handled(prop: Property) -> bool:
    """Whether this method can decide a property."""
    # The parameters of a restriction are quantified where it is spelled out.
    if prop.kind in LOOKED_FOR:
        open_ended = prop.params and prop.kind is not PropertyKind.RESTRICTED
        return not open_ended and prop.at is None
    return prop.kind in HANDLES


def claims_of(
    model: GroundModel, names: frozenset[str] | None = None, *, deadlock: bool = False
) -> list[Claim]:
    """The claims this method can decide, in the definition's order and bounds last.

    `names` restricts them to those. The absence of deadlock is among them only if asked for, by `deadlock` or
    by its name.
    """
    order = [p.name for p in model.definition.properties]
    claims = _grouped(model.invariants, of_step=False)
    claims += _grouped(model.step_properties, of_step=True)
    never = model.builder.not_
    for found, of_step in ((model.witnesses, False), (model.step_witnesses, True)):
        claims += [
            Claim(p.property.name, of_step, (never(p.condition),))
            for p in found
            if is_handled(p.property)
        ]
    claims.sort(key=lambda claim: order.index(claim.name))
    if deadlock or (names is not None and NO_DEADLOCK in names):
        claims.append(_no_deadlock(model))
    claims.append(_in_bounds(model))
    return [c for c in claims if names is None or c.name in names]


def _in_bounds(model: GroundModel) -> Claim:
    """No enabled step assigns a value outside its cell's bounds."""
    build = model.builder
    safe = [build.not_(build.and_((step.guard, step.overflows))) for step in model.steps]
    return Claim(IN_BOUNDS, False, tuple(c for c in safe if c is not build.true))


def _no_deadlock(model: GroundModel) -> Claim:
    """Some step that spends no budget is enabled, or the state may be the last one."""
    guards = [step.guard for step in model.steps if not step.action.spends]
    going_on = model.builder.or_([*guards, model.final])
    return Claim(NO_DEADLOCK, False, (going_on,))


def _grouped(properties: tuple[GroundProperty, ...], *, of_step: bool) -> list[Claim]:
    conditions: dict[str, list[GroundNode]] = {}
    for p in properties:
        conditions.setdefault(p.property.name, []).append(p.condition)
    return [Claim(name, of_step, tuple(found)) for name, found in conditions.items()]
