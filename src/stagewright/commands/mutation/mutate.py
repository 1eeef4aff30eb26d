"""Changes a machine in one place at a time, and says which of its properties notices."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.console.machine_flags import (
    add_machine,
    add_scope,
    count,
    positive,
    scope_from,
    seconds,
    workers,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stagewright.checker.limits import Limits
    from stagewright.checker.mutation.changes.mutants import Mutant
    from stagewright.checker.mutation.original import Original
    from stagewright.checker.mutation.report import MutationReport, Needed
    from stagewright.commands.mutation.progress import Lines
    from stagewright.spec.definition import Definition
    from stagewright.spec.machine import Machine
    from stagewright.spec.scope import Scope

_GRAVITY = (
    ExitCode.HOLDS,
    ExitCode.UNDECIDED,
    ExitCode.INTERRUPTED,
    ExitCode.VIOLATED,
    ExitCode.BAD_INPUT,
)
_KINDS = [kind.value for kind in Kind]
_SECONDS_EACH = 60.0
_STATES = 2_000_000

_EXAMPLE = """\
examples:
  stagewright mutate tablet-migration
  stagewright mutate tablet --budget crashes=0 --budget writes=1 --kind drop --action revert
  stagewright mutate tablet --scope crashes=0 --scope crashes=1,migrations=0 --timeout 600
  stagewright mutate tablet --max-mutants 50 --seed 7 --json
  stagewright mutate tablet-migration --mutant "drop / read_new / action done"
  stagewright mutate view-task --alone
  stagewright mutate view-task --property aborts_are_not_revoked
  stagewright mutate view-task --again docs/documents/mutants.json
  stagewright mutate tablet --reasons --timeout 600
  stagewright mutate --all --timeout 600 --out mutants
  stagewright mutate tablet --checkpoint mutants   # and again, after it was cut off
  stagewright mutate --known
  stagewright mutate --known my/machine.py:Counter

A mutant is the machine with one change: a guard is dropped or weakened (skip: a barrier waits for all but one); an
effect is lost (or all that a method assigns, or the action of a part that a system's step joins); a guard or an effect
names another member or parameter, or is off by one (replace); an entry of a table is swapped; a method that steps and
properties share returns something else for both (helper); a step is added; an action never happens (disable; faults
need not); or an action requires more (tighten): it is locked in a state, waits for all others, or requires what its
neighbour does. Survivors of the last kind are listed separately and do not affect the exit code: no property notices
them unless it says that something must happen.
A mutant is caught if a property fails at one of the machine's scopes (those of its `scopes(...)`, else the default
one), or if the definition is refused because a step would assign a variable twice. A survivor means a missing
property or a superfluous guard. If it is harmless, the machine gives the reason in a member
`harmless = equivalents(equivalent_drop(...), equivalent_loss(...), ...)`, by method and guard or by method
and variable. There are also equivalent_replacement, equivalent_step, equivalent_value, equivalent_helper,
equivalent_without and equivalent_disabled. A reason is stale if all its mutants are caught:
--reasons checks only that, each reason's mutants until one survives.
Fairness is weakened, too: assumptions that no property needs are listed and do not affect the exit code.
Mutants of a part of a system are checked with that part alone if the system says `checked_alone(part)`.

exit codes here: 0 every survivor has a reason, 1 one has none, or a reason is stale, 2 bad input,
or a reason matches nothing, 3 undecided within the limits
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright mutate``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLE
    add_machine(parser, optional=True)
    add = parser.add_argument
    add("--all", action="store_true", help="mutate every shipped machine, one line each")
    add(
        "--known",
        action="store_true",
        help="put back known bugs instead: the shipped ones, or those that your file declares",
    )
    add("--profile", default="", help="the version to mutate (default: the newest)")
    add_scope(parser)
    add(
        "--scope",
        action="append",
        default=[],
        metavar="NAME=N,...",
        help="check at this scope (repeatable)",
    )
    add("--kind", action="append", default=[], choices=_KINDS, help="only mutants of this kind")
    add("--action", action="append", default=[], metavar="NAME", help="only mutants of this action")
    add(
        "--mutant",
        metavar="TEXT",
        help="only mutants whose description contains TEXT; if there is just one, print its whole run",
    )
    add(
        "--parts",
        action="store_true",
        help="for a system: also mutants that are checked with one of its parts alone",
    )
    add(
        "--alone",
        action="store_true",
        help="for each property, also look for a mutant that it alone catches",
    )
    add(
        "--property",
        action="append",
        default=[],
        metavar="NAME",
        help="only look for what this property alone catches: a known bug, or the first such mutant at any scope, the "
        "smallest first (repeatable)",
    )
    add(
        "--again",
        type=Path,
        metavar="FILE",
        help="as --property, of all properties if none is named; tries first what FILE, a mutants.json, says that each alone "
        "caught before",
    )
    add(
        "--reasons",
        action="store_true",
        help="only find stale reasons: check each reason's mutants until one survives",
    )
    _add_limits(parser)
    add(
        "--checkpoint",
        type=Path,
        metavar="DIR",
        help="save each mutant's result there as it comes, and do not repeat those that are there",
    )
    add("--out", type=Path, metavar="DIR", help="write mutants.html and mutants.json there")
    add("--json", action="store_true", help="print one JSON object")
    add("--verbose", action="store_true", help="list every mutant, not only the survivors")


def _add_limits(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("limits")
    group.add_argument(
        "--workers", type=workers, metavar="N", help="processes (default: one per core)"
    )
    group.add_argument(
        "--timeout",
        type=seconds,
        metavar="S",
        help="stop after S seconds; --alone takes as long again",
    )
    group.add_argument(
        "--per-mutant",
        type=seconds,
        default=_SECONDS_EACH,
        metavar="S",
        help="give up on a mutant after S seconds (default: %(default)g)",
    )
    group.add_argument(
        "--max-states",
        type=positive,
        default=_STATES,
        metavar="N",
        help="give up a search after N states (default: %(default)s)",
    )
    group.add_argument("--max-mutants", type=positive, metavar="N", help="take N mutants at random")
    group.add_argument(
        "--seed",
        type=count,
        default=0,
        metavar="N",
        help="seed of --max-mutants (default: %(default)s)",
    )


def execute(args: argparse.Namespace) -> int:
    """Evaluate the mutants, print, and return the exit code that belongs to what was found."""
    from stagewright.commands.console.output import check_directory
    from stagewright.machines import SHIPPED
    from stagewright.spec.errors import InputError

    check_directory("--out", args.out)
    check_directory("--checkpoint", args.checkpoint)
    if args.known:
        from stagewright.commands.mutation.known import known

        return known(args)
    if (args.machine is None) == (not args.all):
        raise InputError(
            "a machine is named beside --all" if args.all else "no machine is named",
            help="name one machine, or ask for --all or --known",
        )
    chosen = args.kind or args.action or args.mutant or args.max_mutants or args.parts
    if args.reasons and (chosen or args.alone):
        raise InputError(
            "--reasons is about all mutants of each reason",
            help="leave out --kind, --action, --mutant, --max-mutants, --alone and --parts",
        )
    if args.property or args.again:
        if args.all or args.reasons:
            raise InputError(
                "--property and --again are about one machine, and look for mutants by themselves",
                help="leave out --all and --reasons",
            )
        from stagewright.commands.mutation.alone import alone

        return alone(args, _chosen, _scopes)
    names = list(SHIPPED) if args.all else [args.machine]
    documents: list[object] = []
    codes: list[ExitCode] = []
    for name in names:
        report = _mutated(name, args)
        codes.append(_code(report))
        documents += _show(name, report, args)
        if report.interrupted:
            break
    if args.json:
        whole = {"machines": documents} if args.all else documents[0]
        print(json.dumps(whole, indent=2, ensure_ascii=False))
    return max(codes, key=_GRAVITY.index)


def _show(name: str, report: MutationReport, args: argparse.Namespace) -> list[object]:
    """Print and write one report; as a document, if that is asked for."""
    from stagewright.commands.console.output import console
    from stagewright.commands.mutation.text import line_of, render

    document: list[object] = []
    if args.json or args.out:
        from stagewright.commands.mutation.json_report import document_of

        document = [document_of(report)]
    if args.out:
        _write(report, document[0], args.out / name if args.all else args.out)
    if args.all and not args.json:
        print(line_of(name, report), flush=True)
    elif not args.json:
        console().print(render(report, verbose=args.verbose), soft_wrap=True)
        if len(report.findings) == 1:
            _show_run(report, args)
    return document


def _show_run(report: MutationReport, args: argparse.Namespace) -> None:
    """The whole counterexample, where a single mutant was asked for."""
    from stagewright.checker.counterexample import render_text
    from stagewright.checker.limits import Limits
    from stagewright.checker.mutation.evaluation import Fate, counterexample
    from stagewright.commands.console.output import console

    (finding,) = report.findings
    if finding.evaluation.fate is Fate.CAUGHT and not finding.evaluation.states:
        console().print(f"\n{finding.evaluation.note}", markup=False)
    caught_at = [o for o in report.originals if str(o.scope) == finding.evaluation.scope]
    for original in caught_at:
        limits = Limits(states=args.max_states, seconds=args.per_mutant)
        found = counterexample(finding.mutant, original, limits)
        if found is not None and found[1].run is not None:
            console().print()
            console().print(render_text(*found, original.scope))


def _mutated(name: str, args: argparse.Namespace) -> MutationReport:
    from stagewright.checker.engines import cores
    from stagewright.checker.limits import Limits, Stop
    from stagewright.checker.mutation import fairness
    from stagewright.checker.mutation.alone import needed
    from stagewright.checker.mutation.changes.mutants import all_mutants, evaluated_here
    from stagewright.checker.mutation.changes.restated import restated_guards
    from stagewright.checker.mutation.checkpoint import Checkpoint
    from stagewright.checker.mutation.claims import Claims
    from stagewright.checker.mutation.report import Finding, MutationReport
    from stagewright.checker.mutation.run import Budget, evaluate_all
    from stagewright.commands.mutation.progress import progress_on
    from stagewright.machines import SHIPPED
    from stagewright.spec.define import define
    from stagewright.spec.loading import find

    started = time.monotonic()
    machine = find(name, SHIPPED)
    definition = define(machine, args.profile)
    scopes = _scopes(definition, args)
    processes = cores() if args.workers is None else args.workers
    everything = all_mutants(definition, machine)
    asked = _chosen(everything, definition, args)
    mutants = asked if args.parts else evaluated_here(definition, asked)
    here = set(map(id, mutants))
    claims = Claims(definition, mutants) if args.reasons else None
    todo = range(len(mutants)) if claims is None else claims.any_of
    with progress_on(sys.stderr, definition, len(todo)) as lines:
        limits = Limits(states=args.max_states, seconds=args.timeout)
        originals = _originals(definition, scopes, limits, lines)
        spent = time.monotonic() - started
        left = None if args.timeout is None else max(0.0, args.timeout - spent)
        kept = None
        if args.checkpoint is not None:
            kept = Checkpoint(args.checkpoint, definition, scopes, mutants)
            lines.resumed(sum(index in kept.known for index in todo))
        evaluations, interrupted = evaluate_all(
            mutants,
            originals,
            Budget(left, args.per_mutant, args.max_states),
            workers=processes,
            checkpoint=kept,
            claims=claims,
            on_evaluated=lines.evaluated,
        )
    pairs = enumerate(zip(mutants, evaluations, strict=True))
    found = [Finding(m, j) for i, (m, j) in pairs if claims is None or claims.asks(i)]
    needs: Mapping[str, Needed] = {}
    if args.alone and not interrupted:
        each = Budget(args.timeout, args.per_mutant, args.max_states)
        needs = needed(definition, originals, found, each, workers=processes)
    assumed = None
    whole = claims is None and len(asked) == len(everything)
    if whole and originals and not interrupted:
        assumed = fairness.assumed(originals, Stop(limits, started))
    return MutationReport(
        definition,
        originals,
        found,
        whole and definition.profile == define(machine).profile,
        interrupted,
        time.monotonic() - started,
        _versions(machine, definition),
        restated_guards(definition, originals[0].scope) if originals else frozenset(),
        [mutant for mutant in asked if id(mutant) not in here],
        assumed,
        needs,
        args.reasons,
    )


def _originals(
    definition: Definition, scopes: Sequence[Scope], limits: Limits, lines: Lines
) -> list[Original]:
    """The definition itself at each scope, the smallest first."""
    from stagewright.checker.mutation.original import original_at

    originals: list[Original] = []
    for scope in scopes:
        originals.append(original_at(definition, scope, limits))
        lines.original(originals[-1])
    return sorted(originals, key=lambda original: original.count)


def _versions(machine: type[Machine], definition: Definition) -> list[Definition]:
    """The definition, then those of the other profiles: what is said of one may be of another."""
    from stagewright.spec.define import define
    from stagewright.spec.machine import profile_names

    others = [name for name in profile_names(machine) if name != definition.profile]
    return [definition, *(define(machine, name) for name in others)]


def _scopes(definition: Definition, args: argparse.Namespace) -> Sequence[Scope]:
    """Those of --scope, or the one of --size and --budget, or those that the definition names."""
    from stagewright.spec.declarations.exercised import exercising_scopes
    from stagewright.spec.errors import InputError

    if args.scope and (args.size or args.budget):
        raise InputError(
            "--scope and --size or --budget are both given", help="write sizes into --scope too"
        )
    if args.scope:
        found = [scope_named(definition, text) for text in args.scope]
        return list(dict.fromkeys(found))
    if args.size or args.budget:
        return [scope_from(definition, args.size, args.budget)]
    return exercising_scopes(definition)


def scope_named(definition: Definition, text: str) -> Scope:
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    budgets = {budget.name for budget in definition.budgets}
    of_budgets = [e for e in entries if e.partition("=")[0] in budgets]
    return scope_from(definition, [e for e in entries if e not in of_budgets], of_budgets)


def _chosen(
    everything: list[Mutant], definition: Definition, args: argparse.Namespace
) -> list[Mutant]:
    from stagewright.spec.errors import InputError

    known = [action.name for action in definition.actions]
    for name in args.action:
        if name not in known:
            raise InputError(
                f"{definition.name} has no action `{name}`", help=f"known: {', '.join(known)}"
            )
    found = [
        mutant
        for mutant in everything
        if (not args.kind or mutant.kind.value in args.kind)
        and (not args.action or mutant.action in args.action)
        and (not args.mutant or args.mutant in mutant.id)
    ]
    if args.max_mutants is not None and args.max_mutants < len(found):
        # What is taken must not depend on how many there are before it in the file.
        order = random.Random(args.seed).sample(range(len(found)), args.max_mutants)
        found = [found[i] for i in sorted(order)]
    return found


def _write(report: MutationReport, document: object, directory: Path) -> None:
    from stagewright.checker.counterexample.files import write_whole
    from stagewright.checker.mutation.page import render_page
    from stagewright.commands.reports.places import path_of

    directory.mkdir(parents=True, exist_ok=True)
    text = json.dumps(document, indent=2, ensure_ascii=False)
    write_whole(directory / "mutants.json", text + "\n")
    write_whole(directory / "mutants.html", render_page(report, path_of))


def _code(report: MutationReport) -> ExitCode:
    if report.unmatched:
        return ExitCode.BAD_INPUT
    if report.unexplained or report.stale:
        return ExitCode.VIOLATED
    if report.interrupted:
        return ExitCode.INTERRUPTED
    return ExitCode.UNDECIDED if report.undecided else ExitCode.HOLDS
