"""Exporters and reports of other packages: the example of `docs/how-to/write-an-exporter.md`, installed and run."""

import importlib
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from stagewright.checker.exporter import Exporter
from stagewright.commands import run_command_line
from stagewright.commands.exporting.own import EXPORTERS
from stagewright.commands.reports.form import OWN, ReportForm

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/how-to/write-an-exporter.md").read_text("utf-8")
FILES = dict(re.findall(r"```\w+ file=(\S+)\n(.*?)```", PAGE, re.DOTALL))
RUNS = re.findall(r"```console exit=(\d)\n\$ (.*?)\n(.*?)```", PAGE, re.DOTALL)
POINTS = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"]
LEASE = "tests/models/lease.py"


def listed(forms: Sequence[Exporter | ReportForm]) -> str:
    return ", ".join(form.name for form in forms)


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package of the page, as pip leaves it; gives the file that names its entry points."""
    (tmp_path / "dot_and_tap.py").write_text(FILES["dot_and_tap.py"])
    about = tmp_path / "dot_and_tap-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: dot-and-tap\nVersion: 1.0\n")
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in points.items())])
        for group, points in POINTS.items()
    ]
    (about / "entry_points.txt").write_text("\n".join(groups) + "\n")
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield about / "entry_points.txt"
    sys.modules.pop("dot_and_tap", None)
    importlib.invalidate_caches()


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run[1].split()[1])
def test_what_the_page_shows_is_printed(
    run: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    exit_code, command, shown = run
    assert run_command_line(shlex.split(command)[1:]) == int(exit_code)
    printed = capsys.readouterr().out
    assert [line for line in shown.splitlines() if line not in printed] == []


def test_a_report_of_a_package_goes_to_a_file_beside_those_of_the_tool(tmp_path: Path) -> None:
    words = ["check", LEASE, "--report", "tap", "found.tap", "--junit", "found.xml"]
    assert run_command_line(words) == 0
    lines = (tmp_path / "found.tap").read_text().splitlines()
    tests = re.findall(r"<testcase ", (tmp_path / "found.xml").read_text())
    assert lines[0] == f"1..{len(tests)}"
    assert len(lines) == len(tests) + 1
    assert all(line.startswith("ok ") for line in lines[1:])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["export", LEASE, "--to", "dto"], f"one of {listed(EXPORTERS)}, dot"),
        (["export", LEASE, "--to", "dot", "--size", "node=2"], "--to dot searches nothing"),
        (["export", LEASE, "--to", "dot", "--run", "x.itf.json"], "without --run"),
        (["check", LEASE, "--report", "tpa", "x"], f"one of {listed(OWN)}, tap"),
        (["check", LEASE, "--report", "tap", "-", "--junit", "-"], "both write to standard output"),
        (["check", LEASE, "--report", "tap", "x", "--junit", "./x"], "both name"),
    ],
)
def test_a_form_that_does_not_fit_is_refused(
    words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(words) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("dot_and_tap:MISSING", "dot = dot_and_tap:MISSING of dot-and-tap cannot be loaded"),
        ("dot_and_tap:TAP", "is a ReportForm, not of the kind Exporter"),
        ("dot_and_tap:TAKEN", "there is a `tla` already"),
    ],
)
def test_an_entry_point_that_is_wrong_is_named(
    value: str, problem: str, installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package = installed.parents[1] / "dot_and_tap.py"
    package.write_text(FILES["dot_and_tap.py"] + 'TAKEN = Exporter("tla", "another")\n')
    installed.write_text(f"[stagewright.exporters]\ndot = {value}\n")
    assert run_command_line(["export", LEASE, "--to", "dot"]) == 2
    assert problem in capsys.readouterr().err
