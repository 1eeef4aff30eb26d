"""A run that is killed, or finds the disk full, leaves the state as it was; the next one goes on from there."""

import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stagewright.spec.errors import InputError
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.options import Options
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

KILLED = """
import os, signal, sys
from pathlib import Path
from stagewright.machines import SHIPPED
from stagewright.spec.loading import load
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.validate import validate

class Killed(Embedded):
    def run(self, *args):
        found = super().run(*args)
        print(*os.listdir(sys.argv[2]), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        return found

validate(
    [Path(sys.argv[1])], load("tablet-migration", "", SHIPPED), engine=Killed(1), state=Path(sys.argv[2])
)
"""


def content(state: Path) -> dict[str, bytes]:
    return {
        str(p.relative_to(state)): p.read_bytes()
        for p in state.rglob("*")
        if p.is_file() and p.name != "lock"
    }


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """No file can be larger: to those who write, this is a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_killed_run_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    from stagewright.machines import SHIPPED
    from stagewright.spec.loading import load

    definition = load("tablet-migration", "", SHIPPED)
    path, state = tmp_path / "t.jsonl", tmp_path / "state"
    line = (
        '{{"v":1,"trace":"r","machine":"TabletMigration","profile":"{}","definition":"{}",'
        '"entity":"tablet{}","seq":0,"node":"","action":null,"params":{{}},"observed":{{}}}}\n'
    )
    names = definition.profile, definition.fingerprint()
    path.write_text(line.format(*names, 0))
    validate([path], definition, engine=Embedded(1), state=state)
    before = content(state)
    path.write_text("".join(line.format(*names, n) for n in range(3)))
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(path), str(state)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert "run-2-" in killed.stdout
    assert content(state).items() > before.items()
    report = validate([path], definition, engine=Embedded(1), state=state)
    assert (report.totals.events, sum(report.verdicts.values())) == (2, 3)
    assert [p.name[:5] for p in sorted(state.iterdir())] == ["lock", "run-2", "state"]


@pytest.mark.parametrize(
    ("files", "size", "where"),
    [(1, 2_000, r"run-1-\w+"), (60, 15_000, "state")],
    ids=["carried rows", "state.json"],
)
def test_a_full_disk_leaves_the_state_as_it_was(
    lease: Any, tmp_path: Path, files: int, size: int, where: str
) -> None:
    walks = [lease.walk(f"lease{n}", n, 4) for n in range(60)]
    (tmp_path / "in").mkdir()
    for number in range(files):
        events = [e for walk in walks[number::files] for e in walk]
        text = "".join(e.to_json() + "\n" for e in events)
        (tmp_path / "in" / f"{number}.jsonl").write_text(text)

    def evaluated(state: str) -> TraceReport:
        options = Options(scope=lambda _: lease.scope)
        return validate(
            [tmp_path / "in"], lease.definition, options, engine=Embedded(1), state=tmp_path / state
        )

    evaluated("other")  # what is compiled is compiled
    with (
        files_of_at_most(size),
        pytest.raises(InputError, match=rf"/{where} cannot be written") as caught,
    ):
        evaluated("state")
    assert "what earlier runs left is as it was" in caught.value.help
    assert content(tmp_path / "state") == {}
    assert sum(evaluated("state").verdicts.values()) == 60
