"""A process that is killed in the midst: what it had committed and acknowledged is there afterwards."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stagewright.impl.cluster.messages import Row
from stagewright.impl.simulator.faults import parse_faults
from stagewright.impl.simulator.options import Options
from stagewright.impl.simulator.simulation import program, resume
from stagewright.impl.store import ControlStore, StoreError
from stagewright.machines.scylladb.tablets.tablet_migration import Progress
from stagewright.machines.scylladb.tablets.tablet_stages import Stage
from stagewright.spec.scope import without_budgets

FAULTS = "crash,failover,delay"
OPTIONS = Options(
    nodes=4, tablets=4, migrations=90_000, writes=900_000, faults=parse_faults(FAULTS)
)
ENDLESS = f"""
import sys
from pathlib import Path
from stagewright.impl.simulator.faults import parse_faults
from stagewright.impl.simulator.options import Options
from stagewright.impl.simulator.simulation import run

def tell(row):
    print(row.key, row.value, row.timestamp, flush=True)

options = Options(
    nodes=4, tablets=4, migrations=90_000, writes=900_000, faults=parse_faults("{FAULTS}")
)
run(options, Path(sys.argv[1]), acknowledged=tell)
"""


def killed_after(lines: int, directory: Path) -> dict[str, Row]:
    """Start an endless run, kill it after so many acknowledged writes; the newest one of each key."""
    command = [sys.executable, "-c", ENDLESS, str(directory)]
    acknowledged: dict[str, Row] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for number, line in enumerate(process.stdout):
            if number == lines:
                process.send_signal(signal.SIGKILL)
            if line.endswith("\n"):
                key, value, timestamp = line.split()
                row = Row(key, value, int(timestamp))
                if key not in acknowledged or acknowledged[key].timestamp < row.timestamp:
                    acknowledged[key] = row
    assert process.returncode == -signal.SIGKILL
    return acknowledged


def stages_in(directory: Path) -> dict[str, Stage]:
    """The stages that are committed, with what is volatile as it was initially."""
    rules = program("")
    with ControlStore(
        directory / "group0.sqlite",
        rules.definition,
        without_budgets(rules.definition),
    ) as store:
        found: dict[str, Stage] = {}
        for tablet in store.entities():
            state = store.load(tablet)
            assert state is not None
            assert state["barrier"] is state["operation"] is Progress.none
            stage = state["stage"]
            assert isinstance(stage, Stage)
            found[tablet] = stage
    return found


@pytest.mark.parametrize("lines", [60, 350])
def test_killed_cluster_goes_on_from_its_files(lines: int, tmp_path: Path) -> None:
    acknowledged = killed_after(lines, tmp_path)
    before = stages_in(tmp_path)
    assert len(before) == 4
    assert set(before.values()) != {Stage.none}, "killed in the midst of transitions"
    report = resume(replace(OPTIONS, migrations=3, writes=60), tmp_path, acknowledged)
    assert report.kept, [b.text for b in report.breaches]
    assert report.counters.steps["fail_over"] >= sum(s is not Stage.none for s in before.values())
    assert set(stages_in(tmp_path).values()) == {Stage.none}
    assert report.reads_checked > 4 * len(acknowledged) - 1


def test_lost_write_is_noticed_after_a_restart(tmp_path: Path) -> None:
    acknowledged = killed_after(60, tmp_path)
    key, row = next(iter(sorted(acknowledged.items())))
    invented = {**acknowledged, key: Row(key, "never", row.timestamp + 900_000)}
    report = resume(replace(OPTIONS, migrations=0, writes=0, faults=()), tmp_path, invented)
    assert any(key in b.text for b in report.breaches)


def test_cluster_of_another_profile_is_refused(tmp_path: Path) -> None:
    killed_after(5, tmp_path)
    with pytest.raises(StoreError, match="not of TabletMigration"):
        resume(replace(OPTIONS, profile="seed"), tmp_path, {})
