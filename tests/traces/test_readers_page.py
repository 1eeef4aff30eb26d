"""What `docs/readers.md` and `docs/traces.md` show is so: their files are read, and runs print what they say."""

import importlib
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from stagewright.commands import run_command_line
from stagewright.spec.errors import InputError
from stagewright.traces.mapping import load, rules
from stagewright.traces.mapping.times import UNITS
from stagewright.traces.readers import formats
from stagewright.traces.readers.packages import GROUP, forms_of_packages

ROOT = Path(__file__).resolve().parents[2]
READERS = (ROOT / "docs/readers.md").read_text("utf-8")
PAGE = READERS + (ROOT / "docs/traces.md").read_text("utf-8")
FILES = dict(re.findall(r"```\w+ file=(\S+)\n(.*?)```", PAGE, re.DOTALL))
RUNS = re.findall(r"```console( reader=\w+)? exit=(\d)\n\$ (.*?)\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def forms_are_looked_up_anew() -> Iterator[None]:
    """What packages bring is looked up once in a process."""
    yield
    formats.by_name.cache_clear()
    forms_of_packages.cache_clear()
    sys.modules.pop("logfmt", None)
    importlib.invalidate_caches()


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the reader of the page a package that is installed, as pip leaves it."""
    about = folder / "logfmt_reader-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: logfmt-reader\nVersion: 1.0\n")
    points = tomllib.loads(FILES["pyproject.toml"])["project"]["entry-points"][GROUP]
    lines = [f"{name} = {value}" for name, value in points.items()]
    (about / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines]) + "\n")
    monkeypatch.syspath_prepend(folder)
    formats.by_name.cache_clear()
    forms_of_packages.cache_clear()


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
        install(tmp_path, monkeypatch)
    program, *words = shlex.split(command)
    assert program == "stagewright"
    assert run_command_line([*words, "--engine", "embedded"]) == int(exit_code)
    printed = capsys.readouterr().out
    assert [line for line in shown.splitlines() if line.strip() not in printed] == []


def test_every_file_that_it_shows_is_used() -> None:
    used = {word.partition(":")[0] for run in RUNS for word in run[2].split()} | {
        "logfmt.py",
        "pyproject.toml",
    }
    assert set(FILES) <= used


def test_it_names_every_key_and_every_form() -> None:
    named = set(re.findall(r"`([\w-]+)`", READERS))
    assert {*load.KEYS, *load.SOURCE_KEYS, *load.RECORDING_KEYS, *rules.KEYS} <= named | {"event"}
    assert {*load.FILES, *UNITS, "iso"} <= named
    assert {*formats.choices(), "mapped"} <= named


def test_every_file_it_links_to_exists() -> None:
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", PAGE) if "://" not in link]
    assert links
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []


def test_readers_of_packages_that_are_wrong_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    install(tmp_path, monkeypatch)
    points = tmp_path / "logfmt_reader-1.0.dist-info" / "entry_points.txt"
    (tmp_path / "taken.py").write_text(
        'from stagewright.traces.readers.form import Form\nFORM = Form("jsonl", "taken")\n'
    )
    for value, said in (
        ("logfmt:MISSING", "logfmt = logfmt:MISSING of logfmt-reader cannot be loaded"),
        ("nowhere:FORM", "cannot be loaded: ModuleNotFoundError"),
        ("logfmt:MACHINE", "is a str, not of the kind Form"),
        ("taken:FORM", "there is a `jsonl` already"),
    ):
        points.write_text(f"[{GROUP}]\nlogfmt = {value}\n")
        formats.by_name.cache_clear()
        forms_of_packages.cache_clear()
        with pytest.raises(InputError, match=re.escape(said)):
            formats.choices()


def test_a_fault_of_a_reader_of_ones_own_names_the_reader_the_file_and_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    install(tmp_path, monkeypatch)
    (tmp_path / "anonymous.logfmt").write_text("level=info seq=0\n")
    machine = str(ROOT / "tests" / "models" / "lease.py")
    assert (
        run_command_line(["validate", str(tmp_path / "anonymous.logfmt"), "--machine", machine])
        == 2
    )
    said = capsys.readouterr().err
    assert "the reader `logfmt` fails on" in said
    assert re.search(r"anonymous\.logfmt, at \S+logfmt\.py:\d+: KeyError: 'entity'", said)
    assert "mend the reader" in said


def test_a_reader_whose_counts_do_not_add_up_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in FILES.items():
        (tmp_path / name).write_text(content.replace("tally.blank += 1", "pass"))
    install(tmp_path, monkeypatch)
    machine = str(ROOT / "tests" / "models" / "lease.py")
    assert run_command_line(["validate", str(tmp_path / "lease.logfmt"), "--machine", machine]) == 2
    said = capsys.readouterr().err
    assert "the reader `logfmt` read 7 lines of" in said
    assert "lease.logfmt and accounts for 6" in said
