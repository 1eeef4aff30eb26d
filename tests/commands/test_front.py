"""The front of the command line: it finds commands, and its exit codes never lie."""

import argparse
import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

from stagewright import __version__, commands
from stagewright.commands import COMMANDS, run_command_line
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.spec.errors import InputError


def install_command(monkeypatch: pytest.MonkeyPatch, outcome: int | BaseException) -> None:
    """Let every command declare `--size` and end with the outcome."""

    def configure(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--size", type=int)

    def execute(args: argparse.Namespace) -> int:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    module = SimpleNamespace(configure=configure, execute=execute)
    monkeypatch.setattr(commands, "_load", lambda command: module)


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--help"]) == ExitCode.HOLDS
    printed = capsys.readouterr().out
    assert all(f"  {command.name} " in printed for command in COMMANDS)


@pytest.mark.parametrize("name", [command.name for command in COMMANDS])
def test_help_of_a_command_has_examples_and_exit_codes(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line([name, "--help"]) == ExitCode.HOLDS
    printed = capsys.readouterr().out
    assert re.search(rf"^examples?:\n  (.*\| )?stagewright {name}\b", printed, re.MULTILINE)
    assert re.search(r"^exit codes( here)?: 0 ", printed, re.MULTILINE)
    assert max(map(len, printed.splitlines())) <= 140


def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; from stagewright.__main__ import main; sys.argv[1:] = ['--help']; main();"
        "heavy = {'numpy', 'z3', 'pyspark', 'hypothesis', 'rich', 'pandas'} & set(sys.modules);"
        "sys.exit(repr(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["--version"]) == ExitCode.HOLDS
    assert capsys.readouterr().out == f"stagewright {__version__}\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["chekc"], "there is no command `chekc`; did you mean `check`?"),
        (["xyzzy"], "there is no command `xyzzy`; see `stagewright --help`"),
        (["--fast", "check"], "the command comes first, not `--fast`"),
    ],
)
def test_bad_use_says_what_to_write(
    words: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(words) == ExitCode.BAD_INPUT
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("code", [ExitCode.HOLDS, ExitCode.VIOLATED, ExitCode.UNDECIDED])
def test_the_code_of_the_command_is_the_exit_code(
    code: ExitCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_command(monkeypatch, code)
    assert run_command_line(["check", "--size", "2"]) == code


def test_bad_argument_of_a_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install_command(monkeypatch, ExitCode.HOLDS)
    assert run_command_line(["check", "--size", "two"]) == ExitCode.BAD_INPUT
    assert "stagewright check: error: argument --size" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (
            InputError("no such file", help="look"),
            2,
            "error[SW400]: no such file\n  help: look\n  about SW400: stagewright explain SW400\n",
        ),
        (KeyboardInterrupt(), 130, "interrupted\n"),
    ],
)
def test_errors_become_text_and_code(
    error: BaseException,
    code: int,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    install_command(monkeypatch, error)
    assert run_command_line(["check"]) == code
    assert capsys.readouterr().err == text


def test_a_crash_is_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install_command(monkeypatch, ZeroDivisionError("oops"))
    assert run_command_line(["check"]) == ExitCode.INTERNAL_ERROR
    printed = capsys.readouterr().err
    assert "ZeroDivisionError: oops" in printed
    assert "a fault of stagewright" in printed


@pytest.mark.skipif(os.name != "posix", reason="needs a shell's pipes")
def test_closed_pipe_is_quiet() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(
        [sys.executable, "-m", "stagewright", "doctor"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (result.returncode, result.stderr) == (ExitCode.BROKEN_PIPE, "")


def test_doctor_finds_this_installation_healthy(capsys: pytest.CaptureFixture[str]) -> None:
    code = run_command_line(["doctor", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert code == ExitCode.HOLDS
    assert document["healthy"]
    subjects = {finding["subject"] for finding in document["findings"]}
    assert {"Python", "pyspark", "solver", "Java"} <= subjects
