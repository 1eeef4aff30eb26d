"""`stagewright validate`: what it prints, writes and returns."""

import json
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import junitparser
import pytest
from sarif_kit.validate import validation_errors

from stagewright.commands import run_command_line
from stagewright.commands.validation.engine import chosen_engine
from stagewright.traces.engines.java_runtime import JavaNotFoundError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAMPLES = Path(__file__).resolve().parents[2] / "traces" / "samples"
SHIPPED_LOG = Path(__file__).parents[3] / "traces/samples/scylla-coordinator-debug.log"
JUMP = str(SAMPLES / "impossible-jump.log")


@pytest.mark.spark
def test_a_good_log_is_ok_on_spark(
    spark: "SparkSession", capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(["validate", str(SHIPPED_LOG), "--engine", "spark"]) == 0
    printed = capsys.readouterr()
    assert "5 ok" in printed.out
    assert "engine:" not in printed.err, "it was asked for"


def test_a_small_log_is_read_without_spark_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(["validate", str(SHIPPED_LOG)]) == 0
    assert (
        "engine: embedded (0.0 MB of input; --engine spark uses Spark)" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("given", "java", "engine", "why"),
    [
        ({}, True, "spark", "engine: Spark on this machine (20.0 GB of input)"),
        ({}, False, "embedded", "no Java for Spark was found"),
        ({"master": "spark://h:7077"}, True, "spark", "engine: Spark at spark://h:7077"),
    ],
)
def test_spark_is_chosen_for_large_input_or_a_cluster(
    given: dict[str, str],
    java: bool,
    engine: str,
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find() -> None:
        if not java:
            raise JavaNotFoundError("none")

    monkeypatch.setattr("stagewright.traces.engines.java_runtime.find_java", find)
    args = Namespace(**{"engine": "auto", "master": None, **given})
    chosen, reason = chosen_engine(args, 20_000_000_000)
    assert chosen == engine
    assert why in reason


def test_a_cluster_is_not_for_the_embedded_engine(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["validate", JUMP, "--engine", "embedded", "--master", "spark://h:7077"]
    assert run_command_line(words) == 2
    assert "--master is for Spark" in capsys.readouterr().err


def test_a_violation_is_printed_as_json_and_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "new" / "report"
    assert run_command_line(["validate", JUMP, "--json", "--out", str(out)]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((out / "report.json").read_text())
    assert printed["entities"]["violation"] == 1
    assert printed["findings"][0]["where"]["line"] == 11
    assert sum(printed["lines"].values()) == 2 * printed["lines"]["read"]
    assert "VIOLATION" in (out / "report.txt").read_text()


def test_a_violation_is_reported_to_ci_systems_on_its_line_of_the_log(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    junit, sarif = tmp_path / "r.xml", tmp_path / "r.sarif"
    words = ["validate", JUMP, "--junit", str(junit), "--sarif", str(sarif), "--github"]
    assert run_command_line(words) == 1
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("::")]
    assert line.startswith("::error file=tests/traces/samples/impossible-jump.log,line=11,")
    log = json.loads(sarif.read_bytes())
    assert validation_errors(log) == []
    (result,) = log["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("trace-step", "error")
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 11}
    (suite,) = junitparser.JUnitXml.fromfile(str(junit))
    kinds = [[type(one).__name__ for one in case.result] for case in suite]
    assert kinds == [["Failure"], [], []]  # the trace, all others, and that every line was read


def test_lines_that_are_no_events_are_an_error_to_ci_systems(tmp_path: Path) -> None:
    trace, junit = tmp_path / "t.jsonl", tmp_path / "r.xml"
    trace.write_text('{"machine": "CdcGeneration", "entity": "a", "seq": 1, "observed": {}}\n?\n')
    assert run_command_line(["validate", str(trace), "--junit", str(junit)]) == 3
    (suite,) = junitparser.JUnitXml.fromfile(str(junit))
    (error,) = next(case for case in suite if case.name == "every line is read").result
    assert error.message.startswith("unparsed lines: 1")
    assert f"{trace}:2" in str(error.text)


def test_bad_input_is_exit_code_2_and_writes_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "report"
    missing = str(tmp_path / "missing.jsonl")
    assert run_command_line(["validate", missing, "--out", str(out)]) == 2
    assert "there is no file or directory" in capsys.readouterr().err
    assert not out.exists()


def test_a_users_own_machine_validates_its_traces(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    machine = tmp_path / "light.py"
    machine.write_text(
        "from stagewright.spec import Machine, action, flag, require\n\n\n"
        "class Light(Machine):\n    on = flag()\n\n"
        "    @action\n    def switch_on(self) -> None:\n"
        "        require(~self.on, 'light is off')\n        self.on = True\n\n"
        "    @action\n    def switch_off(self) -> None:\n"
        "        require(self.on, 'light is on')\n        self.on = False\n"
    )
    start = '{"v":1,"machine":"Light","entity":"l","seq":0,"observed":{"on":false}}\n'
    on = '{"v":1,"machine":"Light","entity":"l","seq":1,"action":"switch_on"}\n'
    again = '{"v":1,"machine":"Light","entity":"l","seq":2,"action":"switch_on"}\n'
    end = '{"v":1,"machine":"Light","entity":"l","seq":2,"end":true}\n'
    trace = tmp_path / "t.jsonl"
    arguments = ["validate", str(trace), "--machine", f"{machine}:Light"]
    for content, code, text in (
        (start + on + end, 0, "1 ok"),
        (start + on + again, 1, "light is off"),
        (start + on, 3, "end marker is missing"),
        (start + on + end + "?\n", 3, "not JSON"),
    ):
        trace.write_text(content)
        assert run_command_line(arguments) == code
        assert text in capsys.readouterr().out
    assert run_command_line(["validate", str(trace)]) == 2
    assert "not shipped" in capsys.readouterr().err
