"""`check --checkpoint` and `check --resume`: a search that is stopped, or killed, goes on."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stagewright.commands import run_command_line

MODELS = Path(__file__).resolve().parents[2] / "models"
BARRIER = [
    str(MODELS / "tablet_barrier.py"),
    "--no-symmetry",
    "--size",
    "tablet=3",
    "--size",
    "node=3",
]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run_command_line(["check", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_stopped_check_says_how_to_go_on_and_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = str(tmp_path / "search")
    code, _, err = run(capsys, *BARRIER, "--checkpoint", directory, "--max-states", "50000")
    assert code == 3
    assert f"to go on: stagewright check --resume {directory}" in err
    code, out, err = run(capsys, "--resume", directory, "--json")
    assert code == 0
    assert "to go on" not in err
    (report,) = json.loads(out)["reports"]
    assert report["states"] == 171_458


def test_what_is_searched_is_known_and_cannot_be_given_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = str(tmp_path / "search")
    run(capsys, *BARRIER, "--checkpoint", directory, "--max-depth", "3")
    code, _, err = run(capsys, *BARRIER, "--resume", directory)
    assert code == 2
    assert "MACHINE, --size, --no-symmetry cannot be given with it" in err


def test_a_full_place_is_reported_and_the_result_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    directory = tmp_path / "search"
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
        code, out, err = run(capsys, *BARRIER, "--checkpoint", str(directory), "--json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert code == 0
    assert json.loads(out)["reports"][0]["states"] == 171_458
    assert f"warning: {directory} takes no more: File too large" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "no MACHINE is named"),
        (["--resume", "{}"], "holds no search: settings.json: No such file or directory"),
        (["--resume", "{}/text"], "settings.json holds no settings"),
        ([*BARRIER, "--checkpoint", "{}/full"], "is not empty"),
        (["tablet", "--all-profiles", "--checkpoint", "{}/new"], "is for one profile"),
    ],
)
def test_misuse_is_refused_with_the_mend(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "settings.json").write_text(
        '"machine profile size budget property no_coverage no_symmetry no_deadlock lean definition"'
    )
    code, _, err = run(capsys, *(word.format(tmp_path) for word in words))
    assert code == 2
    assert said in err
    assert "help:" in err


def test_a_definition_that_changed_is_not_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, directory = tmp_path / "barrier.py", str(tmp_path / "search")
    text = (MODELS / "tablet_barrier.py").read_text()
    file.write_text(text)
    run(capsys, str(file), "--checkpoint", directory, "--max-depth", "3")
    file.write_text(text.replace("LAST = 6", "LAST = 5"))
    code, _, err = run(capsys, "--resume", directory)
    assert code == 2
    assert "is not the definition that" in err


def expanded(directory: Path) -> int:
    """How far the search in a directory has come."""
    record = directory / "search.json"
    return int(json.loads(record.read_text())["tally"]["expanded"]) if record.exists() else 0


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_check_goes_on_from_what_it_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "search"
    words = [str(MODELS / "tablet_barrier.py"), "--size", "tablet=4", "--size", "node=3"]
    command = [sys.executable, "-P", "-m", "stagewright", "check", *words]
    check = subprocess.Popen(
        [
            *command,
            "--lean",
            "--no-symmetry",
            "--property",
            "no deadlock",
            "--checkpoint",
            str(directory),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while expanded(directory) < 1_000 and check.poll() is None:
        time.sleep(0.01)
    check.send_signal(signal.SIGKILL)
    check.wait()
    assert 1_000 <= expanded(directory) < 7_024_760
    code, out, _ = run(capsys, "--resume", str(directory), "--json")
    assert code == 0
    (report,) = json.loads(out)["reports"]
    assert report["states"] == 7_024_760
    assert report["transitions"] == 63_722_136
