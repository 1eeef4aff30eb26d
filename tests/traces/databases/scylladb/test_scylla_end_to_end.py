"""ScyllaDB's logs and dumps through `validate`, as a user gives them: files of several forms at once."""

from pathlib import Path

import pytest
from tests.traces.databases.scylladb.scylla_evaluated import NAMES, line

from stagewright.machines import SHIPPED
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.loading import load
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.options import Options
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

SAMPLES = Path(__file__).resolve().parents[2] / "samples"
HOST = "9b1f3f0e-2222-4c5e-9a5e-0d6a2f6f0002"


def shipped(machine: str, profile: str) -> Definition:
    return load(NAMES[machine], profile, SHIPPED)


def evaluated(*paths: Path, profile: str = "") -> TraceReport:
    return validate(paths, shipped, Options(profile=profile), engine=Embedded(1))


def test_one_log_is_checked_by_several_machines() -> None:
    report = evaluated(SAMPLES / "topology.log")
    assert report.exit_code == 0
    assert report.verdicts[TraceVerdict.OK] == sum(report.verdicts.values()) == 7
    assert (report.totals.lines, report.totals.with_events) == (85, 73)


def test_a_log_of_another_version_is_a_violation_at_the_line_that_shows_it() -> None:
    report = evaluated(SAMPLES / "topology.log", profile="scylla-2026.2")
    (violation,) = report.entities
    assert violation.where is not None
    text = (SAMPLES / "topology.log").read_text().splitlines()[violation.where.line - 1]
    assert text.endswith("entered `tablet draining` transition state")


def test_one_machine_alone_is_checked_where_it_is_named() -> None:
    named = load("topology-transition", "scylla-2025.4", SHIPPED)
    report = validate([SAMPLES / "topology.log"], named, engine=Embedded(1))
    assert report.verdicts[TraceVerdict.OK] == sum(report.verdicts.values()) == 1
    assert (
        "what the lines say of CdcGeneration, LoggedGenerations, LoggedTenure, TopologyNode is left out"
        in report.notes
    )


def test_a_profile_that_no_machine_has_is_refused() -> None:
    with pytest.raises(InputError, match="there is no profile `nonsense`"):
        evaluated(SAMPLES / "topology.log", profile="nonsense")


def test_a_folder_with_a_log_and_dumps_is_checked_together(tmp_path: Path) -> None:
    (tmp_path / "node1.log").write_text(
        "\n".join(
            [
                line("start topology coordinator fiber"),
                line(f"updating topology state: finished decommissioning node {HOST}"),
            ]
        )
    )
    header = "key,host_id,node_state,transition_state,version"
    for minute, state in enumerate(("normal", "left", "normal")):
        row = f"topology,{HOST},{state},,{minute}"
        (tmp_path / f"topology-2025-03-01T10:0{minute}:00.csv").write_text(f"{header}\n{row}\n")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    report = evaluated(tmp_path)
    (violation,) = report.entities
    assert violation.where is not None
    assert (Path(violation.where.file).name, violation.where.line) == (
        "topology-2025-03-01T10:02:00.csv",
        2,
    )
    assert report.verdicts[TraceVerdict.OK] == 3
    (note,) = (n for n in report.notes if "passed over" in n)
    assert note.startswith(f"passed over 1 file in no known format: {tmp_path}/other.csv; --format")
