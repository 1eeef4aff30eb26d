"""Where reports for CI systems go: files, pipes and standard output, refused before any work is done."""

import json
import os
import re
import shlex
import threading
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from stagewright.commands import run_command_line

MODELS = Path(__file__).resolve().parents[2] / "models"
TURNSTILE = str(MODELS / "turnstile.py")
COMMIT = str(MODELS / "two_phase_commit.py")
COMMANDS = (["check", TURNSTILE], ["prove", TURNSTILE], ["test", TURNSTILE], ["validate", "no"])

Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: str(words[0]))
@pytest.mark.parametrize("flag", ["--junit", "--sarif"])
def test_where_nothing_can_be_written_nothing_is_begun(
    flag: str, words: list[str], tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    for place, printed in (
        (tmp_path / "missing" / "r", "does not exist"),
        (file / "r", "is not a directory"),
        (tmp_path, "this is not a file"),
        ("", "this is not a file"),
    ):
        assert run_command_line([*words, flag, str(place)]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.splitlines()[0].startswith(f"error[SW400]: {flag} {place}: ")
        assert printed in err
    assert file.read_text() == "kept"


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["--junit", "-", "--sarif", "-"], "--junit and --sarif both write to standard output"),
        (["--junit", "-", "--json"], "--junit and --json both write to standard output"),
        (["--junit", "r", "--sarif", "./r"], "--junit and --sarif both name r"),
    ],
)
def test_two_reports_do_not_share_a_place(
    words: list[str],
    printed: str,
    capsys: Captured,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["check", TURNSTILE, *words]) == 2
    assert printed in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_dash_is_standard_output_and_leaves_it_no_text(capsys: Captured) -> None:
    assert run_command_line(["check", TURNSTILE, "--sarif", "-"]) == 1
    assert json.loads(capsys.readouterr().out)["version"] == "2.1.0"
    assert run_command_line(["prove", TURNSTILE, "--depth", "4", "--junit", "-"]) == 1
    assert ET.fromstring(capsys.readouterr().out).tag == "testsuites"


def test_files_are_written_beside_the_text_and_change_no_exit_code(
    tmp_path: Path, capsys: Captured
) -> None:
    junit, sarif = tmp_path / "r.xml", tmp_path / "r.sarif"
    junit.write_text("an older report")
    for machine, code in ((TURNSTILE, 1), (COMMIT, 0)):
        words = ["check", machine, "--junit", str(junit), "--sarif", str(sarif)]
        assert run_command_line([*words, "--json"]) == code
        assert json.loads(capsys.readouterr().out)["reports"]
        assert run_command_line(words) == code
        assert "reproduce: stagewright check" in capsys.readouterr().out
        assert ET.parse(junit).getroot().get("failures") == ("7" if code else "0")
    assert {path.name for path in tmp_path.iterdir()} == {"r.xml", "r.sarif"}


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "real.xml", tmp_path / "link.xml"
    target.write_text("older")
    link.symlink_to(target)
    assert run_command_line(["check", COMMIT, "--junit", str(link)]) == 0
    assert link.is_symlink()
    assert ET.parse(target).getroot().tag == "testsuites"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    assert run_command_line(["check", COMMIT, "--sarif", str(pipe)]) == 0
    reader.join(60)
    assert pipe.is_fifo()
    assert json.loads(received[0])["runs"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_is_bad_input_with_the_flag_named(capsys: Captured) -> None:
    assert run_command_line(["check", COMMIT, "--junit", "/dev/full"]) == 2
    out, err = capsys.readouterr()
    assert "80 distinct orbits" in out  # what was found is not lost
    assert "--junit /dev/full: cannot write: No space left on device" in err


def test_help_names_them_with_an_example(capsys: Captured) -> None:
    for command in ("check", "prove", "test", "validate"):
        assert run_command_line([command, "--help"]) == 0
        printed = capsys.readouterr().out
        assert "--junit FILE" in printed
        assert f"stagewright {command} " in printed


def test_the_workflow_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (MODELS.parents[1] / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"- run: stagewright (.*)", readme)
    words = [COMMIT if word == "my/machine.py" else word for word in shlex.split(line)]
    monkeypatch.chdir(tmp_path)
    assert run_command_line(words) == 0
    assert "sarif_file: check.sarif" in readme
    assert {path.name for path in tmp_path.iterdir()} == {"check.xml", "check.sarif"}
