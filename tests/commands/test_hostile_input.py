"""Wrong files, flags, streams and signals: one clear message, the right exit code, nothing torn."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stagewright import commands
from stagewright.commands import demo, run_command_line
from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.validation.on_spark import on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIGHT = """\
from stagewright.spec import FlagVar, Machine, action, flag

print("imported")


class Light(Machine):
    \"\"\"Schön ✓\"\"\"

    on: FlagVar = flag()

    @action
    def switch(self) -> None:
        print("defined")
        self.on = ~self.on
"""

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def light(tmp_path: Path) -> str:
    """A machine whose file prints, and whose text is not ASCII."""
    file = tmp_path / "light.py"
    file.write_text(LIGHT, encoding="utf-8")
    return str(file)


def in_a_process(
    words: list[str], stdout: int | IO[str], **environment: str
) -> subprocess.CompletedProcess[str]:
    """One command with streams of its own."""
    return subprocess.run(
        [sys.executable, "-m", "stagewright", *words],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_commands_do_not_hide_each_other(capsys: Captured) -> None:
    for words in (["list"], ["list", "--json"], ["list", "--nope"]):
        assert run_command_line(words) in (0, 2)
    assert "unrecognized arguments: --nope" in capsys.readouterr().err


def test_what_a_machine_prints_stays_out_of_the_json(light: str, capsys: Captured) -> None:
    for words in (["check"], ["prove"], ["show"], ["test", "--suite", "tour"]):
        assert run_command_line([words[0], light, *words[1:], "--json"]) == 0
        out, err = capsys.readouterr()
        assert isinstance(json.loads(out), dict)
        assert "imported\n" in err
        assert "defined\n" in err


@pytest.mark.parametrize(
    ("content", "printed"),
    [
        ("import sys; sys.exit(0)", "fails when it is imported: SystemExit: 0"),
        ("x = 1\0", "null bytes"),
        ("def f(:", "invalid syntax"),
    ],
)
def test_a_file_that_cannot_be_imported(
    content: str, printed: str, tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "broken.py"
    file.write_text(content)
    for words in (["check", str(file)], ["test", "tablet-migration", "--adapter", f"{file}:x"]):
        assert run_command_line(words) == ExitCode.BAD_INPUT
        out, err = capsys.readouterr()
        assert (out, err.count("error[")) == ("", 1)
        assert printed in err


@pytest.mark.parametrize("name", [":A", "..x:Y", ".:Y", "os:path", "no.such:X", ""])
def test_a_name_that_is_no_module(name: str, capsys: Captured) -> None:
    assert run_command_line(["check", name]) == ExitCode.BAD_INPUT
    assert "error[SW40" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--size", "node=9999999"],
        ["--size", "node=99999999999999999999"],
        ["--size", "node=٣"],
        ["--size", "node=60"],
        ["--budget", "crashes=999999999"],
        ["--budget", "crashes=-1"],
    ],
)
def test_a_scope_far_too_large_is_refused_at_once(words: list[str], capsys: Captured) -> None:
    for command in ("check", "prove"):
        assert run_command_line([command, "tablet", *words]) == ExitCode.BAD_INPUT
        out, err = capsys.readouterr()
        assert (out, err.count("error[")) == ("", 1)


def test_a_folder_is_no_machine(tmp_path: Path, capsys: Captured) -> None:
    for words in (["check", str(tmp_path)], ["mutate", "--known", str(tmp_path)]):
        assert run_command_line(words) == ExitCode.BAD_INPUT
        assert f"{tmp_path} is a folder" in capsys.readouterr().err


def test_of_many_properties_the_nearest_is_named_and_not_all(capsys: Captured) -> None:
    for command in ("check", "prove"):
        words = [command, "tablet", "--property", "every_transition_end"]
        assert run_command_line(words) == ExitCode.BAD_INPUT
        said = capsys.readouterr().err
        assert "did you mean `tablets.every_transition_ends`? `stagewright show MACHINE`" in said
        assert "writes_find_storage" not in said


RUN = ["run", "--script", "write 1"]


@pytest.mark.parametrize(
    "words", [["check", "tablet"], ["prove", "tablet"], ["demo"], ["simulate", "tablet"], RUN]
)
def test_where_nothing_can_be_written_nothing_is_begun(
    words: list[str], tmp_path: Path, capsys: Captured
) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    for place in (file, file / "below"):
        assert run_command_line([*words, "--out", str(place)]) == ExitCode.BAD_INPUT
        assert f"{file} is not a directory" in capsys.readouterr().err
    assert file.read_text() == "kept"


def test_a_stop_that_is_broken_off_ends_the_demo(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Captured
) -> None:
    stops = (demo.Stop("one", ("check", "nope")), demo.Stop("two", ("list",)))
    monkeypatch.setattr(demo, "tour", lambda *_: stops)
    assert run_command_line(["demo", "--out", str(tmp_path)]) == ExitCode.BAD_INPUT
    assert "two" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (MemoryError(), 3, "memory ran out"),
        (OSError(28, "No space left on device"), 2, "stagewright: [Errno 28] No space left"),
    ],
)
def test_what_the_machine_lacks_is_said_in_words(
    error: Exception,
    code: int,
    printed: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Captured,
) -> None:
    def fail(_: object) -> int:
        raise error

    module = SimpleNamespace(configure=lambda _: None, execute=fail)
    monkeypatch.setattr(commands, "_load", lambda _: module)
    assert run_command_line(["list"]) == code
    assert printed in capsys.readouterr().err


def test_a_terminal_that_wants_no_colour_gets_no_codes(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run_command_line(["show", "tablet-migration"]) == 0
    assert "\x1b[" in capsys.readouterr().out
    monkeypatch.setenv("NO_COLOR", "1")
    assert run_command_line(["show", "tablet-migration"]) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_any_encoding_can_be_printed_to(light: str) -> None:
    result = in_a_process(["show", light], subprocess.PIPE, PYTHONIOENCODING="ascii")
    assert result.returncode == 0
    assert "Sch\\xf6n" in result.stdout


@pytest.mark.skipif(os.name != "posix", reason="needs a shell's pipes")
def test_a_reader_that_went_away_is_no_verdict() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    result = in_a_process(["list"], stdout=writer)
    os.close(writer)
    assert (result.returncode, result.stderr) == (ExitCode.BROKEN_PIPE, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_is_reported_in_one_line() -> None:
    with Path("/dev/full").open("w") as full:
        result = in_a_process(["list"], stdout=full)
    assert result.returncode == ExitCode.BAD_INPUT
    assert result.stderr == "stagewright: [Errno 28] No space left on device\n"


def test_parquet_with_a_column_twice(tmp_path: Path, capsys: Captured) -> None:
    file = tmp_path / "twice.parquet"
    columns = [pa.array(["t"]), pa.array([0]), pa.array([0])]
    pq.write_table(pa.Table.from_arrays(columns, names=["entity", "seq", "seq"]), file)
    assert run_command_line(["validate", str(file)]) == ExitCode.BAD_INPUT
    assert "has several columns `seq`" in capsys.readouterr().err


def test_files_without_an_event_are_refused(tmp_path: Path, capsys: Captured) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text("\n \n\n")
    assert run_command_line(["validate", str(tmp_path), "--json"]) == ExitCode.BAD_INPUT
    out, err = capsys.readouterr()
    assert out == ""
    assert f"there is no event in {tmp_path / 'a.jsonl'} nor in 1 more files" in err


def test_a_trace_cannot_steer_the_terminal(tmp_path: Path, capsys: Captured) -> None:
    trace = tmp_path / "t.jsonl"
    entity = r"\u001b[31m[bold]x\ud800"
    trace.write_text(
        f'{{"v":1,"machine":"TabletMigration","entity":"{entity}","seq":0,"observed":{{"stage":7}}}}\n'
    )
    assert run_command_line(["validate", str(trace), "--out", str(tmp_path / "r")]) == 3
    assert r"\x1b[31m[bold]x\ud800" in capsys.readouterr().out
    assert "\x1b" not in (tmp_path / "r" / "report.txt").read_text()


@pytest.mark.spark
def test_an_interrupt_leaves_the_work_and_keeps_a_spark_that_ran_before(
    spark: "SparkSession",
) -> None:
    ended = threading.Event()

    def work(_: "SparkSession") -> None:
        os.kill(os.getpid(), signal.SIGINT)
        ended.wait(60)

    with pytest.raises(KeyboardInterrupt):
        on_spark(work, "test", 1)
    ended.set()
    assert spark.range(3).count() == 3


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("words.jsonl", b"hello\n", "no line of words.jsonl is an event; line 1: not JSON"),
        ("noise.jsonl", b"\x80\x93\n\xff\x01", "line 1: not UTF-8 text"),
        ("lists.jsonl", b"[1,2,3]\n[4]\n", "line 1: not a JSON object"),
        ("list.json", b'[\n {"entity": "a", "seq": 1}\n]\n', "a trace has one object a line"),
        ("wide.jsonl", '{"entity":"a","seq":1}\n'.encode("utf-16"), "is text in UTF-16"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_in_a_sentence(
    name: str,
    content: bytes,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(content)
    assert run_command_line(["validate", name, "--engine", "embedded"]) == ExitCode.BAD_INPUT
    assert says in capsys.readouterr().err
