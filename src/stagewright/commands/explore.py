"""`stagewright explore`: walk a machine step by step, in a browser or in the terminal."""

from __future__ import annotations

import argparse

from stagewright.commands.exit_codes import ExitCode
from stagewright.commands.machine_flags import (
    add_machine,
    add_scope,
    count,
    machine_from,
    scope_from,
)

_EXAMPLE = """\
examples:
  stagewright explore tablet-migration
  stagewright explore my/machine.py --size node=2 --terminal

The page shows the state, the enabled steps, and the refused ones with the guards that refuse them. The address of the
page is the path: whoever opens it sees the same state. Ctrl-C ends the server, which answers on the loopback only."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright explore``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n\n{parser.epilog or ''}"
    add_machine(parser)
    parser.add_argument("--profile", default="", help="the version (default: the newest)")
    add_scope(parser)
    parser.add_argument("--port", type=count, default=0, metavar="N", help="default: any free one")
    parser.add_argument("--browser", action="store_true", help="open the page in a browser")
    parser.add_argument("--terminal", action="store_true", help="walk here, without a browser")
    parser.add_argument(
        "--path", default="0", metavar="PATH", help="where --terminal begins, as its `p` prints it"
    )


def execute(args: argparse.Namespace) -> int:
    """Walk until the user has enough."""
    from stagewright.explore.explorer import Explorer
    from stagewright.spec.errors import InputError

    definition = machine_from(args.machine, args.profile)
    explorer = Explorer(definition, scope_from(definition, args.size, args.budget))
    if args.terminal:
        from stagewright.explore.terminal import walk

        walk(explorer, args.path.split(";"), lambda: input("> "), print)
        return ExitCode.HOLDS
    from stagewright.explore.server import ExploreServer

    try:
        server = ExploreServer(explorer, args.port)
    except (OSError, OverflowError) as error:
        raise InputError(f"--port {args.port}: {error}", help="choose another port") from None
    print(f"{definition.name} is at {server.address} (Ctrl-C to end)", flush=True)
    if args.browser:
        import webbrowser

        webbrowser.open(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return ExitCode.HOLDS
    finally:
        server.server_close()
    return ExitCode.HOLDS
