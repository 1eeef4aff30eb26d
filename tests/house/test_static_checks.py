"""The static checkers find nothing wrong; and they do look at every folder."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("spec", "machines", "checker", "impl", "traces")
CHECKS = {  # what takes longest is first: where tests run in several processes, nobody waits for it at the end
    "pyright": ("pyright", "--pythonpath", sys.executable),
    "mypy": ("mypy",),
    "ruff check": ("ruff", "check", "."),
    "ruff format": ("ruff", "format", "--check", "."),
}


def run_check(name: str, root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", *CHECKS[name]]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


# Continuous integration asks for these by name, see .ci/run.
SLOW = {"mypy": pytest.mark.thorough, "pyright": pytest.mark.thorough}


@pytest.mark.parametrize("name", [pytest.param(n, marks=SLOW.get(n, ())) for n in CHECKS])
def test_check_is_clean(name: str) -> None:
    result = run_check(name, ROOT)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with a type error in each linked folder."""
    root = tmp_path_factory.mktemp("planted")
    for name in ("pyproject.toml", "run"):
        shutil.copy(ROOT / name, root)
    shutil.copytree(ROOT / "src", root / "src", symlinks=True)
    (root / "tests").mkdir()
    (root / "tests" / "test_nothing.py").write_text('"""Empty."""\n')
    for package in PACKAGES:
        (root / package).mkdir()
        (root / package / "__init__.py").write_text('"""A package."""\n')
        (root / package / "planted.py").write_text('"""Wrong."""\n\nNUMBER: int = "text"\n')
    return root


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["mypy", "pyright"])
def test_type_error_is_found_behind_every_link(name: str, planted: Path) -> None:
    result = run_check(name, planted)
    assert result.returncode == 1, result.stderr
    missed = [package for package in PACKAGES if f"{package}/planted.py" not in result.stdout]
    assert missed == [], result.stdout


def test_calls_that_lose_cancellations_are_refused_with_what_to_write_instead() -> None:
    source = "import asyncio\n\n\nasync def f() -> None:\n    await asyncio.wait_for(g(), 1)\n"
    command = [sys.executable, "-m", "ruff", "check", "--select", "TID251", "-"]
    result = subprocess.run(
        command, cwd=ROOT, input=source, capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert "write `async with asyncio.timeout(seconds):`" in result.stdout
