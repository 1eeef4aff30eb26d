"""What all tests share: Hypothesis profiles and one Spark session."""

import gc
import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
from _pytest.assertion import rewrite
from _pytest.assertion.rewrite import assertstate_key
from _pytest.nodeid import coerce_node_id
from tests.thorough import VARIABLE

from stagewright.__main__ import NEW_OBJECTS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TESTS = Path(__file__).resolve().parent
SOURCES = TESTS.parent / "src"

# `ci` finds the same on every run; `thorough` looks for more, and prints how to see it again.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, database=None)
hypothesis.settings.register_profile(
    "thorough", max_examples=1000, deadline=None, print_blob=True, report_multiple_bugs=True
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """How much of the suite runs; by default all but what is marked `long` or `thorough`."""
    parser.addoption("--thorough", action="store_true", help="also run what takes long")
    parser.addoption("--long", action="store_true", help="run what is marked `long` alone")
    parser.addoption("--quick", action="store_true", help="leave out what is slow or needs Spark")


def pytest_configure(config: pytest.Config) -> None:
    """Tests read how much is asked for when they are imported, also in other processes."""
    if config.getoption("--thorough"):
        os.environ[VARIABLE] = "thorough"
    gc.set_threshold(NEW_OBJECTS)  # tests define machines, as the program does


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Thousands of tests and the modules that they import stay: looking for garbage among them finds none."""
    gc.disable()
    try:
        rewrite_a_share(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what was not asked for; what is made once for several tests is made in one process.

    That is the session of Spark, and what a fixture makes for all tests of a file.
    """
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    left_out = set[str]()
    if not config.getoption("--thorough"):
        left_out |= {"thorough"} if config.getoption("--long") else {"thorough", "long"}
    if config.getoption("--quick"):
        left_out |= {"slow", "spark"}
    only_long = config.getoption("--long") and not config.getoption("--thorough")
    deselected = [
        i
        for i in items
        if any(i.get_closest_marker(name) for name in left_out)
        or (only_long and not i.get_closest_marker("long"))
    ]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if item not in set(deselected)]
    for item in items:
        if item.get_closest_marker("xdist_group") is not None:
            pass
        elif item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif shares_a_fixture(item):
            item.add_marker(pytest.mark.xdist_group(item.path.as_posix()))
        group = item.get_closest_marker("xdist_group")
        if group is not None and getattr(config.option, "loadgroup", False):
            # pytest-xdist 3.8 names groups where pytest 9.2 no longer looks, and so would not group at all.
            item._id = coerce_node_id(f"{item.nodeid}@{group.args[0].replace('/', '.')}")


def rewrite_a_share(config: pytest.Config) -> None:
    """In a fresh clone each process would rewrite the assertions of all tests, at the same time as the others.

    So each first does its part of the files, and then finds those of the others done.
    """
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if processes == 1 or sys.dont_write_bytecode or config.getoption("file_or_dir"):
        return
    mine = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    for path in sorted(TESTS.rglob("test_*.py"))[mine::processes]:
        kept = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
        if rewrite._read_pyc(path, kept) is None and rewrite.try_makedirs(kept.parent):
            source_hash, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(config.stash[assertstate_key], code, source_hash, kept)


def shares_a_fixture(item: pytest.Item) -> bool:
    """Whether a test uses a fixture that is made once for its file, however it is come by."""
    names = getattr(item, "fixturenames", ())
    known = item.session._fixturemanager  # no public way leads to its scope
    defined = (d for name in names for d in known.getfixturedefs(name, item) or ())
    return any(d.scope == "module" for d in defined)


@pytest.fixture(scope="session", autouse=True)
def compiled_code_of_this_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of compiled searches of its own: thousands of random machines are in nobody's way.

    Where tests run in several processes, these share it.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STAGEWRIGHT_CACHE", str(folder / "compiled"))
        yield


@pytest.fixture(scope="session")
def spark() -> "Iterator[SparkSession]":
    """One local Spark for the whole run; its Python workers can import stagewright."""
    from stagewright.traces.engines.spark_session import local_session

    # pytest's `pythonpath` changes only this process: workers read the environment.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(SOURCES), prepend=os.pathsep)
        settings = {"spark.master": "local[2,4]"}  # a task may fail three times
        session = local_session("stagewright tests", 2, memory_mb=1024, settings=settings)
        yield session
        session.stop()
