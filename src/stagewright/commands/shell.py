"""Writes and reads rows of a running cluster, line by line or at once."""

from __future__ import annotations

import argparse
import io
import re
import shlex
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.clusters.row_shell import COMMANDS
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.spec.errors import InputError, StagewrightError

if TYPE_CHECKING:
    from stagewright.commands.clusters.kinds import Shell

_EXAMPLE = f"""\
examples:
  stagewright shell --dir /tmp/c
  stagewright shell --dir /tmp/c -c "put a 1; get a" --consistency all
  stagewright shell --dir /tmp/c -c "create table t tablets 8 rf 3; put a 1; tablets"
  stagewright shell --dir /tmp/c -c "create view v on t by value; await v; use v; get 1"
  echo "scan 10" | stagewright shell --dir /tmp/c --json
  stagewright shell --dir /tmp/i -c "create unique index i on v; build status"   with an indexed table; see its `help`

{COMMANDS}
Quote a key or value that has spaces or semicolons, as in a shell: put greeting 'hello, world'.

exit codes: 0 every command was answered, 1 one was not (its write may have happened, unless it says that nothing was
  written), 2 bad input or usage
"""
_TOKEN = re.compile(
    r"""\s*(?:(?P<end>;)|(?P<word>(?:[^\s;'"\\]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+))""", re.DOTALL
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright shell``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("--dir", type=Path, required=True, metavar="D", help="the cluster's directory")
    add("-c", "--command", metavar="TEXT", help="commands, instead of those on standard input")
    add(
        "--consistency",
        choices=("one", "quorum", "all"),
        default="quorum",
        help="how many replicas must answer (default: quorum)",
    )
    add("--json", action="store_true", help="print one JSON object a command")


def execute(args: argparse.Namespace) -> int:
    """Run the commands; the first that is not answered, or that is none, ends a list of them."""
    from stagewright.commands.clusters.kinds import kind_of

    kind = kind_of(args.dir)
    kind.refuse_none()
    shell = kind.shell(args)
    try:
        if args.command is not None:
            return run_commands(shell, [args.command], forgiving=False)
        if isinstance(sys.stdin, io.TextIOWrapper):
            sys.stdin.reconfigure(errors="surrogateescape")  # keys and values are bytes
        if not sys.stdin.isatty():
            return run_commands(shell, sys.stdin, forgiving=False, numbered=True)
        print(shell.commands)
        return run_commands(shell, _typed(), forgiving=True)
    finally:
        shell.close()


def run_commands(
    shell: Shell, lines: Iterable[str], *, forgiving: bool, numbered: bool = False
) -> ExitCode:
    """Do each command of each line; the first mistake, or Ctrl-C, ends them, unless it is forgiven.

    `numbered`: say in which line a mistake is.
    """
    from stagewright.impl.processes.errors import ClusterError

    code = ExitCode.HOLDS
    for number, line in enumerate(lines, start=1):
        try:
            for words in split_commands(line):
                if words[0] in ("exit", "quit"):
                    return code
                shell.do(words)
        except StagewrightError as error:
            place = f"line {number}: " if numbered else ""
            print(f"{place}{error}", file=sys.stderr, flush=True)
            failed = isinstance(error, ClusterError)
            code = ExitCode.VIOLATED if failed else ExitCode.BAD_INPUT
            if not forgiving:
                return code
        except KeyboardInterrupt:  # at the prompt it ends the shell, here what the shell waits for
            if not forgiving:
                raise
            shell.close()  # an answer may be under way; the next command connects anew
            print("interrupted", file=sys.stderr, flush=True)
            code = ExitCode.INTERRUPTED
    return code


def split_commands(line: str) -> list[list[str]]:
    """The commands of a line, each as its words.

    Raises:
        InputError: a quotation is not closed, or a backslash is before nothing.
    """
    found: list[list[str]] = [[]]
    place, line = 0, line.strip()
    while place < len(line):
        token = _TOKEN.match(line, place)
        if token is None:
            if line[place:].lstrip() == "\\":
                raise InputError(f"{line}: no escaped character", help="quote it: '\\'")
            raise InputError(f"{line}: no closing quotation", help="close the quotation")
        if token["end"]:
            found.append([])
        else:
            found[-1] += shlex.split(token["word"])  # one, which may be empty or a semicolon
        place = token.end()
    return [words for words in found if words]


def _typed() -> Iterable[str]:
    while True:
        try:
            yield input("stagewright> ")
        except EOFError:
            print()
            return
