"""The one call from a definition to proofs: bounded search and k-induction with Z3."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

from stagewright.checker.symbolic.certificates import make_directory, write_scripts
from stagewright.checker.symbolic.claims import IN_BOUNDS, LOOKED_FOR, claims_of, is_handled
from stagewright.checker.symbolic.interrupts import interruptible
from stagewright.checker.symbolic.limits import DEFAULT_DEPTH, DEFAULT_K, Limits, Progress
from stagewright.checker.symbolic.proof import Proof, Stop
from stagewright.checker.symbolic.z3_terms import Clock
from stagewright.spec.definition import NO_DEADLOCK, Definition, Property
from stagewright.spec.errors import InputError
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.scope import Scope
from stagewright.spec.text.suggestions import known_names
from stagewright.spec.verdict import Outcome, PropertyVerdict, Report

METHOD = "k-induction and bounded search with Z3"


def _silent(_: Progress) -> None:
    """Say nothing."""


def not_handled(definition: Definition) -> tuple[Property, ...]:
    """The properties that this method cannot decide: `check` does."""
    return tuple(p for p in definition.properties if not is_handled(p))


def prove(
    definition: Definition,
    scope: Scope,
    *,
    max_k: int = DEFAULT_K,
    depth: int = DEFAULT_DEPTH,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    progress: Callable[[Progress], None] = _silent,
    properties: Collection[str] = (),
    deadlock: bool = False,
    simple_paths: bool = False,
    smtlib: Path | None = None,
) -> Report:
    """Prove or refute a definition's invariants and step properties at a scope.

    Tries k-induction up to `max_k` and looks for violations up to `depth` steps. `properties` restricts the
    proof to those; one of a kind that is not handled is then UNDECIDED, else it is left out. `smtlib` names a
    directory for the verification conditions. What was found before an interrupt or a limit is kept; the first Ctrl-C
    while this runs ends the proof.

    Raises:
        InputError: there is no promise of that name, a bound is below 1, or `smtlib` cannot be written.
        ScopeError: the scope leaves no initial state, or too many.
    """
    if max_k < 1 or depth < 0:
        raise InputError(
            f"k = {max_k} and depth = {depth} leave nothing to prove",
            help="k must be at least 1 and depth at least 0",
        )
    names = _known(definition, properties, deadlock=deadlock)
    if smtlib is not None:
        make_directory(smtlib)
    clock = Clock(limits.seconds, limits.rlimit)
    with interruptible(clock):
        model = ground(definition, scope)
        claims = claims_of(model, names, deadlock=deadlock)
        proof = Proof(definition, model, claims, clock, simple=simple_paths, progress=progress)
        found = proof.decide(max_k, depth)
    looked_for = {p.name for p in definition.properties if p.kind in LOOKED_FOR}
    decided = tuple(_opposite(v) if v.name in looked_for else v for v in found)
    if smtlib is not None:
        write_scripts(proof.scripts(), smtlib)
    others = not_handled(definition)
    asked = [p for p in others if p.name in properties]
    verdicts = (*decided, *map(_left_to_check, asked))
    return Report(
        definition,
        str(scope),
        METHOD,
        verdicts,
        depth=max(0, proof.cleared),
        exhausted=all(v.outcome is not Outcome.UNDECIDED for v in verdicts),
        seconds=clock.elapsed(),
        interrupted=proof.stopped is Stop.INTERRUPTED,
        note=_note(proof.stopped, [p.name for p in others] if not properties else []),
    )


def _opposite(never: PropertyVerdict) -> PropertyVerdict:
    """What the verdict on "never" says of "sometimes"."""
    match never.outcome:
        case Outcome.VIOLATED:
            steps = 0 if never.run is None else len(never.run.steps)
            note = f"some run reaches it, in {steps} step{'' if steps == 1 else 's'}"
            return replace(never, outcome=Outcome.HOLDS, note=note, run=None, witness=never.run)
        case Outcome.HOLDS:
            note = f"no run reaches it: {never.note}"
            return replace(never, outcome=Outcome.VIOLATED, note=note)
        case Outcome.UNDECIDED:
            return replace(never, note=f"no run reaches it yet: {never.note}", run=None)


def _note(stopped: Stop | None, left: list[str]) -> str:
    """Why the proof ended early, and what it left out."""
    parts = [] if stopped is None or stopped is Stop.BOUNDS else [stopped.value]
    if left:
        parts.append(f"left to `stagewright check`: {', '.join(left)}")
    return "; ".join(parts)


def _left_to_check(prop: Property) -> PropertyVerdict:
    note = (
        "this method does not decide such properties ("
        + prop.kind.value
        + "): use `stagewright check`"
    )
    return PropertyVerdict(prop.name, Outcome.UNDECIDED, "none", note)


def _known(
    definition: Definition, wanted: Collection[str], *, deadlock: bool
) -> frozenset[str] | None:
    """The names asked for, with the deadlock check if that was asked for too; None: all."""
    if not wanted:
        return None
    known = [*(p.name for p in definition.properties), IN_BOUNDS, NO_DEADLOCK]
    for name in wanted:
        if name not in known:
            raise InputError(
                f"{definition.name} has no property named `{name}`",
                help=known_names(name, known, "`stagewright show MACHINE`"),
            )
    return frozenset({*wanted, NO_DEADLOCK} if deadlock else wanted)
