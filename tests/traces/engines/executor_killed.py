"""Kills the Java process of an executor in the midst of a validation, on a small cluster of this machine.

`python -m tests.traces.engines.executor_killed DIRECTORY` validates the leases there so, and without Spark, and prints
how many executors were killed and whether both reports agree. Another process than that of the tests runs it:
Spark is one per process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyspark
from tests.traces.conftest import Lease

from stagewright.spec.define import define
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.engines.spark_engine import OnSpark
from stagewright.traces.engines.spark_session import local_session
from stagewright.traces.validate import validate

DEAD = "killed"  # a file with a line for each executor that was killed


class Mortal(OnSpark):
    """Spark, of which the executor dies that is the first to work on the last task."""

    folder = Path()

    def run(
        self,
        tasks: Sequence[Any],
        work: Callable[[Any], Iterable[tuple[int, Any]]],
        partitions: int,
        finish: Callable[[Iterable[Any]], Any],
        *then: Any,
    ) -> list[Any]:
        """As `Engine.run`."""
        doomed, dead = tasks[-1], self.folder / DEAD

        def mortal(task: Any) -> Iterator[tuple[int, Any]]:
            for number, item in enumerate(work(task)):
                if task == doomed and number == 1 and not dead.exists():
                    dead.write_text("once\n")
                    daemon = Path(f"/proc/{os.getppid()}/stat").read_text()
                    os.kill(int(daemon.rpartition(")")[2].split()[1]), signal.SIGKILL)
                    time.sleep(60)  # this process is ended with its executor
                yield item

        return super().run(tasks, mortal, partitions, finish, *then)


def main(folder: Path) -> None:
    """Validate both ways and compare."""
    os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    names = ("PYTHONPATH", "STAGEWRIGHT_CACHE")
    inherited = {f"spark.executorEnv.{n}": os.environ[n] for n in names if n in os.environ}
    settings = {
        "spark.master": "local-cluster[2,1,600]",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        **inherited,
    }
    spark = local_session("stagewright tests", 2, memory_mb=512, settings=settings)
    engine = Mortal(spark)
    engine.folder = folder
    files, definition = sorted(folder.glob("*.jsonl")), define(Lease)
    found = validate(files, definition, engine=engine)
    expected = validate(files, definition, engine=Embedded(1))
    spark.stop()
    killed = len((folder / DEAD).read_text().splitlines())
    alike = replace(found, coverage=()) == replace(expected, coverage=())
    print(f"{killed} killed, {'alike' if alike else 'different'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
