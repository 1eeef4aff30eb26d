"""Runs a cluster that follows the definitions: it works through a script under faults, and records everything."""

from __future__ import annotations

import argparse
from pathlib import Path

_EXAMPLE = """\
examples:
  stagewright run --nodes 3 --tablets 8 --seed 7 --faults all
  stagewright run --faults crash@tablet.streaming,loss=0.1 --profile scylla-2025.4 --json
  stagewright run --script "join n4; write 10000; decommission n1; replace n2 by n5" --faults all
  stagewright run --script "table t tablets 4 rf 3; write 60; create view v on t by value; join n4; await v"
  stagewright run --script "create table 60 rows; write 300; create unique index i on v; kill n1; await i"

script (commands separated by semicolons, run in order; the nodes n1, n2 … are members at the start):
  join NODE [lacking FEATURE]              a node joins; if it lacks a feature of the cluster, it is rejected
  join NODE tokens TOKEN,…|of NODE         it asks for these tokens, or for another node's; owned ones are not given
  decommission NODE, remove NODE           it hands over its rows and leaves; it dies, and the others take over
  replace NODE by NODE [lacking FEATURE]   the first node dies, and the second takes its place
  rebuild NODE, cleanup, generation        rows are streamed again; rows of others are removed; a new CDC generation
  kill NODE, restart NODE, wait MS         a process ends; it starts again; nothing is done for so many milliseconds
  write NUMBER                             writes that go on while the following commands run
  table NAME tablets N rf N                creates a table with tablets
  drop table TABLE                         drops it, whatever its tablets are doing
  truncate TABLE                           removes all rows that it has by then, on every node
  lock, unlock                             nobody changes the topology meanwhile
  repair TABLE, alter TABLE rf N           replicas exchange what they lack; tablets gain or lose replicas
  split TABLE, merge TABLE                 the table gets twice, or half, as many tablets
  move TABLE TABLET [from NODE to NODE]    a replica moves
  balancing on, balancing off              whether loads are evened out
  isolate NODE                             it is cut off from group0 and the coordinator
  partition NODE, reconnect NODE           it is cut off from all others, too; it comes back as it is
  suspend NODE, resume NODE                its process stops; it goes on with what came meanwhile
  ask REQUEST NODE, abort NODE             only make a request to leave, be removed or rebuilt; withdraw it
  ask repair|split|merge TABLE             the same of a table
  create view NAME on TABLE by value [mod N] [where value < N]
                                           a materialized view, built while the table is written to
  await NAME, build status, drop view NAME waits until the view is built; shows how far all are; drops it
  Without --script, a table with --tablets is created, --writes are begun, and one node joins, one leaves and one is
  replaced.

faults (separated by commas):
  loss, delay, duplicate   of messages, each optionally with =SHARE from 0 to 1
  action                   the coordinator's calls to stream or remove rows fail, =SHARE of them
  crash                    of nodes, which come back with what is on their disks, =TIMES a minute
  failover                 another topology coordinator takes over, =TIMES a minute
  election                 group0 elects another leader, =TIMES a minute
  storm                    group0's own requests are lost, late and repeated
  partition=TIMES, suspend=TIMES   so often a minute a node is cut off, or stops, for seconds; not part of `all`
  skew=MILLISECONDS        the nodes' clocks are off by as much; not part of `all`
  KIND@STATE               strikes while the topology is in a state, as in crash@write_both_read_old
  KIND@tablet.STAGE        strikes while a tablet is in a stage; dead@tablet.STAGE: a replica is gone for good;
                           pending@tablet.STAGE: the one that comes is
  all, none                (default: none)

--workload says what clients do, as in keys=12,gap=0-3,reads=0.5,scans=0.2,deletes=0.1 (gap in milliseconds,
shares from 0 to 1; all=0.1: requests at level all); refused=on lets nodes refuse at once what too few replicas are alive
for, as real nodes do; chunk=3 is how many rows nodes stream at once. With --cdc, every change is also written to a CDC
log, and a consumer must read each change once.

A script that begins with `create [user-enforced] table N rows` runs a table with the columns v and w, tablets and
indexes: create [deferred] [unique] index NAME on COLUMN, drop index NAME, backfill, put KEY v=NUMBER w=NUMBER,
delete KEY, read NAME VALUE, status NAME, await NAME, await job STEP, write NUMBER, split [INDEX] TABLET,
await splits, kill and restart SERVER (n1, n2 …), fail over (the master), wait MILLISECONDS. Its faults are loss, delay,
duplicate, crash and failover.

The cluster is one process with a simulated clock and network: the same arguments give the same run.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright run``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n{parser.epilog or ''}"
    add = parser.add_argument
    add("--nodes", type=_number, default=3, metavar="N", help="nodes (default: 3)")
    add("--replicas", type=_number, metavar="N", help="of the table of the token ring (default: 3)")
    add("--script", metavar="TEXT", help="what to do to the cluster, see below")
    add(
        "--tablets",
        type=_number,
        metavar="N",
        help="without --script: tablets of the table (default: 8)",
    )
    add(
        "--writes",
        type=_number,
        metavar="N",
        help="without --script: number of writes (default: 400)",
    )
    add("--workload", metavar="LIST", help="what clients do during the script")
    add("--cdc", action="store_true", help="log changes, and check what a consumer reads")
    ttl = "with --cdc: keep changes for so many milliseconds (default: 0, for ever)"
    add("--ttl", type=_number, default=0, metavar="MS", help=ttl)
    add("--images", action="store_true", help="with --cdc: also log each row as it was before")
    add("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)")
    add("--faults", default="none", metavar="LIST", help="what goes wrong (default: none)")
    add("--profile", default="", help="the release that tablets follow (default: the newest)")
    add(
        "--out",
        type=Path,
        metavar="DIR",
        help="where to write files (default: artifacts/run-SEED)",
    )
    add("--json", action="store_true", help="print one JSON object")


def execute(args: argparse.Namespace) -> int:
    """Run, print what happened, and return 1 if a property was violated."""
    from stagewright.commands.running.indexes import run_index_script
    from stagewright.commands.running.script import plan_of, run_script
    from stagewright.impl.indexes.simulated.script import is_of_indexes

    directory: Path = args.out or Path("artifacts") / f"run-{args.seed}"
    if args.script is not None and is_of_indexes(args.script):
        return run_index_script(args, lambda: _usable(directory, "permissions.jsonl"))
    plan = plan_of(args)  # what it does not understand is refused before anything is written
    return run_script(args, plan, _usable(directory, "topology.jsonl"))


def _usable(directory: Path, first: str) -> Path:
    """A directory that can be written to.

    Raises:
        InputError: it cannot be made, or is not a directory.
    """
    from stagewright.commands.console.output import check_directory
    from stagewright.spec.errors import InputError

    check_directory("--out", directory)
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
