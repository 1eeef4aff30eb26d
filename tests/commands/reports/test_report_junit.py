"""`--junit`: what a promise, a violation and an open question look like to readers of JUnit XML."""

from pathlib import Path
from xml.etree import ElementTree as ET

import junitparser
import pytest

from stagewright.commands import run_command_line

ROOT = Path(__file__).resolve().parents[3]
MODELS = ROOT / "tests" / "models"
TURNSTILE = str(MODELS / "turnstile.py")
COMMIT = str(MODELS / "two_phase_commit.py")
EWD840 = str(MODELS / "ewd840.py")

# What Jenkins' junit-10.xsd allows: the attributes of each element, and its children.
ALLOWED = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp"}
        | {"hostname", "id", "package", "file", "log", "url", "version"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set[str](), {"property"}),
    "property": ({"name", "value"}, set[str]()),
    "testcase": (
        {"name", "time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": ({"type", "message"}, set[str]()),
    "error": ({"type", "message"}, set[str]()),
    "skipped": ({"type", "message"}, set[str]()),
    "system-out": (set[str](), set[str]()),
}


def unlawful(file: Path) -> list[str]:
    """What the schema of Jenkins would refuse."""
    found: list[str] = []
    for element in ET.parse(file).iter():
        attributes, children = ALLOWED[element.tag]
        found += [f"{element.tag}@{name}" for name in set(element.keys()) - attributes]
        found += [f"{element.tag}/{child.tag}" for child in element if child.tag not in children]
    return found


def written(file: Path, *words: str) -> tuple[int, junitparser.JUnitXml]:
    """The exit code of a command, and its report as another program reads it."""
    code = run_command_line([*words, "--junit", str(file)])
    assert unlawful(file) == []
    return code, junitparser.JUnitXml.fromfile(str(file))


def results(suite: junitparser.TestSuite) -> dict[str, list[str]]:
    """By the name of each case the kinds of its results."""
    return {str(case.name): [type(result).__name__ for result in case.result] for case in suite}


def properties(file: Path) -> dict[str, str]:
    found = ET.parse(file).iterfind("testsuite/properties/property")
    return {str(one.get("name")): str(one.get("value")) for one in found}


def test_each_promise_is_a_case_and_a_broken_one_reports_its_counterexample(tmp_path: Path) -> None:
    code, report = written(tmp_path / "r.xml", "check", TURNSTILE)
    (suite,) = report
    assert code == 1
    assert (suite.name, suite.tests, suite.failures, suite.errors) == (
        "Turnstile, Gate=2, kicks=1",
        9,
        7,
        0,
    )
    assert results(suite)["nowhere_is_empty"] == []
    small = next(case for case in suite if case.name == "small")
    (failure,) = small.result
    assert (small.classname, failure.type) == ("check.Turnstile", "invariant")
    assert failure.message == "Turnstile breaks small after 3 steps: The count stays below two."
    assert str(failure.text).startswith("tests/models/turnstile.py:90: Turnstile breaks small")
    assert "  3  Turnstile: tick" in str(failure.text)
    assert "    count (2) ≥ 2" in str(failure.text)


def test_counts_and_scope_are_properties_of_the_suite(tmp_path: Path) -> None:
    code, report = written(tmp_path / "r.xml", "check", COMMIT, "--no-symmetry")
    (suite,) = report
    assert code == 0
    assert (suite.failures, suite.errors, suite.skipped) == (0, 0, 0)
    found = properties(tmp_path / "r.xml")
    assert (found["states"], found["transitions"], found["depth"]) == ("288", "1145", "10")
    assert (found["exhausted"], found["size.Manager"]) == ("true", "3")
    assert found["reproduce"] == f"stagewright check {COMMIT} --size manager=3 --no-symmetry"


def test_what_holds_says_where_it_is_written_and_how_far_it_was_searched(tmp_path: Path) -> None:
    _, report = written(tmp_path / "r.xml", "check", TURNSTILE)
    (suite,) = report
    case = next(case for case in suite if case.name == "nowhere_is_empty")
    assert str(case.system_out).splitlines() == [
        "tests/models/turnstile.py:100",
        "Nobody counts nowhere.",
        "holds in all 7 states; vacuous: its premise never held",
    ]
    printed = ET.parse(tmp_path / "r.xml").findtext("testsuite/system-out")
    assert "`vanish` of Turnstile never happened." in str(printed)


def test_what_is_undecided_is_an_error_as_the_exit_code_is_no_success(tmp_path: Path) -> None:
    code, report = written(tmp_path / "r.xml", "check", COMMIT, "--max-depth", "3")
    (suite,) = report
    assert code == 3
    assert (suite.failures, suite.errors, suite.tests) == (0, suite.tests, len(list(suite)))
    (error,) = next(iter(suite)).result
    assert error.type == "undecided"
    assert "no violation up to depth 3 (not exhausted)" in error.message


def test_each_profile_is_a_suite_with_names_of_its_own(tmp_path: Path) -> None:
    _, report = written(tmp_path / "r.xml", "check", EWD840, "--all-profiles")
    classes = [{str(case.classname) for case in suite} for suite in report]
    assert classes == [{"check.Ewd840.three"}, {"check.Ewd840.six"}]
    assert report.tests == sum(len(list(suite)) for suite in report)


def test_prove_skips_what_it_leaves_to_check(tmp_path: Path) -> None:
    code, report = written(tmp_path / "r.xml", "prove", TURNSTILE, "--depth", "4")
    (suite,) = report
    assert code == 1
    assert (suite.failures, suite.skipped) == (4, 3)
    assert results(suite)["ends"] == ["Skipped"]
    assert results(suite)["nowhere_is_empty"] == []
    (skipped,) = next(case for case in suite if case.name == "ends").result
    assert "use `stagewright check`" in skipped.message


def test_prove_of_one_promise_skips_nothing_and_reports_a_failed_induction(tmp_path: Path) -> None:
    words = ["prove", COMMIT, "--k", "1", "--depth", "1"]
    code, report = written(tmp_path / "r.xml", *words, "--property", "consistent")
    (suite,) = report
    assert code == 3
    assert results(suite) == {"consistent": ["Error"]}
    (error,) = next(iter(suite)).result
    assert "This does not refute `consistent`" in str(error.text)


def test_hostile_text_is_readable_to_any_reader(hostile: Path, tmp_path: Path) -> None:
    code, report = written(tmp_path / "r.xml", "check", str(hostile))
    (suite,) = report
    assert code == 1
    (failure,) = next(case for case in suite if case.name == "stays").result
    assert "Stays 😀 below | `x` <!-- 100% of: 3, ]]> \\ud800\\x07." in failure.message
    assert "]]>\\x1b[31m 𐍈 \\ud800: up" in str(failure.text)


def test_a_machine_without_promises_is_still_checked_for_deadlock(tmp_path: Path) -> None:
    file = tmp_path / "light.py"
    file.write_text(
        "from stagewright.spec import Machine, action, flag\n\n\nclass Light(Machine):\n"
        "    on = flag()\n\n    @action\n    def switch(self) -> None:\n        self.on = ~self.on\n"
    )
    code, report = written(tmp_path / "r.xml", "check", str(file))
    (suite,) = report
    assert code == 0
    assert [str(case.name) for case in suite] == ["no deadlock", "assigned values stay in bounds"]


@pytest.mark.parametrize("adapter", ["Right", "Wrong"])
def test_conformance_suites_are_cases(
    adapter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counter.py").write_text(
        "from stagewright.spec import Machine, action, number, require\n\n\n"
        "class Counter(Machine):\n    count = number(0, 3)\n\n    @action\n"
        "    def up(self) -> None:\n        require(self.count < 3, 'not full')\n"
        "        self.count = self.count + 1\n"
    )
    (tmp_path / "adapter.py").write_text(
        "from stagewright.checker.conformance import RefusedEvent\n\n\n"
        "class Right:\n    limit = 3\n\n    def reset(self, initial):\n        self.count = 0\n\n"
        "    def do(self, step):\n        if self.count == self.limit:\n"
        "            raise RefusedEvent\n        self.count += 1\n\n"
        "    def observe(self):\n        return {'count': self.count}\n\n\n"
        "class Wrong(Right):\n    limit = 4\n"
    )
    words = ["test", "counter.py", "--adapter", f"adapter.py:{adapter}", "--examples", "10"]
    code, report = written(tmp_path / "r.xml", *words, "--steps", "10")
    (suite,) = report
    broken = ["Failure"] if adapter == "Wrong" else []
    assert code == len(broken)
    assert results(suite) == {"tour": [], "refusals": broken, "hypothesis": broken}
    refusals = next(case for case in suite if case.name == "refusals")
    for failure in refusals.result:
        assert "accepts what must be refused" in failure.message
        assert str(failure.text).startswith("counter.py:8: Counter: in step 4")
