"""`stagewright explain CODE`: the page of an error's code, with its cause, its fix and an example."""

from __future__ import annotations

import argparse
from importlib import resources

from stagewright.commands.console.exit_codes import ExitCode

_EXAMPLE = """\
examples:
  stagewright explain SW101
  stagewright explain --list"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright explain``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n\n{parser.epilog or ''}"
    parser.add_argument("code", nargs="?", help="the code, such as SW101")
    parser.add_argument("--list", action="store_true", help="list all codes")


def execute(args: argparse.Namespace) -> int:
    """Print the page of one code, or name them all."""
    from stagewright.spec.errors import InputError, UnknownNameError

    found = pages()
    if args.list:
        for code, page in found.items():
            print(f"{code}  {page.splitlines()[2]}")
        return ExitCode.HOLDS
    if args.code is None:
        raise InputError("no code is named", help="write stagewright explain SW101, or --list")
    if (asked := args.code.upper()) not in found:
        raise UnknownNameError(
            f"there is no code `{args.code}`",
            help="`stagewright explain --list` names all",
        )
    print(found[asked], end="")
    return ExitCode.HOLDS


def pages() -> dict[str, str]:
    """The pages by their codes, in order."""
    folder = resources.files("stagewright.error_pages")
    found = {
        entry.name.removesuffix(".md").upper(): entry.read_text("utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(".md")
    }
    return dict(sorted(found.items()))
