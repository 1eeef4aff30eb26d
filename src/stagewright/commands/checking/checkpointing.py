"""The flags --checkpoint and --resume: a long check can be stopped, or die, and be taken up again.

Everything that decides what is searched is written into the directory, so that to resume takes no other
argument; limits and workers may be new.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stagewright.spec.errors import InputError

if TYPE_CHECKING:
    from stagewright.checker.explicit.checkpoint import Checkpoint
    from stagewright.spec.definition import Definition

_SETTINGS = "settings.json"
_KEPT = (
    *("machine", "profile", "size", "budget", "property"),
    *("no_coverage", "no_symmetry", "no_deadlock", "lean"),
)


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Declare --checkpoint and --resume."""
    group = parser.add_argument_group("long searches")
    which = group.add_mutually_exclusive_group()
    which.add_argument(
        "--checkpoint", type=Path, metavar="DIR", help="save the search there as it goes"
    )
    which.add_argument(
        "--resume",
        type=Path,
        metavar="DIR",
        help="resume the search saved there, without MACHINE and the flags that say what to search",
    )


def recalled(args: argparse.Namespace) -> argparse.Namespace:
    """The arguments, with what the directory of --resume holds.

    Raises:
        InputError: no machine is named, two are, or the directory cannot be read.
    """
    if args.resume is None:
        if args.machine is None:
            raise InputError("no MACHINE is named", help="name one, or --resume a search")
        if args.checkpoint is not None and args.all_profiles:
            raise InputError("--checkpoint is for one profile", help="name it with --profile")
        return args
    given = [name for name in _KEPT if getattr(args, name) and name != "machine"]
    if args.machine is not None or args.all_profiles or given:
        flags = ["MACHINE"] if args.machine is not None else []
        flags += ["--all-profiles"] if args.all_profiles else []
        flags += [f"--{name.replace('_', '-')}" for name in given]
        raise InputError(
            f"--resume knows what is searched; {', '.join(flags)} cannot be given with it",
            help="leave it out, or start another search with --checkpoint",
        )
    settings = _read(args.resume)
    return argparse.Namespace(**{**vars(args), **{name: settings[name] for name in _KEPT}})


def checkpoint_of(args: argparse.Namespace, definition: Definition) -> Checkpoint | None:
    """Where this check writes itself; None if it is not to.

    Raises:
        InputError: the directory holds another search, or the definition is another one by now.
    """
    from stagewright.checker.explicit.checkpoint import Checkpoint

    if args.resume is not None:
        if _read(args.resume)["definition"] != definition.fingerprint():
            raise InputError(
                f"{args.machine} is not the definition that {args.resume} was searched with",
                help="undo the change, or start again with --checkpoint and another directory",
            )
        return Checkpoint(args.resume)
    if args.checkpoint is None:
        return None
    directory: Path = args.checkpoint
    if directory.exists() and any(directory.iterdir()):
        raise InputError(
            f"--checkpoint {directory} is not empty",
            help=f"to go on with what it holds: --resume {directory}; else name another directory",
        )
    directory.mkdir(parents=True, exist_ok=True)
    machine = _absolute(args.machine)
    settings = {**{name: getattr(args, name) for name in _KEPT}, "machine": machine}
    text = json.dumps(
        {**settings, "profile": definition.profile, "definition": definition.fingerprint()}
    )
    (directory / _SETTINGS).write_text(text, encoding="utf-8")
    return Checkpoint(directory)


def report_checkpoint(checkpoint: Checkpoint, *, exhausted: bool) -> None:
    """How to go on, and whether something could not be written."""
    directory = checkpoint.directory
    if checkpoint.failed:
        print(f"warning: {directory} takes no more: {checkpoint.failed}", file=sys.stderr)
    if checkpoint.exists and not exhausted:
        print(
            f"to go on: stagewright check --resume {shlex.quote(str(directory))}", file=sys.stderr
        )


def _absolute(machine: str) -> str:
    """A file's name that means the same from everywhere; another name as it is."""
    file, colon, name = machine.partition(":")
    path = Path(file)
    return f"{path.resolve()}{colon}{name}" if path.suffix == ".py" else machine


def _read(directory: Path) -> dict[str, Any]:
    path = directory / _SETTINGS
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        missing = [name for name in (*_KEPT, "definition") if name not in settings]
    except (OSError, ValueError, TypeError) as error:
        why = f"{_SETTINGS}: {error.strerror}" if isinstance(error, OSError) else str(error)
        raise InputError(
            f"{directory} holds no search: {why}", help="name the directory given to --checkpoint"
        ) from error
    if not isinstance(settings, dict):
        raise InputError(f"{path} holds no settings", help="start again with --checkpoint")
    if missing:
        raise InputError(f"{path} lacks {', '.join(missing)}", help="start again with --checkpoint")
    known: dict[str, Any] = settings
    return known
