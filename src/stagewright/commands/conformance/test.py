"""Tests whether an implementation does what its definition says and refuses what it forbids."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.conformance.adapter_loading import RUNTIME, adapter_factory
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.console.machine_flags import (
    add_machine,
    add_scope,
    count,
    machine_from,
    positive,
    scope_from,
)
from stagewright.commands.reports.writing import add_ci_reports, ci_reports

if TYPE_CHECKING:
    from stagewright.checker.conformance.adapter import AdapterFactory
    from stagewright.checker.conformance.oracle import Oracle
    from stagewright.checker.conformance.play import OnMoves, SuiteResult
    from stagewright.checker.conformance.space import Space
    from stagewright.checker.conformance.suites import Suite
    from stagewright.commands.conformance.aim_file import Aim
    from stagewright.commands.conformance.report import AimReport

HYPOTHESIS, TOUR, REFUSALS = "hypothesis", "tour", "refusals"
SUITES = (TOUR, REFUSALS, HYPOTHESIS)
BOUNDED = ("w", "wp")

_EXAMPLE = """\
examples:
  stagewright test tablet-migration
  stagewright test tablet-migration --adapter my/adapter.py:MyTablet --seed 7 --examples 500
  stagewright test my/machine.py --adapter my.package:adapter --suite tour --export tests_tour.py
  stagewright test tablet-migration --aim report/coverage.json --export tests_never_seen.py

An adapter has reset(initial), do(step) and observe(); do() raises RefusedEvent if the implementation
refuses. `tour` takes every transition, `refusals` tries every event that must be refused, `hypothesis`
makes random runs. Budgets bound a check, not an implementation: an event that only a spent budget forbids
is not tried.

`w` and `wp` find every fault of an implementation that is deterministic and has at most --extra-states states
more than the adapter's observations distinguish; `wp` needs fewer tests. The report states the bound.

With --aim, tour and refusals do only what production never did: the actions, edges, values and parts of
requirements that recorded traces never exercised, and the refusals of actions that never happened. What
cannot be reached at the scope is reported.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright test``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n{parser.epilog or ''}"
    add_machine(parser)
    parser.add_argument("--profile", default="", help="the version (default: the newest)")
    add_scope(parser)
    parser.add_argument(
        "--adapter",
        default=RUNTIME,
        metavar="WHERE",
        help="file.py:factory or module:factory (default: the shipped runtime)",
    )
    parser.add_argument(
        "--suite",
        choices=(*SUITES, *BOUNDED, "all"),
        default="all",
        help="which tests (default: all except w and wp)",
    )
    parser.add_argument(
        "--extra-states",
        type=count,
        default=0,
        metavar="N",
        help="for w and wp: how many more states the implementation may have than it needs (default: 0)",
    )
    parser.add_argument(
        "--cover",
        choices=("states", "control"),
        default="states",
        help="whether tour and refusals distinguish all states, or only control states",
    )
    parser.add_argument(
        "--aim",
        type=Path,
        metavar="FILE",
        help="test only what production never did, by the coverage.json of `stagewright validate --out DIR`",
    )
    parser.add_argument(
        "--max-states", type=positive, default=100_000, metavar="N", help="explore at most N states"
    )
    parser.add_argument(
        "--max-moves", type=positive, default=200_000, metavar="N", help="plan at most N per suite"
    )
    parser.add_argument("--seed", type=count, default=0, metavar="N", help="seed of random runs")
    parser.add_argument(
        "--examples", type=positive, default=100, metavar="N", help="random runs (default: 100)"
    )
    parser.add_argument(
        "--steps",
        type=positive,
        default=100,
        metavar="N",
        help="turns per random run (default: 100)",
    )
    parser.add_argument(
        "--export", type=Path, metavar="FILE", help="write tour and refusals as a pytest file"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_ci_reports(parser)


def execute(args: argparse.Namespace) -> int:
    """Run the suites, print what they found, and return the exit code that belongs to it."""
    from stagewright.checker.conformance.oracle import Oracle
    from stagewright.commands.conformance.aim_file import read_aim
    from stagewright.commands.conformance.report import Tested, document, print_text
    from stagewright.commands.reports.of_test import suite_of

    begun = time.monotonic()
    reports = ci_reports(args)
    _check(args)
    definition = machine_from(args.machine, args.profile)
    aim = None if args.aim is None else read_aim(args.aim, definition)
    scope = scope_from(definition, args.size, args.budget)
    factory = adapter_factory(args.adapter, definition, scope)
    work = _Work(args, Oracle(definition, scope), factory, aim)
    results = list(work.results())
    tested = Tested(
        work.oracle,
        args.adapter,
        tuple(results),
        args.seed,
        work.exported,
        _again(args),
        work.aimed,
    )
    if args.json:
        print(json.dumps(document(tested), indent=2, ensure_ascii=False))
    elif not reports.take_standard_output:
        print_text(tested)
    code = ExitCode[tested.outcome.upper()]
    reports.add(lambda: suite_of(tested, time.monotonic() - begun))
    reports.write(code)
    return code


def _check(args: argparse.Namespace) -> None:
    from stagewright.spec.errors import InputError

    if args.export is not None and args.suite == HYPOTHESIS:
        raise InputError(
            "random runs cannot be exported", help="take --suite tour, refusals or all"
        )
    if args.aim is not None and args.suite == HYPOTHESIS:
        raise InputError("random runs cannot be aimed", help="take --suite tour, refusals or all")
    if args.aim is not None and args.suite in BOUNDED:
        raise InputError(
            "a suite with a bound cannot be aimed", help="take --suite tour or refusals"
        )
    if args.extra_states and args.suite not in BOUNDED:
        raise InputError("--extra-states is of the suites with a bound", help="take --suite wp")
    if args.aim is not None and args.cover != "states":
        raise InputError("--aim says itself what is covered", help="leave out --cover")


@dataclass
class _Work:
    """The suites under way."""

    args: argparse.Namespace
    oracle: Oracle
    factory: AdapterFactory
    aim: Aim | None = None
    exported: Path | None = None
    aimed: AimReport | None = None

    def results(self) -> Iterator[SuiteResult]:
        """Each suite's result; an interrupted suite is the last."""
        every = SUITES if self.aim is None else (TOUR, REFUSALS)
        wanted = every if self.args.suite == "all" else (self.args.suite,)
        space = None
        if wanted != (HYPOTHESIS,):
            from stagewright.checker.conformance.play import look_at_adapter

            _say(f"exploring {self.oracle.name} at {self.oracle.scope}")
            space = self._explored()
            look_at_adapter(self.oracle, self.factory, space.state(0))
            suites = self._planned(wanted, space)
            for suite in suites:
                result = self._played(suite, space)
                yield result
                if result.stopped:
                    return
        if HYPOTHESIS in wanted:
            yield self._random(space)

    def _explored(self) -> Space:
        from stagewright.checker.conformance.space import explored

        return explored(
            self.oracle.source,
            self.oracle.scope,
            states=self.args.max_states,
            parts=self.aim is not None,
        )

    def _planned(self, wanted: tuple[str, ...], space: Space) -> list[Suite]:
        if wanted[0] in BOUNDED:
            suites = [self._bounded(wanted[0], space)]
        elif self.aim is None:
            suites = self._covering(wanted, space)
        else:
            suites = self._aimed(wanted, space)
        if self.args.export is not None:
            self._export(suites)
        return suites

    def _aimed(self, wanted: tuple[str, ...], space: Space) -> list[Suite]:
        from stagewright.checker.conformance.aims import aimed_refusals, aimed_tour
        from stagewright.commands.conformance.report import AimReport

        assert self.aim is not None
        found = [
            plan(space, self.aim.things, moves=self.args.max_moves)
            for name, plan in ((TOUR, aimed_tour), (REFUSALS, aimed_refusals))
            if name in wanted
        ]
        self.aimed = AimReport(self.aim, tuple(found), space.note)
        return [one.suite for one in found]

    def _covering(self, wanted: tuple[str, ...], space: Space) -> list[Suite]:
        from stagewright.checker.conformance.space import Cover
        from stagewright.checker.conformance.suites import refusal_suite, transition_tour

        return [
            plan(
                self.oracle.source,
                self.oracle.scope,
                cover=Cover(self.args.cover),
                space=space,
                moves=self.args.max_moves,
            )
            for name, plan in ((TOUR, transition_tour), (REFUSALS, refusal_suite))
            if name in wanted
        ]

    def _bounded(self, name: str, space: Space) -> Suite:
        from stagewright.checker.conformance.fault_domain.words import (
            Method,
            always_observed,
            bounded_suite,
        )

        return bounded_suite(
            space,
            Method(name),
            extra=self.args.extra_states,
            observed=always_observed(self.oracle.initial_states(), self.factory),
            moves=self.args.max_moves,
        )

    def _export(self, suites: list[Suite]) -> None:
        from stagewright.checker.conformance.script import Origin, exported
        from stagewright.spec.errors import InputError

        path: Path = self.args.export
        origin = Origin(
            _from(path, self.args.machine), _from(path, self.args.adapter), _again(self.args)
        )
        try:
            path.write_text(exported(self.oracle, suites, origin), encoding="utf-8")
        except OSError as error:
            raise InputError(
                f"cannot write {path}: {error.strerror}", help="choose a file"
            ) from None
        self.exported = path

    def _played(self, suite: Suite, space: Space) -> SuiteResult:
        from stagewright.checker.conformance.play import play

        _say(f"{suite.name}: {len(suite.walks):,} walks, {suite.moves:,} moves")
        report = _progress(suite.name, "moves", suite.moves)
        return play(self.oracle, self.factory, suite, way_to=space.way_to, on_moves=report)

    def _random(self, space: Space | None) -> SuiteResult:
        from stagewright.checker.conformance.stateful import run_random

        args = self.args
        _say(f"hypothesis: {args.examples:,} runs of {args.steps:,} turns, seed {args.seed}")
        return run_random(
            self.oracle.source,
            self.oracle.scope,
            self.factory,
            seed=args.seed,
            examples=args.examples,
            steps=args.steps,
            way_to=None if space is None else space.way_to,
            on_moves=_progress(HYPOTHESIS, "runs", args.examples),
        )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _progress(name: str, of: str, total: int) -> OnMoves:
    """Says every tenth of the way."""
    done = said = 0

    def show(more: int) -> None:
        nonlocal done, said
        done += more
        if done * 10 // max(total, 1) > said and done < total:
            said = done * 10 // total
            _say(f"{name}: {done:,} of {total:,} {of}")

    return show


def _from(file: Path, name: str) -> str:
    """A name that may start with a path, as seen from the folder of `file`."""
    place, colon, rest = name.partition(":")
    if not place.endswith(".py"):
        return name
    near = os.path.relpath(place, file.resolve().parent)
    return f"{Path(near).as_posix()}{colon}{rest}"


def _again(args: argparse.Namespace) -> str:
    """The command line that does the same again."""
    words = ["stagewright", "test", args.machine]
    for flag, value, usual in (
        ("--profile", args.profile, ""),
        ("--adapter", args.adapter, RUNTIME),
        ("--suite", args.suite, "all"),
        ("--extra-states", args.extra_states, 0),
        ("--cover", args.cover, "states"),
        ("--aim", args.aim, None),
        ("--max-states", args.max_states, 100_000),
        ("--max-moves", args.max_moves, 200_000),
        ("--seed", args.seed, None),
        ("--examples", args.examples, 100),
        ("--steps", args.steps, 100),
        ("--export", args.export, None),
    ):
        if value is not None and value != usual:
            words += [flag, str(value)]
    for entry in args.size:
        words += ["--size", entry]
    for entry in args.budget:
        words += ["--budget", entry]
    return shlex.join(words)
