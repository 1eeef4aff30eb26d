"""`stagewright new NAME`: start from a copy of an example: a machine, an implementation, a trace."""

from __future__ import annotations

import argparse
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from stagewright.commands.console.exit_codes import ExitCode

DEFAULT = "lock-server"
_PAGE = "README.md"
_EXAMPLE = """\
examples:
  stagewright new my_lock
  stagewright new my_paxos --from paxos
  stagewright new paxos               an example's own name starts from that example
  stagewright new --list"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright new``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n\n{parser.epilog or ''}"
    parser.add_argument("name", nargs="?", type=Path, help="the folder to create")
    parser.add_argument(
        "--from",
        dest="example",
        metavar="EXAMPLE",
        help=f"the example to copy (default: the one called NAME, else {DEFAULT})",
    )
    parser.add_argument("--list", action="store_true", help="list the examples")


def execute(args: argparse.Namespace) -> int:
    """Copy the example, or name them all."""
    from stagewright.spec.errors import InputError

    found = examples()
    if args.list:
        for name, folder in found.items():
            print(f"{name:<20} {_title(folder)}")
        return ExitCode.HOLDS
    if args.name is None:
        raise InputError("no folder is named", help="write stagewright new NAME")
    named = args.name.name.replace("_", "-")
    example = args.example or (named if named in found else DEFAULT)
    _copy(_chosen(example, found), args.name)
    commands = [
        line for line in (args.name / _PAGE).read_text("utf-8").splitlines() if line[:2] == "$ "
    ]
    print(f"made {args.name} from {example}; try this there:")
    print("\n".join([f"  cd {args.name}", *(f"  {line[2:]}" for line in commands)]))
    return ExitCode.HOLDS


def examples() -> dict[str, Traversable]:
    """The folders of the examples by name, with dashes."""
    root = resources.files("stagewright.examples")
    folders = [entry for entry in root.iterdir() if entry.joinpath(_PAGE).is_file()]
    return {
        folder.name.replace("_", "-"): folder for folder in sorted(folders, key=lambda f: f.name)
    }


def _chosen(name: str, found: dict[str, Traversable]) -> Traversable:
    from stagewright.spec.errors import UnknownNameError
    from stagewright.spec.text.suggestions import did_you_mean

    folder = found.get(name.replace("_", "-"))
    if folder is None:
        raise UnknownNameError(
            f"there is no example `{name}`",
            help=f"{did_you_mean(name, found)}there are: {', '.join(found)}",
        )
    return folder


def _copy(example: Traversable, to: Path) -> None:
    from stagewright.spec.errors import InputError

    try:
        to.mkdir(parents=True)
        for entry in example.iterdir():
            if entry.is_file():
                (to / entry.name).write_bytes(entry.read_bytes())
    except FileExistsError:
        raise InputError(f"{to} exists", help="name a folder that does not") from None
    except OSError as error:
        raise InputError(
            f"cannot make {to}: {error.strerror}", help="name another folder"
        ) from None


def _title(example: Traversable) -> str:
    return example.joinpath(_PAGE).read_text("utf-8").partition("\n")[0].removeprefix("# ")
