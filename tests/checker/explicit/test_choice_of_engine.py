"""Where code cannot be compiled NumPy searches, and says the same."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stagewright.checker.explicit.native.code import jit
from stagewright.checker.explicit.native.code.jit import Module, cache_folder
from stagewright.checker.explicit.native.code.llvm_text import MODULE_END, Function

MODELS = Path(__file__).resolve().parents[2] / "models"
WITHOUT_LLVM = """
import sys
sys.modules["llvmlite"] = None  # as if it were not installed
from stagewright.commands import run_command_line
raise SystemExit(run_command_line(sys.argv[1:]))
"""


def checked(*command: str) -> tuple[int, dict[str, object]]:
    words = ["check", f"{MODELS / 'broken.py'}:Workers", "--json"]
    ran = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
    assert "Traceback" not in ran.stderr
    (report,) = json.loads(ran.stdout)["reports"]
    del report["seconds"]
    for verdict in report["verdicts"]:
        del verdict["seconds"]
    return ran.returncode, report


def test_without_llvmlite_the_report_is_the_same() -> None:
    with_llvm = checked(sys.executable, "-P", "-m", "stagewright")
    without = checked(sys.executable, "-P", "-c", WITHOUT_LLVM)
    assert with_llvm[0] == 1
    assert without == with_llvm


def a_module(number: int) -> str:
    f = Function("answer", [], local=False)
    f.return_(number)
    return f.source() + MODULE_END


def test_compiled_code_is_kept_and_damaged_code_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGEWRIGHT_CACHE", str(tmp_path / "cache"))
    assert Module(a_module(42)).function("answer", 0)() == 42
    (kept,) = (tmp_path / "cache").iterdir()
    good = kept.read_bytes()
    compiled: list[str] = []
    compile_ = jit._compiled

    def counted(text: str, machine: Any) -> bytes:
        compiled.append(text)
        return compile_(text, machine)

    monkeypatch.setattr(jit, "_compiled", counted)
    assert Module(a_module(42)).function("answer", 0)() == 42
    assert compiled == []
    kept.write_bytes(good[:-100])
    assert Module(a_module(42)).function("answer", 0)() == 42
    assert len(compiled) == 1
    assert kept.read_bytes() == good
    assert Module(a_module(43)).function("answer", 0)() == 43


@pytest.mark.parametrize("folder", ["", "file/below", "/proc/none"])
def test_a_cache_that_cannot_be_written_costs_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    (tmp_path / "file").write_text("")
    place = str(tmp_path / folder) if folder else ""
    monkeypatch.setenv("STAGEWRIGHT_CACHE", place)
    assert (cache_folder() is None) == (not folder)
    assert Module(a_module(7)).function("answer", 0)() == 7


def test_the_cache_forgets_what_was_used_longest_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGEWRIGHT_CACHE", str(tmp_path))
    monkeypatch.setattr(jit, "_LARGEST_CACHE", 3_000)
    for number in range(12):
        jit._tidy.cache_clear()
        Module(a_module(number))
    sizes = [file.stat().st_size for file in tmp_path.iterdir()]
    assert 1 <= len(sizes) < 12
    assert sum(sizes) <= 3_000


def test_compiled_code_is_taken_from_a_cache_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAGEWRIGHT_CACHE", str(tmp_path))
    f = Function("seven", [], local=False)
    f.return_(7)
    Module(f.source() + MODULE_END)

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.utime", refuse)
    monkeypatch.setattr(jit, "_compiled", refuse)
    assert Module(f.source() + MODULE_END).function("seven", 0)() == 7


def test_a_user_without_a_home_has_no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("STAGEWRIGHT_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", refuse)
    assert cache_folder() is None
