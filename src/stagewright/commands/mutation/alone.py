"""`stagewright mutate MACHINE --property NAME`: looks for what that property alone catches.

As JSON: {"machine", "profile", "fingerprint", "seconds", "scopes": [{"scope", "states"}], "needs": {property: {"need":
"alone", "shared", "nothing", "implied" or "undecided", "mutant": one that it alone catches, or a known bug, or null,
"scope", "implied_by": [properties]}}}.
Where scopes or mutants are chosen on the command line, nothing is known of the others: what has no mutant then is undecided.

`--again FILE` tries first what FILE says that each property alone caught, at the scope where it did: after a change
elsewhere in the machine it mostly still does, and that is far less than a search. FILE is what `--out` wrote, or the
`mutants.json` beside the pages of documents.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode

if TYPE_CHECKING:
    from stagewright.checker.mutation.changes.mutants import Mutant
    from stagewright.checker.mutation.exclusive import Sought
    from stagewright.checker.mutation.original import Original
    from stagewright.spec.definition import Definition
    from stagewright.spec.known_bugs import KnownBug
    from stagewright.spec.machine import Machine
    from stagewright.spec.scope import Scope

Chosen = Callable[["list[Mutant]", "Definition", argparse.Namespace], "list[Mutant]"]
Scopes = Callable[["Definition", argparse.Namespace], "Sequence[Scope]"]


def alone(args: argparse.Namespace, chosen: Chosen, scopes_of: Scopes) -> int:
    """Look for a known bug, then for a mutant, that each named property alone catches; print and write."""
    from stagewright.checker.check import only
    from stagewright.checker.limits import Limits
    from stagewright.checker.mutation.exclusive import (
        Sought,
        at_any_scope,
        bugs_alone,
        lemmas_beside,
    )
    from stagewright.checker.mutation.implied import implied
    from stagewright.checker.mutation.report import Need
    from stagewright.commands.mutation.mutate import scope_named
    from stagewright.machines import SHIPPED
    from stagewright.spec.define import define
    from stagewright.spec.errors import StagewrightError
    from stagewright.spec.loading import find
    from stagewright.spec.scope import scope_of

    started = time.monotonic()
    machine = find(args.machine, SHIPPED)
    definition = define(machine, args.profile)
    lemmas = () if args.property else tuple(lemmas_beside(definition, ()))
    promises = [p.name for p in definition.properties if p.name not in lemmas]
    names = tuple(dict.fromkeys(args.property or promises))
    only(definition, names)  # all names are known
    widely = at_any_scope(definition)
    mutants = _mutants(machine, widely, args, chosen)
    limits = Limits(states=args.max_states, seconds=args.per_mutant)
    found = dict(bugs_alone(definition, _bugs(args.machine), names, limits))
    if args.again:
        earlier = _earlier(args.again, args.machine, [n for n in names if n not in found])
        usual = {str(scope): scope for scope in scopes_of(definition, args)}
        for (example, at), asked in earlier.items():
            again = [mutant for mutant in mutants if mutant.id == example]
            scope = usual.get(at)
            with suppress(StagewrightError):  # a scope that the definition had then
                scope = scope or scope_named(definition, at)
            if again and scope is not None:
                _, caught = _searched(widely, [scope], again, asked, args)
                found |= {n: s for n, s in caught.items() if s.need is Need.ALONE}
    lacking = [name for name in names if name not in found]
    originals: list[Original] = []
    if lacking and not mutants:
        found |= dict.fromkeys(lacking, Sought(Need.UNDECIDED))
    elif lacking:
        scopes = scopes_of(definition, args)
        originals, caught = _searched(widely, scopes, mutants, lacking, args)
        found |= caught
    some = args.kind or args.action or args.mutant or args.max_mutants
    if some or args.scope or args.size or args.budget:
        found = {n: s if s.example else Sought(Need.UNDECIDED) for n, s in found.items()}
    found |= dict.fromkeys(lemmas, Sought(Need.UNDECIDED))  # nobody relies on them
    lacking = [name for name in (*lacking, *lemmas) if found[name].need is not Need.ALONE]
    seconds = args.per_mutant if args.timeout is None else min(args.per_mutant, args.timeout)
    for name, others in implied(definition, scope_of(definition), lacking, seconds).items():
        found[name] = Sought(Need.IMPLIED, implied_by=others)
    needs = {name: found[name] for name in (*names, *lemmas)}
    _show(definition, originals, needs, time.monotonic() - started, args)
    return _code(needs)


def _mutants(
    machine: type[Machine], widely: Definition, args: argparse.Namespace, chosen: Chosen
) -> list[Mutant]:
    """Those that were chosen; without those of parts that are checked alone, unless they are asked for."""
    from stagewright.checker.mutation.changes.mutants import all_mutants, evaluated_here
    from stagewright.checker.mutation.exclusive import at_any_scope
    from stagewright.spec.define import defined_afresh

    afresh = partial(defined_afresh, machine, widely.profile)
    mutants = chosen(all_mutants(widely, machine, lambda: at_any_scope(afresh())), widely, args)
    return mutants if args.parts else list(evaluated_here(widely, mutants))


def _earlier(file: Path, machine: str, names: Sequence[str]) -> Mapping[tuple[str, str], list[str]]:
    """The properties that alone caught a mutant, by the mutant and the scope."""
    from stagewright.spec.errors import InputError

    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        needs = kept["needs"] if "needs" in kept else kept.get(machine, {"needs": {}})["needs"]
        found: dict[tuple[str, str], list[str]] = {}
        for name in names:
            need = needs.get(name, {})
            if need.get("need") == "alone" and need.get("scope") and need.get("mutant"):
                found.setdefault((need["mutant"], need["scope"]), []).append(name)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{file} does not hold what `mutate --out` wrote: {error}",
            help="name a mutants.json",
        ) from None
    return found


def _searched(
    widely: Definition,
    scopes: Sequence[Scope],
    mutants: Sequence[Mutant],
    names: Sequence[str],
    args: argparse.Namespace,
) -> tuple[list[Original], Mapping[str, Sought]]:
    """The definition itself at each scope, the smallest first, and what the mutants showed there."""
    from stagewright.checker.engines import cores
    from stagewright.checker.limits import Limits
    from stagewright.checker.mutation.checkpoint import Checkpoint
    from stagewright.checker.mutation.exclusive import lemmas_beside, mutants_alone
    from stagewright.checker.mutation.original import original_at
    from stagewright.checker.mutation.run import Budget
    from stagewright.commands.mutation.progress import progress_on

    started = time.monotonic()
    limits = Limits(states=args.max_states, seconds=args.per_mutant)
    lemmas = lemmas_beside(widely, names)
    promises = tuple(p for p in widely.properties if p.name not in lemmas)
    searched = replace(widely, properties=promises)
    originals: list[Original] = []
    with progress_on(sys.stderr, widely, len(mutants)) as lines:
        for scope in scopes:
            original = original_at(searched, scope, limits)
            originals.append(replace(original, unasked=tuple(lemmas)))
            lines.original(original)
        originals.sort(key=lambda original: original.count)
        kept = [
            args.checkpoint and Checkpoint(args.checkpoint, searched, [o.scope], mutants)
            for o in originals
        ]
        spent = time.monotonic() - started
        left = None if args.timeout is None else max(0.0, args.timeout - spent)
        found = mutants_alone(
            widely,
            originals,
            mutants,
            names,
            Budget(left, args.per_mutant, args.max_states),
            workers=cores() if args.workers is None else args.workers,
            checkpoints=kept,
            on_evaluated=lines.evaluated,
            on_found=lambda name, sought: lines.line(f"{name}: {_said(sought)}"),
        )
    return originals, found


def _bugs(name: str) -> Sequence[KnownBug]:
    """Those that are listed, or that the user's file declares."""
    from stagewright.machines import SHIPPED
    from stagewright.machines.known_bugs import KNOWN_BUGS
    from stagewright.spec.known_bugs import known_bugs_in
    from stagewright.spec.loading import module_of

    return KNOWN_BUGS if name in SHIPPED else known_bugs_in(vars(module_of(name)))


def _show(
    definition: Definition,
    originals: Sequence[Original],
    needs: Mapping[str, Sought],
    seconds: float,
    args: argparse.Namespace,
) -> None:
    from stagewright.checker.counterexample.files import write_whole
    from stagewright.commands.console.output import console

    document = {
        "machine": definition.name,
        "profile": definition.profile,
        "fingerprint": definition.fingerprint(),
        "seconds": round(seconds, 3),
        "scopes": [{"scope": str(o.scope), "states": o.count} for o in originals],
        "needs": {
            name: {
                "need": sought.need.value,
                "mutant": sought.example or None,
                "scope": sought.scope or None,
                "implied_by": list(sought.implied_by),
            }
            for name, sought in needs.items()
        },
    }
    text = json.dumps(document, indent=2, ensure_ascii=False)
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        write_whole(args.out / "mutants.json", text + "\n")
    if args.json:
        print(text)
        return
    for name, sought in needs.items():
        console().print(f"{name}: {_said(sought)}", markup=False, soft_wrap=True)


def _said(sought: Sought) -> str:
    from stagewright.checker.mutation.report import Need
    from stagewright.commands.mutation.text import NOT_ALONE

    if sought.need is Need.ALONE:
        return f"alone catches {sought.example}\n  at {sought.scope}"
    by = f" ({', '.join(sought.implied_by)})" if sought.implied_by else ""
    return NOT_ALONE[sought.need] + by


def _code(needs: Mapping[str, Sought]) -> ExitCode:
    from stagewright.checker.mutation.report import Need

    found = {sought.need for sought in needs.values()}
    if Need.UNDECIDED in found:
        return ExitCode.UNDECIDED
    return ExitCode.HOLDS if found == {Need.ALONE} else ExitCode.VIOLATED
