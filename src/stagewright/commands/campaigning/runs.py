"""Runs the seeds of a campaign in several processes; what is there already is not run again."""

from __future__ import annotations

import gc
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TextIO, TypeVar

from stagewright.checker.processes import in_processes, possible
from stagewright.commands.campaigning.asked import Asked
from stagewright.commands.console.output import check_directory
from stagewright.spec.errors import InputError
from stagewright.spec.text.counting import counted

_LIVE_SECONDS, _PLAIN_SECONDS = 0.2, 10.0
_RESULTS = "results.jsonl"


class Outcome(Protocol):
    """What is kept of one run."""

    @property
    def seed(self) -> int: ...
    def to_json(self) -> dict[str, Any]: ...


R = TypeVar("R", bound=Outcome)
R_co = TypeVar("R_co", bound=Outcome, covariant=True)
R_contra = TypeVar("R_contra", bound=Outcome, contravariant=True)


class Runs(Protocol[R_co]):
    """What is run. `name` tells builds apart: results of one are none of another."""

    @property
    def asked(self) -> Asked: ...
    @property
    def name(self) -> str: ...
    def prepare(self) -> None: ...
    def attempt(self, seed: int) -> R_co: ...
    def died(self, seed: int) -> R_co: ...
    def result(self, line: dict[str, Any]) -> R_co: ...


class Progress(Protocol):
    """How far a campaign is."""

    runs: int
    failed: int


class Adding(Progress, Protocol[R_contra]):
    """Adds up results."""

    def add(self, trial: R_contra, /) -> None: ...


def run_seeds(of: Runs[R], seeds: range, tally: Adding[R]) -> None:
    """Tally the results of seeds, of which the folder that is asked for may have some already.

    Raises:
        InputError: the folder is of another build, or cannot be written to.
    """
    there, file = dict[int, R](), None
    if of.asked.out is not None:
        there, file = _open(of, of.asked.out)
    for seed, result in there.items():
        if seed in seeds:
            tally.add(result)
    left = [s for s in seeds if s not in there]
    of.prepare()
    show = _shown(len(seeds))
    try:
        with _collecting_between_runs():
            for result in _results(of, left, time.monotonic()):
                tally.add(result)
                if file is not None:
                    print(json.dumps(result.to_json()), file=file, flush=True)
                show(tally)
    finally:
        if file is not None:
            file.close()
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _results(of: Runs[R], left: list[int], began: float) -> Iterator[R]:
    seconds, workers = of.asked.seconds, of.asked.workers

    def over() -> bool:
        return seconds is not None and time.monotonic() - began > seconds

    def attempt(seed: int) -> R:
        result = of.attempt(seed)
        gc.collect()
        return result

    if workers == 1 or len(left) < 2 or not possible():
        for seed in left:
            if over():
                return
            yield attempt(seed)
        return
    for seed, result in in_processes(attempt, left, workers, over=over, died=None):
        yield of.died(seed) if result is None else result


@contextmanager
def _collecting_between_runs() -> Iterator[None]:
    """What stays is not looked at again, and a run is not interrupted: that is a tenth of its time."""
    was = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was:
            gc.enable()


def _open(of: Runs[R], directory: Path) -> tuple[dict[int, R], TextIO]:
    """The results that are there, and the file that takes more."""
    check_directory("--out", directory)
    path, build = directory / _RESULTS, {"build": _build(of.name)}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        text = path.read_text("utf-8") if path.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()  # the last one may be cut off
        if lines and json.loads(lines[0]) != build:
            raise InputError(
                f"--out {directory}: its results are of another build",
                help="name another directory, or delete it",
            )
        found = [of.result(json.loads(line)) for line in lines[1:]]
        file = path.open("w", encoding="utf-8")
        for line in lines or [json.dumps(build)]:
            print(line, file=file)
        file.flush()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"--out {directory}: {error}", help="name another directory") from None
    return {r.seed: r for r in found}, file


def _build(name: str) -> str:
    """What the results depend on: what is run, the code of the implementation and of the definitions."""
    from stagewright import impl, machines

    digest = hashlib.blake2b(name.encode(), digest_size=12)
    for package in (impl, machines):
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _shown(asked: int) -> Callable[[Progress], None]:
    """Says on the error stream how far it is."""
    live = sys.stderr.isatty()
    began = last = time.monotonic()
    before = -1

    def show(tally: Progress) -> None:
        nonlocal last, before
        now = time.monotonic()
        if before < 0:
            before = tally.runs - 1
        if now - last < (_LIVE_SECONDS if live else _PLAIN_SECONDS):
            return
        last = now
        rate = (tally.runs - before) / max(now - began, 0.001)
        left = (asked - tally.runs) / rate
        text = f"{tally.runs:,} of {counted(asked, 'run')}, {tally.failed} failed, {rate:.1f} a second, {left:.0f} s left"
        end = "" if live else "\n"
        print(f"\r\x1b[K{text}" if live else text, end=end, file=sys.stderr, flush=True)

    return show
