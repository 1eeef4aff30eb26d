"""Starts a small Spark on this machine, with whatever Java can be had."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING

from stagewright.spec.errors import StagewrightError
from stagewright.traces.engines.engine import usable_cores
from stagewright.traces.engines.java_runtime import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOPBACK = "127.0.0.1"
DRIVER_MEMORY_MB = 2048
_ATTEMPTS = 4  # of a task: a worker that is killed once or twice ends nothing
SMALLEST_MEMORY_MB = 512  # Spark refuses a driver with less than about 450 MB


class SparkStartError(StagewrightError):
    """Spark could not be started on this machine."""

    code = "SW501"


def local_session(
    app_name: str,
    cores: int | None = None,
    *,
    memory_mb: int = DRIVER_MEMORY_MB,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a Spark session that runs in this machine's ``cores`` (None: all that are usable).

    The driver, which does all the work of a local session, gets ``memory_mb`` megabytes of heap.
    ``settings`` are further Spark settings; they win over the ones made here. The session listens
    on the loopback interface only, shows no web page, counts time in UTC, and logs only errors.

    Spark is one per process: a session that runs already is returned as it is.
    Raises `JavaNotFoundError` if there is no Java, and `SparkStartError` if Spark does not start.
    """
    usable = usable_cores()
    wanted = usable if cores is None else cores
    if wanted < 1:
        raise SparkStartError(f"Spark needs at least one core, not {wanted}")
    if memory_mb < SMALLEST_MEMORY_MB:
        raise SparkStartError(f"Spark needs at least {SMALLEST_MEMORY_MB} MB, not {memory_mb}")
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        return running
    _set_environment()
    builder = SparkSession.Builder().master(f"local[{wanted},{_ATTEMPTS}]").appName(app_name)
    for name, value in {**_settings(wanted, memory_mb), **(settings or {})}.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise SparkStartError(
            f"Spark did not start: {error}", help="`stagewright doctor --spark` says more"
        ) from error


def cluster_session(
    app_name: str, master: str, *, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a Spark session at a cluster's `master`; its own configuration decides the rest.

    A session that runs already is returned as it is. Raises as `local_session` does.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    os.environ.setdefault("JAVA_HOME", str(find_java().home))
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.Builder().master(master).appName(app_name)
    for name, value in {"spark.ui.showConsoleProgress": "false", **(settings or {})}.items():
        builder = builder.config(name, value)
    try:
        return builder.getOrCreate()
    except (PySparkException, OSError) as error:
        raise SparkStartError(
            f"Spark did not start at {master}: {error}", help="is this the address of its master?"
        ) from error


def _set_environment() -> None:
    """Tell Spark's launcher which Java, Python and interface to use; it reads the environment."""
    if os.name == "posix" and shutil.which("bash") is None:
        raise SparkStartError("Spark's start script needs bash", help="put bash on the PATH")
    os.environ["JAVA_HOME"] = str(find_java().home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = LOOPBACK
    os.environ["SPARK_LOCAL_HOSTNAME"] = "localhost"  # asks no name server


def _settings(cores: int, memory_mb: int) -> dict[str, str]:
    logging = resources.files("stagewright.traces.engines") / "log4j2.properties"
    return {
        "spark.default.parallelism": str(cores),
        "spark.driver.bindAddress": LOOPBACK,
        # Java only moves bytes here: to optimise its code well costs more than it saves.
        "spark.driver.extraJavaOptions": (
            f'-XX:TieredStopAtLevel=1 -Duser.timezone=UTC "-Dlog4j2.configurationFile={logging}"'
        ),
        "spark.driver.host": LOOPBACK,
        "spark.driver.memory": f"{memory_mb}m",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
