"""`check` and `prove` at the other scopes that a definition names: what breaks only there is found without asking.

A definition says by `exercised_at = scopes({}, {Node: 3, losses: 2})` where it is to be looked at. Its default
scope gets the whole report; of each other one it is checked that nothing breaks. Witnesses are not sought there,
unless they name the scope: a smaller scope need not have them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stagewright.checker.limits import Limits
    from stagewright.commands.reports.result import Result
    from stagewright.spec.definition import Definition
    from stagewright.spec.scope import Scope
    from stagewright.spec.verdict import Outcome


@dataclass(frozen=True)
class OtherScope:
    """A scope that is not the default one, and the properties that are decided there."""

    scope: Scope
    properties: tuple[str, ...]


def add_default_scope(parser: argparse.ArgumentParser) -> None:
    """Declare --default-scope."""
    parser.add_argument(
        "--default-scope",
        action="store_true",
        help="take the default scope only, not also the others that the definition names "
        "(`exercised_at`)",
    )


def other_scopes(
    definition: Definition, args: argparse.Namespace, *, deadlock: bool
) -> Iterator[OtherScope]:
    """The scopes to look at after the default one; none where the command line names one."""
    from stagewright.spec.declarations.exercised import exercising_scopes
    from stagewright.spec.scope import scope_of

    if args.default_scope or args.size or args.budget:
        return
    for scope in exercising_scopes(definition):
        known = _decided_at(definition, scope, deadlock=deadlock)
        names = tuple(name for name in known if not args.property or name in args.property)
        if scope != scope_of(definition) and names:
            yield OtherScope(scope, names)


def _decided_at(definition: Definition, scope: Scope, *, deadlock: bool) -> Iterator[str]:
    from stagewright.checker.verdicts import IN_BOUNDS
    from stagewright.spec.declarations.exercised import scope_of_difference
    from stagewright.spec.definition import NO_DEADLOCK, PropertyKind

    witnesses = (PropertyKind.SOMETIMES, PropertyKind.SOMETIMES_STEP, PropertyKind.RESTRICTED)
    for p in definition.properties:
        here = p.at is not None and scope_of_difference(definition, p.at) == scope
        if p.kind not in witnesses or here:
            yield p.name
    if definition.deadlock_allowed is None and deadlock:
        yield NO_DEADLOCK
    yield IN_BOUNDS


def check_at(
    other: OtherScope,
    definition: Definition,
    args: argparse.Namespace,
    limits: Limits,
    directory: Path | None,
    reproduce: str,
) -> Result:
    """Search a machine at another scope than the default one."""
    from stagewright.checker.check import check
    from stagewright.checker.engines import EngineKind
    from stagewright.commands.console.progress import progress_on
    from stagewright.commands.reports.result import Result, written

    with progress_on(sys.stderr, f"checking {definition.name} at {other.scope}") as progress:
        report = check(
            definition,
            other.scope,
            limits=limits,
            progress=progress,
            properties=other.properties,
            engine=EngineKind(args.engine),
            workers=args.workers,
            coverage=False,
            keep=not args.lean,
            symmetry=not args.no_symmetry,
        )
    files = written(report, other.scope, directory) if directory else ()
    return Result(report, other.scope, files, reproduce, args.witnesses)


def print_others(
    results: Sequence[Result], says: Callable[[Result], str], lines: Collection[Outcome]
) -> None:
    """A line for each scope with an outcome of `lines`; for another one the whole report."""
    from rich.text import Text

    from stagewright.commands.console.output import console
    from stagewright.commands.reports.result import print_result
    from stagewright.spec.verdict import Outcome

    short = [r for r in results if r.report.outcome in lines]
    if short:
        console().print("also at the other scopes that the definition names:")
    for result in short:
        held = result.report.outcome is Outcome.HOLDS
        line = Text("  ✓  " if held else "  ?  ", style="green" if held else "yellow")
        line.append(f"{_difference(result.report.definition, result.scope)}: {says(result)}")
        line.append(f", {result.report.seconds:.1f} s")
        console().print(line, soft_wrap=True)
    for result in results:
        if result not in short:
            print_result(result)


def print_searched(results: Sequence[Result]) -> None:
    """The same of searches: how many states there are where all holds."""
    from stagewright.spec.verdict import Outcome

    def says(result: Result) -> str:
        return f"{result.report.states:,} {states_or_orbits(result)}"

    print_others(results, says, (Outcome.HOLDS,))


def _difference(definition: Definition, scope: Scope) -> str:
    """What makes a scope another one than the default: `Node=3, losses=2`."""
    from stagewright.spec.scope import scope_of

    default = scope_of(definition)
    parts = [
        f"{kind.__name__}={size}"
        for kind, size in scope.sizes.items()
        if default.sizes[kind] != size
    ]
    parts += [
        f"{name}={'any' if limit is None else limit}"
        for name, limit in scope.budgets.items()
        if default.budgets[name] != limit
    ]
    return ", ".join(parts)


def states_or_orbits(result: Result) -> str:
    """What was counted: with symmetry, one state of each orbit."""
    reduction = result.report.reduction
    return "orbits" if reduction is not None and reduction.used else "states"
