"""Contestants run in turn, medians are medians, and a wrong answer is told as such and never counted."""

from pathlib import Path

import pytest
from tests.benchmarks.measuring.interleave import Answer, Job, Outcome, Run, interleaved
from tests.benchmarks.measuring.measure import Usage


def job(name: str, script: str, folder: Path, expected: int = 1) -> Job:
    return Job(name, ("sh", "-c", script), folder, expected, lambda text: Answer(int(text)))


def outcome(*usages: Usage) -> Outcome:
    runs = tuple(Run(usage, Answer(1, seconds=usage.cpu / 2)) for usage in usages)
    return Outcome(job("any", "true", Path()), runs)


def test_contestants_take_turns(tmp_path: Path) -> None:
    jobs = [job(name, f"printf {name} >> order; echo 1", tmp_path) for name in "abc"]
    outcomes, errors = interleaved(jobs, 3, lambda _: None)
    assert (tmp_path / "order").read_text() == "abcabcabc"
    assert {name: len(found.runs) for name, found in outcomes.items()} == {"a": 3, "b": 3, "c": 3}
    assert errors == {}


def test_each_figure_is_the_median_of_its_own() -> None:
    found = outcome(Usage(9.0, 1.0, 300), Usage(7.0, 3.0, 100), Usage(8.0, 2.0, 200))
    assert (found.wall, found.cpu, found.peak, found.seconds) == (8.0, 2.0, 200, 1.0)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo 41", "counted 41 where 42 is right"),
        ("echo none", "no answer found"),
        ("echo 42; echo broken >&2; exit 3", "exit code 3\nbroken"),
    ],
)
def test_wrong_answer_is_no_outcome(script: str, reason: str, tmp_path: Path) -> None:
    jobs = [job("wrong", script, tmp_path, 42), job("right", "echo 42", tmp_path, 42)]
    said: list[str] = []
    outcomes, errors = interleaved(jobs, 2, said.append)
    assert list(outcomes) == ["right"]
    assert len(outcomes["right"].runs) == 2
    assert reason in errors["wrong"]
    assert sum("ERROR" in line for line in said) == 1, "it is not run again"


def test_violation_where_all_holds_is_no_outcome(tmp_path: Path) -> None:
    wrong = Job("wrong", ("true",), tmp_path, 1, lambda _: Answer(1, holds=False))
    outcomes, errors = interleaved([wrong], 1, lambda _: None)
    assert outcomes == {}
    assert "did not find that all holds" in errors["wrong"]


def test_answer_that_was_right_once_and_wrong_later_is_no_outcome(tmp_path: Path) -> None:
    fickle = job("fickle", "if test -e once; then echo 2; else touch once; echo 1; fi", tmp_path)
    outcomes, errors = interleaved([fickle], 3, lambda _: None)
    assert outcomes == {}
    assert errors == {"fickle": "counted 2 where 1 is right"}
