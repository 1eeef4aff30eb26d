"""The benchmark of index builds measures what it says, side by side, and waits are counted from when an update was due."""

from __future__ import annotations

import sys
import time
from subprocess import PIPE, Popen

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("rocksdict")

from tests.benchmarks.indexes.__main__ import main
from tests.benchmarks.indexes.contestants import values_of
from tests.benchmarks.indexes.memory import Memory
from tests.benchmarks.indexes.writers import Latencies, Update, Writers
from tests.patience import PATIENCE


@pytest.mark.long
def test_figures_are_reported_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--rows", "300", "--rate", "40", "--idle", "0.6"]
    main([*sizes, "--only", "stagewright,sqlite", "--share", "10,50"])
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("300 rows, 40 updates a second, ")
    named = [line for line in said if not line.startswith(" ")][1:4]
    assert named == ["stagewright", "stagewright, builders' share 50 %", "SQLite"]
    assert sum("rows/CPU s" in line for line in said) == 6
    assert said[-2].startswith("stagewright / SQLite, rows a CPU second: ")


def test_memory_that_a_child_takes_and_gives_back_is_seen() -> None:
    script = "x = bytearray(b'x') * (64 << 20); print(flush=True); input(); del x; print(flush=True); input()"
    words = [sys.executable, "-c", script]
    with Popen(words, stdin=PIPE, stdout=PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdout.readline()
        with Memory(lambda: [child.pid]) as memory:
            pass
        assert memory.most >= 64
        child.stdin.write("\n")
        child.stdin.flush()
        child.stdout.readline()
        with Memory(lambda: [child.pid]) as afterwards:
            pass
        assert afterwards.most < memory.most - 32
        child.stdin.write("\n")


def test_one_that_waits_makes_those_behind_it_late() -> None:
    calls: list[tuple[int, int]] = []

    def connect() -> Update:
        def update(key: int, value: int) -> None:
            calls.append((key, value))
            if len(calls) == 1:
                time.sleep(0.3)

        return update

    def enough() -> None:
        until = time.monotonic() + PATIENCE
        while len(calls) < 60:
            assert time.monotonic() < until
            time.sleep(0.01)

    found = Writers(connect, 10, rate=100, count=1).during(enough)
    assert len(found.found) == len(calls)
    assert len({value for _, value in calls}) == len(calls)  # a unique index has no say in it
    assert min(value for _, value in calls) > 10
    # The first one, and those that were due meanwhile.
    assert sum(late > 0.1 for late in found.found) > 10


def test_values_are_in_no_order_and_quantiles_are_milliseconds() -> None:
    values = [value for _, value in values_of(1_000)]
    assert sorted(values) == list(range(1_000))
    assert values != sorted(values)
    assert Latencies([n / 1000 for n in range(1, 100)]).text() == "50.0 / 95.0 / 99.0"
