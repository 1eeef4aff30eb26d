"""The local session is quiet, small and private, and its workers know the project."""

from typing import TYPE_CHECKING, Any

import pytest

from stagewright.traces.engines.spark_session import SparkStartError, cluster_session, local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_session_is_local_and_private(spark: "SparkSession") -> None:
    context = spark.sparkContext
    assert context.master == "local[2,4]"
    assert context.uiWebUrl is None
    assert context.getConf().get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"


def test_nothing_of_sparks_own_logging_reaches_the_terminal(spark: "SparkSession") -> None:
    context: Any = spark.sparkContext
    logging = context._jvm.org.apache.logging.log4j.LogManager
    for name in ("", "org.apache.spark.executor.Executor"):
        assert not logging.getLogger(name).isFatalEnabled(), name


def test_running_session_is_returned_as_it_is(spark: "SparkSession") -> None:
    assert local_session("another", cores=1) is spark
    assert cluster_session("another", "spark://nowhere:7077") is spark


def test_worker_imports_the_project(spark: "SparkSession") -> None:
    def name_of(_: int) -> str:
        from stagewright.traces.engines.java_runtime import JavaNotFoundError

        return JavaNotFoundError.code

    names = spark.sparkContext.parallelize([1, 2], 2).map(name_of).collect()
    assert names == ["SW500", "SW500"]


@pytest.mark.parametrize(("cores", "memory_mb"), [(0, 1024), (1, 16)])
def test_impossible_sizes_are_refused(cores: int, memory_mb: int) -> None:
    with pytest.raises(SparkStartError, match="Spark needs at least"):
        local_session("tiny", cores=cores, memory_mb=memory_mb)
