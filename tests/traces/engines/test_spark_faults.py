"""Workers that are killed, disks that are full, files that go away while Spark reads: nothing is dropped."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from stagewright.spec.errors import InputError
from stagewright.spec.trace import Event
from stagewright.traces.engines.engine import Embedded, Stage
from stagewright.traces.engines.spark_engine import OnSpark
from stagewright.traces.engines.spark_failures import TaskError
from stagewright.traces.inputs.tasks import Task
from stagewright.traces.validate import validate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

Work = Callable[[Any], Iterable[tuple[int, Any]]]


class Mortal(OnSpark):
    """Spark, of which a fault comes upon one task in the middle of its work, so many times."""

    def __init__(self, spark: SparkSession, times: int, fault: Callable[[], object]) -> None:
        super().__init__(spark)
        self._times, self._fault = times, fault

    def run(
        self,
        tasks: Sequence[Any],
        work: Work,
        partitions: int,
        finish: Callable[[Iterable[Any]], Any],
        *then: Any,
    ) -> list[Any]:
        """As `Engine.run`."""
        times, fault, doomed = self._times, self._fault, tasks[len(tasks) // 2]

        def mortal(task: Any) -> Iterator[tuple[int, Any]]:  # pickled by value
            from pyspark import TaskContext

            context = TaskContext.get()
            assert context is not None
            for number, item in enumerate(work(task)):
                if task == doomed and number == 1 and context.attemptNumber() < times:
                    fault()
                yield item

        return super().run(tasks, mortal, partitions, finish, *then)


def killed() -> None:
    """As by the system when memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)


def full() -> None:
    """As by a write to a disk that is full."""
    raise OSError(28, "No space left on device")


@pytest.fixture
def files(lease: Any, mutated: Callable[[str, int], list[Event]], tmp_path: Path) -> list[Path]:
    """Events of good and bad entities, mixed over some files."""
    events = [event for i in range(60) for event in mutated(f"lease{i}", i)]
    events += [event for i in range(100, 160) for event in lease.walk(f"lease{i}", i, 6)]
    random.Random(1).shuffle(events)
    for number in range(3):
        text = "".join(event.to_json() + "\n" for event in events[number::3])
        (tmp_path / f"{number}.jsonl").write_text(text)
    return [tmp_path / f"{number}.jsonl" for number in range(3)]


def test_a_worker_that_is_killed_changes_nothing(
    spark: SparkSession, lease: Any, files: list[Path]
) -> None:
    expected = validate(files, lease.definition, engine=Embedded(1))
    found = validate(files, lease.definition, engine=Mortal(spark, 1, killed))
    assert replace(found, coverage=()) == replace(expected, coverage=())
    assert found.totals.events > 1000


@pytest.mark.long
@pytest.mark.parametrize(
    ("fault", "problem", "mend"),
    [(killed, "its Python process died", "memory"), (full, "No space left", "free space")],
)
def test_what_happens_every_time_is_reported_in_a_line(
    spark: SparkSession,
    lease: Any,
    files: list[Path],
    fault: Callable[[], None],
    problem: str,
    mend: str,
) -> None:
    with pytest.raises(TaskError, match=problem) as caught:
        validate(files, lease.definition, engine=Mortal(spark, 9, fault))
    assert mend in caught.value.help
    assert "Traceback" not in str(caught.value)


def test_a_file_that_is_gone_when_it_is_read_again_is_named(
    spark: SparkSession, lease: Any, files: list[Path]
) -> None:
    class Fleeting(OnSpark):
        def run(
            self,
            tasks: Sequence[Any],
            work: Work,
            partitions: int,
            finish: Callable[[Iterable[Any]], Any],
            *then: Stage,
        ) -> list[Any]:
            found = super().run(tasks, work, partitions, finish, *then)
            if isinstance(tasks[0], Task):
                files[1].unlink(missing_ok=True)
            return found

    with pytest.raises(InputError, match=r"1\.jsonl cannot be read.*: No such file"):
        validate(files, lease.definition, engine=Fleeting(spark))


@pytest.mark.slow
@pytest.mark.xdist_group("Spark of its own")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the executor in /proc")
@pytest.mark.long
def test_an_executor_that_is_killed_changes_nothing(files: list[Path]) -> None:
    root = Path(__file__).parents[3]
    path = os.pathsep.join((str(root / "src"), str(root)))
    done = subprocess.run(
        [sys.executable, "-m", "tests.traces.engines.executor_killed", str(files[0].parent)],
        env={**os.environ, "PYTHONPATH": path},
        cwd=root,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout == "1 killed, alike\n", done.stderr[-3000:]
