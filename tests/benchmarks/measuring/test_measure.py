"""What a run cost is what the system says it cost: all its processes, and only its own memory."""

import sys
from pathlib import Path

import pytest
from tests.benchmarks.measuring.measure import BenchmarkError, measured

MEBIBYTE = 1 << 20
BURN = "import time\nwhile time.process_time() < 0.2: pass"


def test_cpu_time_of_children_counts(tmp_path: Path) -> None:
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURN!r}], check=True)"
    finished = measured([sys.executable, "-c", parent], cwd=tmp_path)
    assert finished.usage.cpu >= 0.2


FORGETFUL = f"""
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(2):
    if not os.fork():
        exec({BURN.replace("0.2", "0.5")!r})
        time.sleep(0.3)
        os._exit(0)
time.sleep(2.0)
"""


def test_cpu_time_of_children_that_nobody_waits_for_counts(tmp_path: Path) -> None:
    finished = measured([sys.executable, "-c", FORGETFUL], cwd=tmp_path)
    assert finished.code == 0
    assert 0.9 <= finished.usage.cpu < 1.7


def test_memory_of_all_processes_counts_together(tmp_path: Path) -> None:
    hold = f"held = b'x' * {64 * MEBIBYTE}; import time; time.sleep(1)"
    both = f"import subprocess, sys; c = [sys.executable, '-c', {hold!r}]; o = subprocess.Popen(c); subprocess.run(c); o.wait()"
    usage = measured([sys.executable, "-c", both], cwd=tmp_path).usage
    assert usage.together >= 128 * MEBIBYTE > usage.peak


def test_waiting_costs_no_cpu_time(tmp_path: Path) -> None:
    finished = measured(["sleep", "0.2"], cwd=tmp_path)
    assert finished.usage.wall >= 0.2
    assert finished.usage.cpu < 0.1


def test_peak_is_what_the_command_held(tmp_path: Path) -> None:
    hold = f"held = b'x' * {64 * MEBIBYTE}"
    assert measured([sys.executable, "-c", hold], cwd=tmp_path).usage.peak >= 64 * MEBIBYTE


def test_peak_is_not_what_the_benchmark_holds(tmp_path: Path) -> None:
    held = b"x" * (64 * MEBIBYTE)
    assert measured(["true"], cwd=tmp_path).usage.peak < 16 * MEBIBYTE
    assert len(held) == 64 * MEBIBYTE


def test_output_code_folder_and_environment_are_the_commands_own(tmp_path: Path) -> None:
    script = 'pwd; echo "$WORD" >&2; exit 7'
    finished = measured(["sh", "-c", script], cwd=tmp_path, environment={"WORD": "heard"})
    assert Path(finished.stdout.strip()).samefile(tmp_path)
    assert (finished.stderr, finished.code) == ("heard\n", 7)


def test_words_of_a_command_are_not_read_by_a_shell(tmp_path: Path) -> None:
    finished = measured(["printf", "%s|", "a b", "$HOME", "`x`", "'"], cwd=tmp_path)
    assert finished.stdout == "a b|$HOME|`x`|'|"


def test_command_that_does_not_end_is_ended(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="sleep took longer than"):
        measured(["sleep", "600"], cwd=tmp_path, timeout=0.2)


def test_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match="no program no-such-program"):
        measured(["no-such-program"], cwd=tmp_path)
