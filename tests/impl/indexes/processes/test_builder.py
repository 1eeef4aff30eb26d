"""A builder does one work after the other; if it dies, another one does what it had to do, unless it dies of that."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from tests.impl.indexes.slices import slice_of
from tests.patience import PATIENCE

from stagewright.impl.endurance.index_builds import children_of
from stagewright.impl.indexes.bulk.numbers import entries_of
from stagewright.impl.indexes.bulk.pace import FULL
from stagewright.impl.indexes.bulk.program import LEAST, LESS
from stagewright.impl.indexes.bulk.slices import SHORT, USUAL, take_slices
from stagewright.impl.indexes.bulk.work import (
    Answer,
    DoneWork,
    GetReady,
    RefusedWork,
    ScanRows,
    SiftedValues,
    SiftValues,
    WriteEntries,
)
from stagewright.impl.indexes.processes.builder import BuilderProcess

_FOUR = np.array([4], np.int64)
FOUR = entries_of(0, True, _FOUR, _FOUR)


@pytest.mark.long
def test_works_are_done_in_their_order_and_again_when_a_builder_dies(tmp_path: Path) -> None:
    answers: list[Answer] = []
    others = {*children_of(os.getpid())}  # of other tests

    async def work() -> None:
        builder, over = BuilderProcess(), asyncio.Event()

        def sifted(answer: Answer) -> None:
            answers.append(answer)
            if len(answers) == 1:
                (process,) = {*children_of(os.getpid())} - others
                os.kill(process, signal.SIGKILL)  # with its sieve
                builder.do(SiftValues("a", False, b"", FOUR), sifted)
            else:
                columns = np.arange(100_000, dtype=np.int64)
                entries = entries_of(0, False, columns, columns)
                path = str(tmp_path / "file")
                builder.do(WriteEntries(path, "rows", 1, entries), written)

        def written(answer: Answer) -> None:
            answers.append(answer)
            over.set()

        assert {*children_of(os.getpid())} <= others  # nothing was to be done
        builder.do(SiftValues("a", True, b"", FOUR), sifted)
        async with asyncio.timeout(PATIENCE):
            await over.wait()
        builder.close()

    asyncio.run(work())
    assert answers == [SiftedValues(()), RefusedWork("there is no such sieve"), DoneWork()]
    assert (tmp_path / "file").stat().st_size > 1_000_000


def test_what_a_builder_dies_of_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    answers: list[Answer] = []

    async def work() -> None:
        builder, over = BuilderProcess(), asyncio.Event()

        def answered(answer: Answer) -> None:
            answers.append(answer)
            if len(answers) == 2:
                over.set()

        builder.do(ScanRows((str(tmp_path),), "rows", b"", 1, 1, 1, ()), answered)  # no file
        builder.do(SiftValues("a", True, FOUR.values, FOUR), answered)
        async with asyncio.timeout(PATIENCE):
            await over.wait()
        builder.close()

    asyncio.run(work())
    assert answers == [RefusedWork("the builder dies of it"), SiftedValues((0,))]
    assert capfd.readouterr().err.count("OSError: ") == 3


def test_a_builder_rests_for_as_long_as_its_share_says(tmp_path: Path) -> None:
    """Of some milliseconds' work at one percent, each part is followed by a rest of 99 times what it took."""
    columns = np.arange(30_000, dtype=np.int64)
    entries = entries_of(0, False, columns, columns)
    files, began, ended = [str(tmp_path / f"file{n}") for n in range(2)], [0.0, 0.0], [0.0, 0.0]
    shares = iter((FULL, FULL, 1))

    async def work() -> None:
        builder, over = BuilderProcess(lambda: next(shares)), asyncio.Event()

        def write(n: int, answer: Answer) -> None:
            assert answer == DoneWork()
            ended[n - 1] = time.monotonic()
            if n == len(files):
                over.set()
                return
            began[n] = time.monotonic()
            works = WriteEntries(files[n], "rows", 1, entries)
            builder.do(works, lambda done: write(n + 1, done))

        builder.do(GetReady(), lambda done: write(0, done))
        async with asyncio.timeout(PATIENCE):
            await over.wait()
        builder.close()

    asyncio.run(work())
    assert ended[1] - began[1] > 0.3
    assert len({Path(file).read_bytes() for file in files}) == 1


def test_a_builder_lets_all_others_go_first() -> None:
    """Where the system shares processors out among sessions, a priority counts within one alone."""
    found: list[int] = []
    others = {*children_of(os.getpid())}

    async def work() -> None:
        builder, over = BuilderProcess(), asyncio.Event()

        def sifted(_: Answer) -> None:
            found.extend({*children_of(os.getpid())} - others)
            over.set()

        builder.do(SiftValues("a", True, b"", FOUR), sifted)
        async with asyncio.timeout(PATIENCE):
            await over.wait()
        (process,) = found
        assert os.getpriority(os.PRIO_PROCESS, process) == LEAST
        assert os.getsid(process) == process
        session = Path(f"/proc/{process}/autogroup")
        if session.exists():
            assert session.read_text("ascii").endswith(f" nice {LESS}\n")
        assert slice_of(process) != SHORT  # though its server's is
        builder.close()

    take_slices(SHORT)
    try:
        asyncio.run(work())
    finally:
        take_slices(USUAL)
