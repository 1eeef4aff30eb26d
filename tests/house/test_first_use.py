"""A stranger's first minutes: the README's two commands, in their order, where nothing is installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
JAVA_PROGRAMS = ("java", "javac", "javaws", "jar", "jps", "jstack", "jcmd")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """What is committed, and nothing else."""
    target = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(target)], check=True)
    return target


@pytest.fixture
def bare_environment(tmp_path: Path) -> dict[str, str]:
    """An empty home, and the programs of this machine without any Java."""
    programs, home = tmp_path / "bin", tmp_path / "home"
    programs.mkdir()
    home.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        if Path(folder).is_relative_to(ROOT) or not Path(folder).is_dir():
            continue  # not this checkout's own .venv
        for program in Path(folder).iterdir():
            link = programs / program.name
            if program.name not in JAVA_PROGRAMS and not os.path.lexists(link):
                link.symlink_to(program)
    kept = {name: os.environ[name] for name in ("LANG", "PYENV_ROOT") if name in os.environ}
    if "PYENV_ROOT" not in kept and Path.home().joinpath(".pyenv").is_dir():
        kept["PYENV_ROOT"] = str(Path.home() / ".pyenv")  # its `python3` looks there, not in HOME
    return {**kept, "HOME": str(home), "PATH": str(programs)}


@pytest.mark.thorough
@pytest.mark.timeout(3600)
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_demo_and_then_the_tests_pass_in_a_clean_clone_without_java(
    clone: Path, bare_environment: dict[str, str]
) -> None:
    assert shutil.which("java", path=bare_environment["PATH"]) is None
    for words in (
        ["demo"],
        ["test", "--quick"],
        ["test", "tests/traces/engines/test_spark_faults.py"],
    ):
        done = subprocess.run(
            ["./run", *words],
            cwd=clone,
            env=bare_environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
