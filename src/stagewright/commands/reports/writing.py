"""The reports for CI systems that every deciding command can write: which are asked for, and where they go."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stagewright.commands.console.output import takes_files
from stagewright.commands.reports.form import JUNIT, SARIF, ReportForm, forms
from stagewright.spec.errors import InputError, StagewrightError

if TYPE_CHECKING:
    from stagewright.commands.reports.suite import Suite

STANDARD_OUTPUT = "-"


def add_ci_reports(parser: argparse.ArgumentParser) -> None:
    """Declare --junit, --sarif, --report and --github."""
    group = parser.add_argument_group("reports for CI systems")
    group.add_argument("--junit", metavar="FILE", help="write JUnit XML; `-`: to standard output")
    group.add_argument("--sarif", metavar="FILE", help="write SARIF 2.1.0; `-`: to standard output")
    group.add_argument(
        "--report",
        nargs=2,
        action="append",
        default=[],
        metavar=("FORM", "FILE"),
        help="write a report in any format, also one of an installed package; `-`: to standard output; repeatable",
    )
    group.add_argument(
        "--github",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="annotate lines and append to the job's summary (default: if GITHUB_ACTIONS is true)",
    )


class _Wanted(NamedTuple):
    """A report that was asked for: by which flag, in which form, and where it goes."""

    flag: str
    form: ReportForm
    place: str


@dataclass
class CiReports:
    """The reports that were asked for, and what goes into them."""

    wanted: tuple[_Wanted, ...]
    github: bool
    suites: list[Suite] = field(default_factory=list["Suite"])

    @property
    def any_wanted(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.wanted) or self.github

    @property
    def take_standard_output(self) -> bool:
        """Whether one of them goes to standard output, which is then no place for text."""
        return any(report.place == STANDARD_OUTPUT for report in self.wanted)

    def add(self, made: Callable[[], Suite]) -> None:
        """Note what a command found; `made` is called only if it is to be written."""
        if self.any_wanted:
            self.suites.append(made())

    def write(self, exit_code: int) -> None:
        """Write all reports, standard output last; a file appears whole or not at all.

        Raises:
            InputError: a file cannot be written after all.
        """
        for report in self.wanted:
            if report.place != STANDARD_OUTPUT:
                text = report.form.document(self.suites, exit_code)
                _write_file(report.flag, report.place, text)
        if self.github:
            _show_github(self.suites)
        for report in self.wanted:
            if report.place == STANDARD_OUTPUT:
                sys.stdout.write(report.form.document(self.suites, exit_code))


def ci_reports(args: argparse.Namespace) -> CiReports:
    """The reports that the flags ask for.

    Raises:
        InputError: there is no such form, a file cannot be written there, or two reports want one place.
    """
    own = (("--junit", JUNIT, args.junit), ("--sarif", SARIF, args.sarif))
    wanted = [_Wanted(flag, form, place) for flag, form, place in own if place is not None]
    for name, place in args.report:
        known = forms()
        if name not in known:
            raise InputError(
                f"--report {name}: there is no such form", help=f"one of {', '.join(known)}"
            )
        wanted.append(_Wanted(f"--report {name}", known[name], place))
    for report in wanted:
        check_file(report.flag, report.place)
    to_output = [report.flag for report in wanted if report.place == STANDARD_OUTPUT]
    to_output += ["--json"] if args.json else []
    if len(to_output) > 1 and to_output != ["--json"]:
        raise InputError(
            f"{' and '.join(to_output)} both write to standard output",
            help="write one of them to a file",
        )
    first: dict[str, _Wanted] = {}
    for report in wanted:
        if report.place == STANDARD_OUTPUT:
            continue
        other = first.setdefault(str(Path(report.place).resolve()), report)
        if other is not report:
            raise InputError(
                f"{other.flag} and {report.flag} both name {other.place}",
                help="name a file for each of them",
            )
    return CiReports(tuple(wanted), _github_wanted(args))


def annotate_error(args: argparse.Namespace, error: Exception) -> None:
    """Show GitHub where a command's input is wrong, if it is to be shown at all."""
    if isinstance(error, StagewrightError) and _github_wanted(args):
        from stagewright.commands.reports.github import error_command

        print(error_command(error), file=sys.stderr)


def _github_wanted(args: argparse.Namespace) -> bool:
    given: bool | None = args.github
    return os.environ.get("GITHUB_ACTIONS") == "true" if given is None else given


def check_file(flag: str, place: str) -> None:
    """Refuse a file that cannot be written, before any work is done for it."""
    if place == STANDARD_OUTPUT:
        return
    path = Path(place)
    directory = path.resolve().parent
    if not place or path.is_dir():
        raise InputError(f"{flag} {place}: this is not a file", help="name a file")
    if not directory.is_dir():
        wrong = "is not a directory" if directory.exists() else "does not exist"
        raise InputError(
            f"{flag} {place}: the directory {path.parent} {wrong}", help="make it, or name another"
        )
    writable = os.access(path, os.W_OK) if _is_special(path) else takes_files(directory)
    if not writable:
        raise InputError(f"{flag} {place}: it cannot be written to", help="name another file")


def _is_special(path: Path) -> bool:
    """Whether it is a pipe or a device, which must not be replaced by a file."""
    return path.exists() and not stat.S_ISREG(path.stat().st_mode)


def _write_file(flag: str, place: str, text: str) -> None:
    from stagewright.checker.counterexample.files import write_whole

    path = Path(place)
    try:
        if _is_special(path):
            with path.open("w", encoding="utf-8") as sink:
                sink.write(text)
        else:
            write_whole(path.resolve(), text)
    except OSError as error:
        raise InputError(
            f"{flag} {place}: cannot write: {error.strerror or error}", help="name another file"
        ) from error


def _show_github(suites: list[Suite]) -> None:
    """Annotate, and append to the job's summary.

    The runner reads commands from both streams; standard output may be a file or a pipe by now.
    """
    from stagewright.commands.reports import github

    for line in github.workflow_commands(suites):
        print(line, file=sys.stderr)
    if named := os.environ.get("GITHUB_STEP_SUMMARY", ""):
        wrong = _append_summary(suites, Path(named))
        if wrong:  # the environment's fault, not the user's input: the verdict stands
            text = f"nothing was added to the job's summary {named}: {wrong}"
            print(github.command("warning", {"title": "stagewright"}, text), file=sys.stderr)


def _append_summary(suites: list[Suite], path: Path) -> str:
    """Why the summary could not be appended to the file; empty if it was."""
    from stagewright.commands.reports import github

    try:
        text = github.summary(suites, github.room_in(path))
        with path.open("a", encoding="utf-8") as sink:
            sink.write(text)
    except OSError as error:
        return error.strerror or str(error)
    return "" if text or not suites else "it is full"
