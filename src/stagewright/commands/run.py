"""Runs a cluster whose tablets migrate as the definition says, under faults, and records its trace."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.running.outcome import refuse_others

if TYPE_CHECKING:
    from stagewright.impl.simulator.counters import Report
    from stagewright.impl.simulator.options import Options
    from stagewright.impl.simulator.simulation import Progress

_EXAMPLE = """\
examples:
  stagewright run --nodes 3 --tablets 8 --seed 7 --faults all
  stagewright run --faults crash@streaming,loss=0.1 --profile scylla-2025.4 --json
  stagewright run --script "join n4; write 10000; decommission n1; replace n2 by n5" --faults all
  stagewright run --script "table t tablets 4 rf 3; write 60; create view v on t by value; join n4; await v"
  stagewright run --script "create table 60 rows; write 300; create unique index i on v; kill n1; await i"

faults (each may be KIND, KIND@STAGE or KIND@every, with =RATE from 0 to 1; a comma between):
  loss, delay, duplicate   of messages
  crash                    of nodes, which come back with what is on their disks
  failover                 of the topology coordinator
  action                   actions and barriers of a stage fail
  dead                     one node is gone for good, and the operator excludes it
  unwanted                 a migration is not wanted any more while it streams
  all, none                (none)

With --script the topology changes, not tablets: the nodes n1, n2 … begin as normal ones, and a semicolon
separates what is done then, one after the other: join NODE, decommission NODE, replace NODE by NODE,
remove NODE, rebuild NODE, cleanup, generation (of CDC), kill NODE, restart NODE, wait MILLISECONDS, and
write NUMBER, which goes on in the background while what follows is done. Its faults are loss, delay and
duplicate, each maybe with =SHARE of the messages, and crash, failover, election (of group0's leader), each
maybe with =TIMES a minute, storm (group0's own requests are lost, late and repeated) and skew=MILLISECONDS
(by which clocks of nodes are off); KIND@STATE strikes while the topology is in a state, as in
crash@write_both_read_old. --workload says what clients do, as in keys=12,gap=0-3,reads=0.5,deletes=0.1,
clients=4 (gap in milliseconds, shares from 0 to 1), and chunk=3: how many rows nodes stream at once. With --cdc
every change goes to a CDC log, too, and a consumer has to read each once.
table NAME tablets N rf N makes a table of tablets; create view NAME on TABLE by value [mod N] [where value < N]
a materialized view of it, which is built while it is written to: await NAME waits for that, drop view NAME drops it.

A script that begins with `create table N rows` is of a table with the columns v and w, tablets and indexes:
create [deferred] [unique] index NAME on COLUMN, drop index NAME, backfill, put KEY v=NUMBER w=NUMBER,
delete KEY, read NAME VALUE, status NAME, await NAME, write NUMBER, kill and restart SERVER (n1, n2 …),
fail over (of the master), wait MILLISECONDS. Its faults are loss, delay, duplicate, crash and failover.

The cluster is one process with a simulated clock and network: the same arguments give the same run.
"""

_DEFAULTS = {"tablets": 8, "migrations": 16, "writes": 400}
_LIVE_SECONDS, _PLAIN_SECONDS = 0.2, 5.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright run``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n{parser.epilog or ''}"
    add = parser.add_argument
    add("--nodes", type=_number, default=3, metavar="N", help="nodes (3)")
    add("--script", metavar="TEXT", help="what is done to the nodes of the cluster, see below")
    add("--workload", metavar="LIST", help="what clients do while a script is worked through")
    add(
        "--cdc",
        action="store_true",
        help="with --script: log changes, and check what a consumer reads",
    )
    add("--tablets", type=_number, metavar="N", help="tablets (8)")
    add("--seed", type=int, default=0, metavar="N", help="random seed (0)")
    add("--faults", default="none", metavar="LIST", help="what goes wrong (none)")
    add("--profile", default="", help="the version of the definition (the newest)")
    add("--migrations", type=_number, metavar="N", help="transitions to start (16)")
    add("--writes", type=_number, metavar="N", help="writes that clients send (400)")
    add(
        "--consistency",
        choices=("all", "quorum"),
        help="`all`: writes wait for all replicas, reads for one; `quorum`: both for a majority "
        "(all with two replicas, else quorum)",
    )
    add("--out", type=Path, metavar="DIR", help="where files are written (artifacts/run-SEED)")
    add("--json", action="store_true", help="print one JSON object")


def execute(args: argparse.Namespace) -> int:
    """Run, print what happened, and return 1 if a promise was broken."""
    from stagewright.impl.simulator.simulation import run

    directory: Path = args.out or Path("artifacts") / f"run-{args.seed}"
    if args.script is not None:
        from stagewright.commands.running.indexes import run_index_script
        from stagewright.commands.running.script import plan_of, run_script
        from stagewright.impl.indexes.simulated.script import is_of_indexes

        if is_of_indexes(args.script):
            return run_index_script(args, lambda: _usable(directory, "permissions.jsonl"))

        plan_of(args)  # what it does not understand is refused before anything is written
        return run_script(args, _usable(directory, "topology.jsonl"))
    refuse_others(args, ("workload", "cdc"), "a run without --script", "add --script TEXT")
    for name, default in _DEFAULTS.items():
        if getattr(args, name) is None:
            setattr(args, name, default)
    options = _options(args)
    with _progress_on(sys.stderr) as progress:
        report = run(options, _usable(directory), progress=progress)
    if args.json:
        print(json.dumps(report.to_json(), indent=2))
    else:
        _print(report, _reproduce(args))
    return ExitCode.HOLDS if report.kept else ExitCode.VIOLATED


def _options(args: argparse.Namespace) -> Options:
    from stagewright.impl.cluster.settings import Consistency
    from stagewright.impl.simulator.faults import parse_faults
    from stagewright.impl.simulator.options import Options
    from stagewright.impl.simulator.simulation import program

    program(args.profile)  # an unknown profile is refused before anything is written
    return Options(
        nodes=args.nodes,
        tablets=args.tablets,
        seed=args.seed,
        faults=parse_faults(args.faults),
        profile=args.profile,
        migrations=args.migrations,
        writes=args.writes,
        consistency=Consistency[args.consistency] if args.consistency else None,
    )


def _usable(directory: Path, first: str = "trace.jsonl") -> Path:
    """A directory that can be written to.

    Raises:
        InputError: it cannot be made, or is no directory.
    """
    from stagewright.spec.errors import InputError

    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / first).touch()
    except OSError as error:
        raise InputError(
            f"--out {directory}: {error.strerror}", help="name another directory"
        ) from None
    return directory


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 999999999")
    return int(text)


def _reproduce(args: argparse.Namespace) -> str:
    words = ["stagewright", "run"]
    for name in (
        "nodes",
        "tablets",
        "seed",
        "faults",
        "profile",
        "migrations",
        "writes",
        "consistency",
    ):
        value = getattr(args, name)
        if value not in (None, ""):
            words += [f"--{name}", str(value)]
    return shlex.join(words)


def _print(report: Report, reproduce: str) -> None:
    from stagewright.commands.console.output import console
    from stagewright.commands.running.text import closing_lines, render_run

    out = console()
    out.print(render_run(report))
    for line in closing_lines(report, reproduce):
        out.print(line, style="dim", soft_wrap=True, markup=False)


class _progress_on:  # noqa: N801 - used as a function
    """Prints how the run goes: one live line on a terminal, else a plain line every few seconds."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()
        self._last = time.monotonic()

    def __enter__(self) -> Progress:
        return self._tell

    def _tell(self, simulated_ms: int, begun: int, of: int) -> None:
        now = time.monotonic()
        if now - self._last < (_LIVE_SECONDS if self._live else _PLAIN_SECONDS):
            return
        self._last = now
        text = f"{simulated_ms / 1000:.1f} s simulated, {begun} of {of} transitions started"
        end = "" if self._live else "\n"
        print(f"\r\x1b[K{text}" if self._live else text, end=end, file=self._stream, flush=True)

    def __exit__(self, *_: object) -> None:
        if self._live:
            print("\r\x1b[K", end="", file=self._stream, flush=True)
