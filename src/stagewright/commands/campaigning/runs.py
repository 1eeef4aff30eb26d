"""Runs the seeds of a campaign in several processes; what is there already is not run again."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from stagewright.checker.mutation.processes import in_processes, possible
from stagewright.impl.simulator.campaign.drawing import draw
from stagewright.impl.simulator.campaign.tally import Tally
from stagewright.impl.simulator.campaign.trial import RAISED, Failure, Result, attempt
from stagewright.impl.simulator.database.checks.watcher import tables
from stagewright.impl.topology.planning import program
from stagewright.spec.errors import InputError

_LIVE_SECONDS, _PLAIN_SECONDS = 0.2, 10.0
_RESULTS = "results.jsonl"


def run_seeds(seeds: range, workers: int, directory: Path | None, seconds: int | None) -> Tally:
    """The results of seeds, of which `directory` may have some already.

    Raises:
        InputError: the directory is of another build, or cannot be written to.
    """
    tally, there = Tally(), dict[int, Result]()
    file = None
    if directory is not None:
        there, file = _open(directory)
    for seed, result in there.items():
        if seed in seeds:
            tally.add(result)
    left = [s for s in seeds if s not in there]
    program("")  # before the processes begin: they have it from this one
    tables()
    began = time.monotonic()
    show = _shown(len(seeds))
    try:
        for result in _results(left, workers, seconds, began):
            tally.add(result)
            if file is not None:
                print(json.dumps(result.to_json()), file=file, flush=True)
            show(tally)
    finally:
        if file is not None:
            file.close()
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    return tally


def _results(left: list[int], workers: int, seconds: int | None, began: float) -> Iterator[Result]:
    def over() -> bool:
        return seconds is not None and time.monotonic() - began > seconds

    if workers == 1 or len(left) < 2 or not possible():
        for seed in left:
            if over():
                return
            yield attempt(draw(seed))
        return
    gone = Failure(RAISED, "the process of the run was ended by the system")
    died = Result(-1, "", (gone,))
    work = in_processes(lambda i: attempt(draw(left[i])), len(left), workers, over=over, died=died)
    for index, result in work:
        yield replace(result, seed=left[index])


def _open(directory: Path) -> tuple[dict[int, Result], TextIO]:
    """The results that are there, and the file that takes more."""
    path, build = directory / _RESULTS, {"build": _build()}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        text = path.read_text("utf-8") if path.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()  # the last one may be cut off
        if lines and json.loads(lines[0]) != build:
            raise InputError(
                f"--out {directory}: its results are of another build",
                help="name another directory, or delete it",
            )
        found = [Result.from_json(json.loads(line)) for line in lines[1:]]
        file = path.open("w", encoding="utf-8")
        for line in lines or [json.dumps(build)]:
            print(line, file=file)
        file.flush()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"--out {directory}: {error}", help="name another directory") from None
    return {r.seed: r for r in found}, file


def _build() -> str:
    """What the results depend on: the code of the implementation and of the definitions."""
    from stagewright import impl, machines

    digest = hashlib.blake2b(digest_size=12)
    for package in (impl, machines):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _shown(asked: int) -> Callable[[Tally], None]:
    """Says on the error stream how far it is."""
    live = sys.stderr.isatty()
    began = last = time.monotonic()
    before = -1

    def show(tally: Tally) -> None:
        nonlocal last, before
        now = time.monotonic()
        if before < 0:
            before = tally.runs - 1
        if now - last < (_LIVE_SECONDS if live else _PLAIN_SECONDS):
            return
        last = now
        rate = (tally.runs - before) / max(now - began, 0.001)
        left = (asked - tally.runs) / rate
        text = f"{tally.runs:,} of {asked:,} runs, {tally.failed} failed, {rate:.1f} a second, {left:.0f} s left"
        end = "" if live else "\n"
        print(f"\r\x1b[K{text}" if live else text, end=end, file=sys.stderr, flush=True)

    return show
