"""The command line: finds the command, runs it, and turns what happened into an exit code.

A command is a module of this package, or of the room of this package that has the rest of it, with two functions:

- ``configure(parser: argparse.ArgumentParser) -> None`` declares its arguments;
- ``execute(args: argparse.Namespace) -> int`` does the work and returns an `ExitCode`.

Only the module of the command that was asked for is imported, so that ``--help`` is immediate.
"""

import argparse
import importlib
import sys
import traceback
from collections.abc import Sequence
from typing import NamedTuple, NoReturn, Protocol, cast

import stagewright
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.console.output import prepare_streams, silence_output


class Command(NamedTuple):
    """One row of the table of commands."""

    name: str
    module: str
    summary: str


COMMANDS = (
    Command(
        "list",
        "stagewright.commands.list",
        "list the shipped machines with their profiles and sizes",
    ),
    Command("new", "stagewright.commands.new", "start a machine of your own from an example"),
    Command(
        "show", "stagewright.commands.show", "print a machine: its states, actions and properties"
    ),
    Command("explore", "stagewright.commands.explore", "step through a machine in a browser"),
    Command(
        "draw",
        "stagewright.commands.exporting.draw",
        "draw a machine: its states as a diagram and a table",
    ),
    Command(
        "check", "stagewright.commands.checking.check", "search every reachable state of a machine"
    ),
    Command(
        "prove", "stagewright.commands.checking.prove", "prove a machine's invariants with a solver"
    ),
    Command(
        "mutate",
        "stagewright.commands.mutation.mutate",
        "change a machine in one place at a time; some property must fail",
    ),
    Command(
        "run", "stagewright.commands.run", "run a simulated cluster and check it by its definitions"
    ),
    Command(
        "campaign",
        "stagewright.commands.campaigning.campaign",
        "run the database, the view engine or indexes under thousands of random faults",
    ),
    Command(
        "cluster", "stagewright.commands.cluster", "start and change a cluster of real processes"
    ),
    Command("shell", "stagewright.commands.shell", "write and read rows of a running cluster"),
    Command(
        "endure",
        "stagewright.commands.endure",
        "build indexes or views in real processes that are killed at random",
    ),
    Command("simulate", "stagewright.commands.simulate", "let any machine take random steps"),
    Command(
        "test",
        "stagewright.commands.conformance.test",
        "test an implementation against its definition",
    ),
    Command(
        "validate",
        "stagewright.commands.validation.validate",
        "check recorded traces against their definitions",
    ),
    Command(
        "export", "stagewright.commands.exporting.export", "write a machine for other tools to read"
    ),
    Command("docs", "stagewright.commands.docs", "write a documentation page for each machine"),
    Command("view", "stagewright.commands.view", "keep map/reduce indexes over documents"),
    Command(
        "view-file", "stagewright.commands.view_file", "verify an index file of the view engine"
    ),
    Command("explain", "stagewright.commands.explain", "print the page of an error code"),
    Command("demo", "stagewright.commands.demo", "see every part at work"),
    Command("doctor", "stagewright.commands.doctor", "report what this installation has and lacks"),
)

_EXIT_CODES_HELP = (
    "exit codes: 0 it holds, 1 it is violated, 2 bad input or usage, 3 undecided within the limits, "
    "130 interrupted before there was a result"
)
_DECIDING = {"check", "prove", "run", "campaign", "endure", "test", "validate"}
_NOTHING_DECIDED_HELP = "exit codes: 0 done, 2 bad input or usage"


class CommandModule(Protocol):
    """What the module of a command offers."""

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments of the command."""
        ...

    def execute(self, args: argparse.Namespace) -> int:
        """Do the work; return an `ExitCode`."""
        ...


class _UsageError(Exception):
    """The command line cannot be understood; the text says why."""


class _FrontParser(argparse.ArgumentParser):
    """The parser of the program's own arguments, which suggests the nearest command."""

    def error(self, message: str) -> NoReturn:
        raise _UsageError(message)


def run_command_line(arguments: Sequence[str] | None = None) -> int:
    """Run one command of the program and return its exit code; never raises.

    ``arguments`` are the words after the program's name; None takes them from `sys.argv`.
    """
    words = [*(sys.argv[1:] if arguments is None else arguments)]  # `list` is a command here
    prepare_streams()
    code = _code_for(words)
    silence_output()
    return code


def _code_for(words: list[str]) -> int:
    try:
        code = _dispatch(words)
        sys.stdout.flush()  # a closed pipe must show here, not while Python shuts down
    except SystemExit as stop:  # argparse ends so, for --help and for bad arguments
        return _code_of(stop)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        silence_output()
        return ExitCode.BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - an uncaught error would exit with 1: "violated"
        return _reported(error)
    return code


def _dispatch(words: list[str]) -> int:
    chosen = next((command for command in COMMANDS if words[:1] == [command.name]), None)
    if chosen is None:
        return _without_command(words)
    module = _load(chosen)
    if module is None:
        print(f"stagewright: `{chosen.name}` is not part of this installation", file=sys.stderr)
        return ExitCode.BAD_INPUT
    parser = argparse.ArgumentParser(
        prog=f"stagewright {chosen.name}",
        description=f"{chosen.summary[0].upper()}{chosen.summary[1:]}.",
        epilog=_EXIT_CODES_HELP if chosen.name in _DECIDING else _NOTHING_DECIDED_HELP,
    )
    module.configure(parser)
    args = parser.parse_args(words[1:])
    try:
        return int(module.execute(args))
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # rich turns one into exit code 1
            raise stop.__context__ from None
        raise
    except Exception as error:
        if hasattr(args, "github"):
            from stagewright.commands.reports.writing import annotate_error

            annotate_error(args, error)
        raise


def _without_command(words: list[str]) -> int:
    """Answer --help and --version; refuse everything else, naming the nearest command."""
    parser = _FrontParser(
        prog="stagewright",
        description="Specify tablet databases as state machines; check and prove them, run them, and validate what was recorded.",
        usage="stagewright COMMAND [arguments]",
        epilog=_commands_table(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = f"stagewright {stagewright.__version__}"
    parser.add_argument("--version", action="version", version=version)
    parser.add_argument("command", nargs="?", help=argparse.SUPPRESS)
    try:
        unknown = parser.parse_known_args(words)[0].command
    except _UsageError as error:
        print(f"stagewright: {error}", file=sys.stderr)
        return ExitCode.BAD_INPUT
    if unknown is None and not words:
        parser.print_help()
        return ExitCode.BAD_INPUT
    if unknown is None or words[0] != unknown:
        print(
            f"stagewright: the command comes first, not `{words[0]}`; see `stagewright --help`",
            file=sys.stderr,
        )
        return ExitCode.BAD_INPUT
    from stagewright.spec.text.suggestions import nearest

    near = nearest(unknown, [command.name for command in COMMANDS])
    mend = f"did you mean `{near}`?" if near else "see `stagewright --help`"
    print(f"stagewright: there is no command `{unknown}`; {mend}", file=sys.stderr)
    return ExitCode.BAD_INPUT


def _commands_table() -> str:
    rows = "\n".join(f"  {command.name:<10} {command.summary}" for command in COMMANDS)
    return f"commands:\n{rows}\n\n{_EXIT_CODES_HELP}\n`stagewright COMMAND --help` describes one of them."


def _load(command: Command) -> CommandModule | None:
    """Import the module of a command; None if the installation does not have it."""
    try:
        return cast("CommandModule", importlib.import_module(command.module))
    except ModuleNotFoundError as error:
        if error.name == command.module:
            return None
        raise


def _reported(error: Exception) -> int:
    """The exit code of an error, which is printed if the stream for it takes anything."""
    if _interrupts(error):  # an import that a Ctrl-C breaks off may say so in another way
        return ExitCode.INTERRUPTED
    try:
        return _report(error)
    except OSError:
        return ExitCode.BAD_INPUT


def _interrupts(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _report(error: Exception) -> int:
    """Print an error: a user's in words, ours with its traceback; return the exit code."""
    from stagewright.spec.errors import StagewrightError
    from stagewright.spec.text.visible import visible

    if isinstance(error, StagewrightError):
        print(visible(f"error[{error.code}]: {error}"), file=sys.stderr)
        print(f"  about {error.code}: stagewright explain {error.code}", file=sys.stderr)
        return ExitCode.BAD_INPUT
    if isinstance(error, MemoryError):
        print("stagewright: memory ran out; choose a smaller scope", file=sys.stderr)
        return ExitCode.UNDECIDED
    if isinstance(error, OSError):  # a full disk, too many open files: not ours to mend
        silence_output()
        print(visible(f"stagewright: {error}"), file=sys.stderr)
        return ExitCode.BAD_INPUT
    traceback.print_exception(error)
    print("stagewright: this is a fault of stagewright, not of its input", file=sys.stderr)
    return ExitCode.INTERNAL_ERROR


def _code_of(stop: SystemExit) -> int:
    if stop.code is None:
        return ExitCode.HOLDS
    if isinstance(stop.code, int):
        return stop.code
    print(stop.code, file=sys.stderr)
    return ExitCode.BAD_INPUT
