"""`--sarif`: rules, results, counterexamples and what was not exercised, valid against the standard's schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sarif_kit.validate import validation_errors

from stagewright.commands import run_command_line
from stagewright.commands.reports import sarif
from stagewright.commands.reports.of_check import suite_of
from stagewright.commands.reports.result import Result
from stagewright.spec.interpreter import Interpreter
from stagewright.spec.loading import load
from stagewright.spec.scope import scope_of
from stagewright.spec.values import State
from stagewright.spec.verdict import Outcome, PropertyVerdict, Report, Run, Step

ROOT = Path(__file__).resolve().parents[3]
MODELS = ROOT / "tests" / "models"
TURNSTILE = str(MODELS / "turnstile.py")
COMMIT = str(MODELS / "two_phase_commit.py")
EWD840 = str(MODELS / "ewd840.py")

Json = dict[str, Any]

LIGHT = """\
from stagewright.spec import Bool, Machine, action, flag, invariant


class Light(Machine):
    on = flag()

    @action
    def turn(self) -> None:
        \"\"\"The other one.\"\"\"
        self.on = ~self.on

    @invariant
    def stays(self) -> Bool:
        \"\"\"It stays.\"\"\"
        return ~self.on
"""


def written(file: Path, *words: str) -> tuple[int, list[Json]]:
    """The exit code of a command, and the runs of its log, which the schema accepts."""
    code = run_command_line([*words, "--sarif", str(file)])
    log: Json = json.loads(file.read_bytes())
    assert validation_errors(log) == []
    return code, log["runs"]


def by_rule(run: Json) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = {}
    for result in run["results"]:
        found.setdefault(result["ruleId"], []).append(result)
    return found


def physical(located: Json) -> tuple[str, int]:
    place = located["physicalLocation"]
    assert place["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
    return place["artifactLocation"]["uri"], place["region"]["startLine"]


def test_each_promise_is_a_rule_with_its_own_words(tmp_path: Path) -> None:
    code, (run,) = written(tmp_path / "r.sarif", "check", TURNSTILE)
    assert code == 1
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert len(rules) == len(run["tool"]["driver"]["rules"])
    small = rules["Turnstile.small"]
    assert small["shortDescription"]["text"] == "The count stays below two."
    assert small["fullDescription"]["text"] == "The count stays below two. It must."
    assert "every reachable state" in small["help"]["text"]
    assert small["properties"]["tags"] == ["stagewright", "invariant"]
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]


def test_a_broken_promise_is_an_error_where_it_is_written(tmp_path: Path) -> None:
    _, (run,) = written(tmp_path / "r.sarif", "check", TURNSTILE)
    (result,) = by_rule(run)["Turnstile.small"]
    assert result["level"] == "error"
    assert result["message"]["text"].startswith(
        "Turnstile breaks small after 3 steps: The count stays below two.\nIt is false in state 3:"
    )
    (location,) = result["locations"]
    assert physical(location) == ("tests/models/turnstile.py", 90)
    place = location["physicalLocation"]
    line = Path(TURNSTILE).read_text().splitlines()[89]
    region = place["region"]
    assert line[region["startColumn"] - 1 : region["endColumn"] - 1] == "small"
    assert region["snippet"]["text"] == line
    assert place["contextRegion"] == {"startLine": 90, "endLine": 92}
    assert location["logicalLocations"][0]["fullyQualifiedName"] == "Turnstile.small"


def test_a_counterexample_walks_through_the_lines_of_its_actions(tmp_path: Path) -> None:
    _, (run,) = written(tmp_path / "r.sarif", "check", TURNSTILE)
    ((result,), (lasso,)) = by_rule(run)["Turnstile.small"], by_rule(run)["Turnstile.ends"]
    ((thread,),) = (flow["threadFlows"] for flow in result["codeFlows"])
    steps = thread["locations"]
    lines = [physical(step["location"])[1] for step in steps]
    assert lines == [43, 52, 58, 58, 90]  # the class, start, tick, tick, and the promise
    assert [step["kinds"][0] for step in steps] == ["initial state", *["step"] * 3, "danger"]
    assert steps[0]["state"]["count"]["text"] == "0"
    assert steps[3]["state"] == {"count": {"text": "2"}}
    assert steps[3]["location"]["message"]["text"] == "3  Turnstile: tick\ncount: 1 → 2"
    looping = lasso["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["kinds"] for step in looping[2:5]] == [["step", "loop"]] * 3
    assert "back to state 1, for ever" in looping[4]["location"]["message"]["text"]


def test_what_was_not_exercised_is_a_warning_or_a_note(tmp_path: Path) -> None:
    _, (run,) = written(tmp_path / "r.sarif", "check", TURNSTILE)
    found = by_rule(run)
    vacuous = {
        result["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]: result["level"]
        for result in found["vacuous-property"]
    }
    assert vacuous == {"Turnstile.nowhere_is_empty": "warning", "Turnstile.never_ends": "warning"}
    (silent,) = found["action-never-happens"]
    assert (silent["level"], physical(silent["locations"][0])[1]) == ("warning", 83)
    _, (run,) = written(tmp_path / "r.sarif", "check", EWD840, "--profile", "six")
    (superfluous,) = by_rule(run)["requirement-never-refuses"]
    assert superfluous["level"] == "note"
    line = Path(EWD840).read_text().splitlines()[physical(superfluous["locations"][0])[1] - 1]
    assert '"the other is in the ring"' in line


def test_what_holds_is_no_result_but_is_listed(tmp_path: Path) -> None:
    code, (run,) = written(tmp_path / "r.sarif", "check", COMMIT, "--no-symmetry")
    assert (code, run["results"]) == (0, [])
    assert set(run["properties"]["verdicts"].values()) == {"holds"}
    assert (run["properties"]["states"], run["properties"]["size.Manager"]) == (288, 3)
    (invocation,) = run["invocations"]
    assert (invocation["exitCode"], invocation["executionSuccessful"]) == (0, True)


def test_what_is_undecided_is_a_warning_of_a_run_that_did_not_succeed(tmp_path: Path) -> None:
    code, (run,) = written(tmp_path / "r.sarif", "check", COMMIT, "--max-depth", "3")
    assert code == 3
    decided = [r for r in run["results"] if r["ruleId"].startswith("TwoPhaseCommit.")]
    assert {r["level"] for r in decided} == {"warning"}
    assert len(decided) == len(run["properties"]["verdicts"])
    (invocation,) = run["invocations"]
    assert (invocation["exitCode"], invocation["executionSuccessful"]) == (3, False)
    printed = [n["message"]["text"] for n in invocation["toolExecutionNotifications"]]
    assert any("not exhausted" in text for text in printed)


def test_what_a_search_cut_short_has_not_exercised_is_no_finding(tmp_path: Path) -> None:
    _, (run,) = written(tmp_path / "r.sarif", "check", COMMIT, "--max-depth", "1")
    assert set(by_rule(run)) == {
        "TwoPhaseCommit.consistent",
        "TwoPhaseCommit.an_end",
        "TwoPhaseCommit.no-deadlock",
        "TwoPhaseCommit.assigned-values-stay-in-bounds",
    }
    (invocation,) = run["invocations"]
    printed = [n["message"]["text"] for n in invocation["toolExecutionNotifications"]]
    assert any("never happened so far" in text for text in printed)


def test_profiles_are_runs_of_different_categories_under_one_exit_code(tmp_path: Path) -> None:
    code, runs = written(tmp_path / "r.sarif", "check", EWD840, "--all-profiles")
    categories = [run["automationDetails"]["id"] for run in runs]
    assert categories == [
        "stagewright/check/Ewd840/three/noentities/",
        "stagewright/check/Ewd840/six/noentities/",
    ]
    assert {run["invocations"][0]["exitCode"] for run in runs} == {code}


def test_fingerprints_do_not_depend_on_line_scope_or_run(tmp_path: Path) -> None:
    moved = tmp_path / "turnstile.py"
    moved.write_text("# one line more\n" + Path(TURNSTILE).read_text(), encoding="utf-8")
    found: list[set[str]] = []
    for words in ([TURNSTILE], [TURNSTILE], [str(moved), "--size", "gate=1"]):
        _, (run,) = written(tmp_path / "r.sarif", "check", *words)
        prints = {r["partialFingerprints"]["stagewrightFinding/v1"] for r in run["results"]}
        assert len(prints) == len(run["results"])
        found.append(prints)
    assert found[0] == found[1] == found[2]


def test_prove_reports_runs_too_and_lists_what_it_left_out(tmp_path: Path) -> None:
    code, (run,) = written(tmp_path / "r.sarif", "prove", TURNSTILE, "--depth", "4")
    assert code == 1
    (result,) = by_rule(run)["Turnstile.grows"]
    assert len(result["codeFlows"][0]["threadFlows"][0]["locations"]) == 6
    assert run["properties"]["verdicts"]["ends"] == "left out"
    assert "Turnstile.ends" not in by_rule(run)


def test_hostile_text_and_paths_are_readable_to_any_reader(hostile: Path, tmp_path: Path) -> None:
    (hostile.parent.parent / ".git").mkdir()
    code, (run,) = written(tmp_path / "r.sarif", "check", str(hostile))
    assert code == 1
    (result,) = by_rule(run)["Odd.stays"]
    assert "😀 below | `x` <!-- 100% of: 3, ]]> \\ud800\\x07." in result["message"]["text"]
    assert physical(result["locations"][0])[0] == "od%20d%2C%25%C3%BC/odd.py"
    step = result["codeFlows"][0]["threadFlows"][0]["locations"][1]
    assert step["location"]["message"]["text"].startswith("1  ]]>\\x1b[31m 𐍈 \\ud800: up")


def _long(steps: int, file: str) -> Result:
    """A report of a run of so many steps, each of which the definition allows."""
    definition = load(file)
    scope = scope_of(definition)
    interpreter = Interpreter(definition, scope)
    (state,) = interpreter.initial_states()
    states: list[State] = [state]
    for _ in range(steps):
        ((_, state),) = interpreter.successors(state)
        states.append(state)
    run = Run(tuple(states), (Step("turn"),) * steps)
    verdict = PropertyVerdict("stays", Outcome.VIOLATED, "by hand", run=run)
    report = Report(definition, str(scope), "by hand", (verdict,), steps, steps, steps)
    return Result(report, scope, (), "stagewright check light.py")


@pytest.mark.parametrize(("steps", "most", "printed"), [(2_001, 10_000, 2_003), (701, 500, 500)])
def test_a_long_counterexample_is_reported_to_its_end(
    steps: int, most: int, printed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert sarif.MOST_LOCATIONS == 10_000  # GitHub refuses a file with more
    monkeypatch.setattr(sarif, "MOST_LOCATIONS", most)
    file = tmp_path / "light.py"
    file.write_text(LIGHT, encoding="utf-8")
    suite = suite_of("check", _long(steps, str(file)))
    log: Any = json.loads(json.dumps(sarif.document([suite], 1)))
    assert validation_errors(log) == []
    (flow,) = log["runs"][0]["results"][0]["codeFlows"]
    locations = flow["threadFlows"][0]["locations"]
    assert len(locations) == printed
    assert locations[-2]["location"]["message"]["text"].startswith(f"{steps}  Light: turn")
    assert locations[-1]["importance"] == locations[0]["importance"] == "essential"
    if steps > printed:
        left = steps + 2 - printed
        assert f"the steps 100 to {99 + left} are left out here" in flow["message"]["text"]
        numbers = [int(one["location"]["message"]["text"].split()[0]) for one in locations[:-1]]
        assert numbers == [*range(100), *range(100 + left, steps + 1)]
