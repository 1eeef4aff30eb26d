"""`stagewright check --spark`: the verdicts of one machine, though Spark loses a worker now and then."""

import json
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from stagewright.checker.check import check
from stagewright.checker.limits import Limits, Stop
from stagewright.checker.sharded.check import check_sharded
from stagewright.checker.sharded.search import Place
from stagewright.checker.sharded.tasks import LevelPart, LevelTask
from stagewright.commands import run_command_line
from stagewright.commands.checking.spark_scheduler import SparkScheduler
from stagewright.spec.loading import load
from stagewright.spec.scope import scope_of
from stagewright.spec.verdict import Outcome
from stagewright.traces.engines.spark_failures import TaskError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

T = TypeVar("T")
R = TypeVar("R")

MODELS = Path(__file__).resolve().parents[2] / "models"
COMMIT = str(MODELS / "two_phase_commit.py")
BARRIER = str(MODELS / "tablet_barrier.py")
BROKEN = f"{MODELS / 'broken.py'}:Migration"


class Killing:
    """Spark, with the Python worker of one task killed once in the middle of two levels."""

    def __init__(self, spark: "SparkSession", place: str) -> None:
        self._scheduler = SparkScheduler(spark.sparkContext)
        self._place = place
        self._levels = 0

    def map(
        self, function: Callable[[T], R], tasks: Sequence[T], give_up: Callable[[], bool]
    ) -> list[R] | None:
        """What the function returns for each task."""
        place = self._place
        self._levels += 1
        deadly = self._levels in (2, 4)

        def mortal(task: T) -> R:  # pickled by value: workers cannot import tests
            from pyspark import TaskContext

            from stagewright.checker.sharded import tasks as work

            context = TaskContext.get()
            assert context is not None
            doomed = isinstance(task, LevelTask) and task.number == 1
            if deadly and doomed and context.attemptNumber() == 0:
                setattr(work, place, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            return function(task)

        return self._scheduler.map(mortal, tasks, give_up)


@pytest.mark.parametrize(
    ("name", "sizes", "states", "place"),
    [
        (COMMIT, {"manager": 7}, 296_448, "write_states"),
        (BARRIER, {"tablet": 3, "node": 3}, 171_458, "sending"),
    ],
)
@pytest.mark.long
def test_a_killed_worker_loses_nothing(
    spark: "SparkSession",
    tmp_path: Path,
    name: str,
    sizes: dict[str, int],
    states: int,
    place: str,
) -> None:
    definition = load(name)
    scope = scope_of(definition, sizes)
    promises = [p.name for p in definition.properties[:1]]
    printed: list[list[LevelPart]] = []
    where = Place(
        Killing(spark, place),
        tmp_path,
        3,
        at_once=2,
        alone=100_000,
        on_level=lambda _, parts: printed.append(parts),
    )
    found = check_sharded(definition, scope, where, Stop(Limits()), properties=promises)
    expected = check(definition, scope, properties=promises)
    assert found.states == states
    assert found.outcome is Outcome.HOLDS
    assert (found.transitions, found.depth, found.coverage) == (
        expected.transitions,
        expected.depth,
        expected.coverage,
    )
    processes = {part.process for parts in printed for part in parts}
    assert len(processes) >= 1 + 2 + 1  # this one, Spark's two, and who came for the dead


def test_the_command_line_reports_what_it_reports_on_one_machine(
    spark: "SparkSession", capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    promises = [
        word for name in ("reads_are_complete", "stages_go_up") for word in ("--property", name)
    ]
    reports: list[dict[str, object]] = []
    flags = ["--spark", "--shards", "3", "--work-dir", str(tmp_path / "work")]
    for how in ([], flags, flags):
        assert run_command_line(["check", BROKEN, *promises, "--json", *how]) == 1
        (report,) = json.loads(capsys.readouterr().out)["reports"]
        del report["seconds"], report["reproduce"]
        assert report["symmetry"].pop("used")
        del report["symmetry"]["states"]  # shards do not count what their orbits stand for
        for verdict in report["verdicts"]:
            del verdict["seconds"]
        reports.append(report)
    assert reports[0] == reports[1] == reports[2]
    assert (tmp_path / "work" / "search.json").is_file()


def test_what_needs_the_whole_graph_is_undecided(
    spark: "SparkSession", capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["check", COMMIT, "--no-symmetry", "--spark", "local[2]"]) == 3
    out, err = capsys.readouterr()
    assert "holds in all 288 states" in out
    assert "run without --spark" in " ".join(out.split())
    assert "--spark 'local[2]'" in " ".join(out.split())
    assert "starting Spark at local[2]" in err


@pytest.mark.long
def test_tasks_that_always_fail_end_with_what_they_said(spark: "SparkSession") -> None:
    def fail(task: int) -> int:
        raise OSError(28, "No space left on device", f"sent-{task}")

    scheduler = SparkScheduler(spark.sparkContext)
    with pytest.raises(TaskError, match="No space left on device: 'sent-0'") as raised:
        scheduler.map(fail, [0], lambda: False)
    assert "Traceback" not in str(raised.value)


def test_workers_that_always_die_end_with_a_guess_why(spark: "SparkSession") -> None:
    def die(_: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(TaskError, match="its Python process died") as raised:
        SparkScheduler(spark.sparkContext).map(die, [0], lambda: False)
    assert "--max-memory" in str(raised.value)


def test_tasks_are_cancelled_when_they_are_given_up(spark: "SparkSession") -> None:
    def sleep(task: int) -> int:
        import time

        time.sleep(600)
        return task

    asked: list[int] = []

    def give_up() -> bool:
        asked.append(0)
        return len(asked) > 3

    assert SparkScheduler(spark.sparkContext).map(sleep, [0, 1], give_up) is None
    assert SparkScheduler(spark.sparkContext).map(abs, [-1, -2], lambda: False) == [1, 2]


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["--shards", "2"], "--shards belongs to --spark"),
        (["--work-dir", "d"], "--work-dir belongs to --spark"),
        (["--spark", "--workers", "2"], "--workers and --spark exclude each other"),
        (["--spark", "--lean"], "--lean and --spark exclude each other"),
        (["--spark", "--engine", "numpy"], "--engine numpy and --spark exclude each other"),
        (["--spark", "--checkpoint", "d"], "--checkpoint and --spark exclude each other"),
        (["--spark", "--property", "consistant"], "did you mean `consistent`?"),
        (["--spark", "yarn"], "a search at yarn needs a work directory"),
    ],
)
def test_flags_that_contradict_each_other_are_refused(
    words: list[str], printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["check", COMMIT, *words]) == 2
    assert printed in capsys.readouterr().err


def test_a_machine_after_the_flag_is_not_taken_for_a_master(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command_line(["check", "--spark", COMMIT]) == 2
    assert "is no Spark master; the machine is named before --spark" in capsys.readouterr().err
