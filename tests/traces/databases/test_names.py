"""What readers of databases call machines, variables, states and steps is checked before they read anything."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from stagewright.machines.couchbase.partitions.group_states import Partition
from stagewright.machines.couchbase.partitions.partition_replicas import PartitionReplicas
from stagewright.machines.couchbase.partitions.partition_states import (
    Content,
    Entry,
    PartitionGroup,
)
from stagewright.traces.databases.names import leaf, states, step

DATABASES = Path(__file__).resolve().parents[3] / "traces" / "databases"
# A reader, a name that it has, and the same name misspelt.
MISSPELT = [
    ("scylladb/lines/tablets.py", "Stage.rebuild_repair", "Stage.rebuild_repeal"),
    ("scylladb/lines/tablets.py", "TabletMigration.stage", "TabletMigration.sage"),
    ("scylladb/lines/cdc.py", "Life.published", "Life.publicised"),
    ("scylladb/lines/views.py", "ViewTask.send", "ViewTask.sent"),
    ("scylladb/versions.py", "topology_transition.SEED", "topology_transition.SEEDS"),
    ("yugabytedb/yugabyte_jobs.py", "Permission.do_backfill", "Permission.backfill"),
    ("couchbase/couchbase_events.py", "R.take_over", "R.takeover"),
]


def test_a_leaf_is_called_as_states_and_traces_call_it() -> None:
    name = leaf(
        PartitionGroup.group, Partition(0), Entry.content, Content.cbit, of=PartitionReplicas.main
    )
    assert name == "main.group[partition0].content.cbit"
    assert step(PartitionGroup.clean, of=PartitionReplicas.main) == "main.clean"
    assert states(()) == frozenset()


@pytest.mark.parametrize(("reader", "right", "wrong"), MISSPELT)
def test_a_name_that_no_machine_has_cannot_be_imported(reader: str, right: str, wrong: str) -> None:
    text = (DATABASES / reader).read_text("utf-8")
    broken, count = re.subn(rf"\b{re.escape(right)}\b", wrong, text)
    assert count
    with pytest.raises(AttributeError, match=wrong.rpartition(".")[2]):
        exec(compile(broken, reader, "exec"), {"__name__": "reader"})  # noqa: S102 - our own file


@pytest.mark.thorough
def test_a_name_that_no_machine_has_is_an_error_of_the_type_checker(tmp_path: Path) -> None:
    """All of them in one run of mypy, as a user's editor would show them."""
    files: list[str] = []
    for number, (reader, right, wrong) in enumerate(MISSPELT):
        text = (DATABASES / reader).read_text("utf-8")
        file = tmp_path / f"reader{number}.py"
        file.write_text(re.sub(rf"\b{re.escape(right)}\b", wrong, text))
        files.append(str(file))
    root = DATABASES.parents[1]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(root / "pyproject.toml"), *files],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    for number, (_, _, wrong) in enumerate(MISSPELT):
        errors = [line for line in run.stdout.splitlines() if f"reader{number}.py" in line]
        assert any(wrong.rpartition(".")[2] in line for line in errors), run.stdout
