"""The pytest plugin: `pytest --stagewright` collects the machines in Python files, a test for each property.

It is loaded into every pytest run where Stagewright is installed, so it imports the rest only when asked to.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from stagewright.checker.conformance import AdapterFactory
    from stagewright.spec.definition import Definition
    from stagewright.spec.machine import Machine

    Conformance = Callable[[type[Machine] | Definition, AdapterFactory], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options; without --stagewright nothing is collected."""
    group = parser.getgroup("stagewright", "state machines defined with Stagewright")
    group.addoption(
        "--stagewright",
        action="store_true",
        help="collect the machines in Python files: a test for each property",
    )
    group.addoption(
        "--stagewright-all-profiles",
        action="store_true",
        help="check every profile of a machine, not only the newest",
    )
    group.addoption(
        "--stagewright-size",
        action="append",
        default=[],
        metavar="SORT=N",
        help="how many members an entity has, in every machine that has it",
    )
    group.addoption(
        "--stagewright-budget",
        action="append",
        default=[],
        metavar="NAME=N",
        help="how often a budget may be spent (N or `any`), in every machine that has it",
    )
    group.addoption(
        "--stagewright-examples",
        type=int,
        default=100,
        metavar="N",
        help="random runs of the fixture `conforms` (default: 100)",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The machines of a Python file that imports the language."""
    if not parent.config.getoption("--stagewright") or file_path.suffix != ".py":
        return None
    if b"stagewright" not in file_path.read_bytes():
        return None
    from stagewright.testing.collected import MachineFile

    return MachineFile.from_parent(parent, path=file_path)


@pytest.fixture
def conforms(request: pytest.FixtureRequest) -> Callable[..., None]:
    """`assert_conforms`, with as many random runs as --stagewright-examples says.

    conforms(Lease, MyAdapter, sizes={"node": 2})
    """
    from functools import partial

    from stagewright.testing import assert_conforms

    examples: int = request.config.getoption("--stagewright-examples") or 0
    return partial(assert_conforms, examples=examples)
