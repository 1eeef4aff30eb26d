"""What `docs/readers.md` and `docs/traces.md` show is so: their files are read, and runs print what they say."""

import importlib.util
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.traces.mapping import load, rules
from stagewright.traces.mapping.times import UNITS
from stagewright.traces.readers import formats

ROOT = Path(__file__).resolve().parents[2]
READERS = (ROOT / "docs/readers.md").read_text("utf-8")
PAGE = READERS + (ROOT / "docs/traces.md").read_text("utf-8")
FILES = dict(re.findall(r"```\w+ file=(\S+)\n(.*?)```", PAGE, re.DOTALL))
RUNS = re.findall(r"```console( reader=\w+)? exit=(\d)\n\$ (.*?)\n(.*?)```", PAGE, re.DOTALL)


def use_reader(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the reader of the page one of the package, with its row."""
    module_name = f"stagewright.traces.readers.{name}"
    spec = importlib.util.spec_from_file_location(module_name, f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, module_name, module)
    spec.loader.exec_module(module)
    row = eval(FILES["row.py"], {"Form": formats.Form})  # noqa: S307 - it is our own page
    monkeypatch.setattr(formats, "FORMS", (*formats.FORMS, replace(row)))
    monkeypatch.setattr(formats, "NAMES", (*formats.NAMES, row.name))


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run[2].split()[2])
def test_what_it_shows_is_printed(
    run: tuple[str, str, str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    reader, exit_code, command, shown = run
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    if reader:
        use_reader(reader.removeprefix(" reader="), monkeypatch)
    program, *words = shlex.split(command)
    assert program == "stagewright"
    assert run_command_line([*words, "--engine", "embedded"]) == int(exit_code)
    printed = capsys.readouterr().out
    assert [line for line in shown.splitlines() if line.strip() not in printed] == []


def test_every_file_that_it_shows_is_used() -> None:
    used = {word.partition(":")[0] for run in RUNS for word in run[2].split()} | {
        "logfmt.py",
        "row.py",
    }
    assert set(FILES) <= used


def test_it_names_every_key_and_every_form() -> None:
    named = set(re.findall(r"`([\w-]+)`", READERS))
    assert {*load.KEYS, *load.SOURCE_KEYS, *load.RECORDING_KEYS, *rules.KEYS} <= named | {"event"}
    assert {*load.FILES, *UNITS, "iso"} <= named
    assert {*formats.CHOICES, "mapped"} <= named


def test_every_file_it_links_to_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", PAGE) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []
