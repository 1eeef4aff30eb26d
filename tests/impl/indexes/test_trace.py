"""The control steps of a run are traces that `stagewright validate` explains; those of a wrong build are not."""

from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.impl.indexes.defects import Defect
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.simulated.run import Plan, run
from stagewright.impl.indexes.simulated.script import parse_script
from stagewright.impl.simulator.database.weather import parse_faults

SIZES = {
    "permissions": ["--size", "Server=3"],
    "job": ["--size", "Tablet=3", "--size", "Index=2"],
    "tablets": [],
}
SCRIPT = parse_script(
    "create table 30 rows; put 70 v=5; put 71 v=5; create unique index i on v; create index j on w; "
    "await i; await j; drop index j; wait 400"
)


def validated(directory: Path, kind: str) -> int:
    path = str(directory / f"{kind}.jsonl")
    return run_command_line(["validate", path, *SIZES[kind], "--engine", "embedded"])


def test_validate_explains_the_traces_of_a_run(tmp_path: Path) -> None:
    report = run(Plan(seed=4, script=SCRIPT, faults=parse_faults("all")), tmp_path)
    assert report.kept
    assert report.sizes == {"Server": 3, "Tablet": 3, "Index": 2}
    assert [validated(tmp_path, kind) for kind in SIZES] == [0, 0, 0]


@pytest.mark.parametrize(
    ("defect", "kind"),
    [(Defect.schemas_do_not_converge, "permissions"), (Defect.publishes_too_early, "job")],
    ids=lambda x: x.name if isinstance(x, Defect) else x,
)
def test_validate_refuses_the_traces_of_a_wrong_build(
    defect: Defect, kind: str, tmp_path: Path
) -> None:
    settings = Settings(defects=frozenset({defect}), batch=2, chunk_rows=4)
    late = parse_faults("delay=0.3")
    run(Plan(seed=1, script=SCRIPT, faults=late, settings=settings), tmp_path)
    assert validated(tmp_path, kind) == 1
