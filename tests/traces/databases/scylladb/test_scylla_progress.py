"""What the coordinator says of a stage's operation or barrier shows which stage the tablet is in."""

from itertools import product
from pathlib import Path

from tests.traces.databases.scylladb.test_scylla_end_to_end import evaluated

from stagewright.spec.trace import TraceVerdict

# A line may itself be the first that shows the next stage.
BEFORE = {
    "streaming": {"write_both_read_old", "rebuild_repair"},
    "rebuild_repair": {"write_both_read_old"},
    "cleanup": {"use_new"},
}
TABLET = "5a1f4c30-9d0e-11ef-8b4e-2f1a6d3c7e90:0"
INITIATING = f"Initiating tablet streaming (migration) of {TABLET} to 5f0:0"


def text(*messages: str) -> str:
    head = "DEBUG 2026-06-03 08:00:00,{:03} [shard 0: gms] raft_topology - {}\n"
    return "".join(head.format(number, message) for number, message in enumerate(messages))


def enters(stage: str) -> tuple[str, str]:
    return f"Will set tablet {TABLET} stage to {stage}", "updating topology state: Tablet migration"


SAYS = [
    ("streaming for tablet {} resolved.", {"streaming"}),
    ("streaming for tablet {} failed: x", {"streaming"}),
    ("rebuild_repair for tablet {} failed: x", {"rebuild_repair"}),
    ("cleanup for tablet {} failed: x", {"cleanup", "cleanup_target"}),
    ("cleanup for tablet {} resolved.", {"cleanup", "cleanup_target"}),
    ("Tablet {} still doing streaming", {"streaming"}),
    ("Tablet {} still doing cleanup", {"cleanup", "cleanup_target"}),
    (
        "barrier for tablet {} failed: x",
        {"write_both_read_old", "write_both_read_new", "use_new", "cleanup_target"},
    ),
]
STAGES = ["write_both_read_old", "streaming", "use_new", "cleanup", "cleanup_target"]


def test_a_line_of_another_stage_is_a_violation(tmp_path: Path) -> None:
    expected: set[str] = set()
    lines: list[str] = []
    for number, ((says, stages), stage) in enumerate(product(SAYS, STAGES)):
        tablet = TABLET.replace(":0", f":{number}")
        lines += [line.replace(TABLET, tablet) for line in enters(stage)]
        lines.append(says.format(tablet))
        may_be = stages.union(*(BEFORE.get(name, ()) for name in stages))
        expected |= set() if stage in may_be else {tablet}
    path = tmp_path / "n.log"
    path.write_text(text(*lines))
    report = evaluated(path, profile="scylla-2026.2")
    wrong = [e for e in report.entities if e.verdict is TraceVerdict.VIOLATION]
    assert {e.key.entity for e in wrong} == expected
    assert all(e.where is not None and e.where.line % 3 == 0 for e in wrong)
    assert report.passed_over == ()


def test_at_info_a_cleanup_that_fails_may_be_in_either_stage(tmp_path: Path) -> None:
    path = tmp_path / "n.log"
    path.write_text(text(INITIATING, f"cleanup for tablet {TABLET} failed: x"))
    assert evaluated(path).entities == ()


def test_a_repair_of_a_tablet_at_rest_is_in_its_stage(tmp_path: Path) -> None:
    path = tmp_path / "n.log"
    begins = f"Initiating tablet repair host=h tablet={TABLET}"
    path.write_text(text(begins, f"repair for tablet {TABLET} failed: x"))
    assert evaluated(path).entities == ()
    path.write_text(text(*enters("use_new"), f"repair for tablet {TABLET} failed: x"))
    assert [e.verdict.value for e in evaluated(path).entities] == ["violation"]
