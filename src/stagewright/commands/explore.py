"""`stagewright explore`: step through a machine in a browser or in the terminal."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.console.machine_flags import (
    add_machine,
    add_scope,
    count,
    machine_from,
    scope_from,
)
from stagewright.commands.console.serving import until_interrupted
from stagewright.spec.text.counting import counted

if TYPE_CHECKING:
    from stagewright.explore.explorer import Explorer

_EXAMPLE = """\
examples:
  stagewright explore tablet-migration
  stagewright explore my/machine.py --size node=2 --terminal
  stagewright explore tablet-migration --compare seed --compare scylla-2025.4
  stagewright explore tablet-migration --trace walk/trace.jsonl --entity tabletmigration3

The page shows the state, the enabled steps, and the refused steps with the guards that refuse them. The address of
the page contains the path, so whoever opens it sees the same state. Ctrl-C ends the server, which listens on the
loopback only."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright explore``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n\n{parser.epilog or ''}"
    add_machine(parser)
    parser.add_argument(
        "--profile", default="", help="the version to explore (default: the newest)"
    )
    add_scope(parser)
    parser.add_argument(
        "--port", type=count, default=0, metavar="N", help="the port (default: any free one)"
    )
    parser.add_argument("--browser", action="store_true", help="open the page in a browser")
    parser.add_argument(
        "--terminal", action="store_true", help="explore in the terminal, without a browser"
    )
    begins = parser.add_mutually_exclusive_group()
    begins.add_argument(
        "--path",
        default="0",
        metavar="PATH",
        help="where to start, as --terminal's `p` prints it",
    )
    parser.add_argument(
        "--compare",
        action="append",
        default=[],
        metavar="PROFILE",
        help="show what another version does beside it (repeatable)",
    )
    begins.add_argument(
        "--trace",
        type=Path,
        metavar="FILE",
        help="start where a recorded entity is, from JSON lines",
    )
    parser.add_argument(
        "--entity", default="", metavar="NAME", help="which entity of --trace (default: the first)"
    )


def execute(args: argparse.Namespace) -> int:
    """Walk until the user has enough."""
    from stagewright.explore.explorer import Explorer
    from stagewright.spec.errors import InputError

    def explorer_of(profile: str, others: Sequence[Explorer] = ()) -> Explorer:
        definition = machine_from(args.machine, profile)
        return Explorer(definition, scope_from(definition, args.size, args.budget), others)

    if args.entity and args.trace is None:
        raise InputError(
            "--entity names one of a trace, and none is given", help="add --trace FILE"
        )
    explorer = explorer_of(args.profile, [explorer_of(profile) for profile in args.compare])
    path = _begins(explorer, args)
    if args.terminal:
        from stagewright.explore.terminal import walk

        walk(explorer, path, lambda: input("> "), print)
        return ExitCode.HOLDS
    from stagewright.explore.server import ExploreServer

    try:
        server = ExploreServer(explorer, args.port)
    except (OSError, OverflowError) as error:
        raise InputError(f"--port {args.port}: {error}", help="choose another port") from None
    address = server.address_of(path)
    print(f"{explorer.source.name} is at {address} (Ctrl-C to end)", flush=True)
    if args.browser:
        import webbrowser

        webbrowser.open(address)
    try:
        with until_interrupted():
            server.serve_forever()
    finally:
        server.server_close()
    return ExitCode.HOLDS


def _begins(explorer: Explorer, args: argparse.Namespace) -> list[str]:
    """The path at which the walk begins: what a trace has recorded, or what was given."""
    if args.trace is None:
        return args.path.split(";")  # type: ignore[no-any-return]
    from stagewright.explore.recorded import recorded_path

    found = recorded_path(explorer, args.trace, args.entity)
    print(f"{found.entity}: {counted(len(found.path) - 1, 'step')}")
    if found.problem:
        print(f"then {found.problem}")
    return list(found.path)
