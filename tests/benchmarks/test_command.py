"""The command prints ratios, writes its figures, and leaves out what is absent or wrong, saying why."""

import json
from pathlib import Path

import pytest
from tests.benchmarks import __main__, explicit
from tests.benchmarks.cases import CASES, Case, Size
from tests.benchmarks.contest import Contest, Standing, compete, present
from tests.benchmarks.explicit_tables import (
    figures_table,
    growth_table,
    memory_table,
    speed_table,
    workers_table,
)
from tests.benchmarks.measuring.interleave import Answer, Job, Outcome, Run
from tests.benchmarks.measuring.measure import Usage
from tests.benchmarks.peers.gcc_reference import GccReference
from tests.benchmarks.peers.peer import Peer
from tests.benchmarks.peers.python_checkers import PythonChecker
from tests.benchmarks.peers.spin import Spin
from tests.benchmarks.peers.stagewright import ONE_WORKER, TWO_WORKERS, Stagewright
from tests.benchmarks.peers.tlc import Tlc
from tests.benchmarks.tables import Table, ratio

TWO_PHASE = CASES[0]
ABSENT = PythonChecker("no_such_package", "none", {})


def quiet(_: str) -> None:
    pass


def standing(peer: Peer, cpu: float, peak: int, size: int = 7) -> Standing:
    def outcome(usage: Usage) -> Outcome:
        job = Job(peer.name, ("true",), Path(), 1, lambda _: Answer(1))
        return Outcome(job, (Run(usage, Answer(1)),))

    work, start = outcome(Usage(cpu, cpu, peak)), outcome(Usage(1.0, 1.0, 1_000_000))
    return Standing(peer, TWO_PHASE, (size,), work, start)


def test_absent_package_is_skipped_with_a_reason() -> None:
    contest = Contest()
    said: list[str] = []
    assert present([ABSENT], contest, said.append) == []
    assert list(contest.skipped) == ["no_such_package"]
    assert "pip install no_such_package" in contest.skipped["no_such_package"]
    assert "no_such_package" in said[0]


@pytest.mark.parametrize("peer", [GccReference(), Spin(), Tlc()], ids=lambda p: p.name)
def test_absent_program_is_named(
    peer: Peer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "on PATH" in peer.missing()


def test_checker_for_a_newer_python_is_skipped_with_a_reason() -> None:
    newer = PythonChecker("json", "none", {}, oldest_python=(99, 0))
    assert "json needs Python 99.0 or newer" in newer.missing()


def test_flag_that_is_not_offered_is_named() -> None:
    assert ONE_WORKER.missing() == ""
    assert "--no-such-flag" in Stagewright("future", ("--no-such-flag", "1")).missing()


def test_ratios_are_of_speed_and_memory_less_those_at_start() -> None:
    ours = standing(ONE_WORKER, cpu=3.0, peak=3_000_000)
    peer = standing(ABSENT, cpu=21.0, peak=5_000_000)
    contest = Contest([ours, peer])
    (speeds,), (bytes_a_state,) = speed_table(contest).rows, memory_table(contest).rows
    assert speeds[1] == "10\N{MULTIPLICATION SIGN}"
    assert bytes_a_state[1] == "2\N{MULTIPLICATION SIGN}"
    assert speed_table(contest).heads == ("", "no_such_package")


def test_speed_of_a_run_that_is_all_start_up_is_not_reported() -> None:
    contest = Contest([standing(ONE_WORKER, 1.0, 3_000_000), standing(ABSENT, 2.0, 3_000_000)])
    assert speed_table(contest).rows[0][1] == "\N{EN DASH}"


def test_growth_has_a_row_a_size_beside_the_reference_at_that_size() -> None:
    sizes: list[tuple[Peer, float, int]] = [
        (ONE_WORKER, 3.0, 7),
        (GccReference(), 2.0, 7),
        (ONE_WORKER, 5.0, 8),
    ]
    contest = Contest([standing(peer, cpu, 3_000_000, size) for peer, cpu, size in sizes])
    rows = growth_table(contest).rows
    assert [row[1] for row in rows] == ["296,448", "1,745,408"]
    assert [row[2] for row in rows] == ["0.5\N{MULTIPLICATION SIGN}", "\N{EN DASH}"]


def test_workers_are_compared_by_the_clock_less_start_up() -> None:
    one, two = standing(ONE_WORKER, 5.0, 0), standing(TWO_WORKERS, 3.0, 0)
    ((_, net, whole_process, *_),) = workers_table(Contest([one, two])).rows
    assert (net, whole_process) == ("2\N{MULTIPLICATION SIGN}", "1.67\N{MULTIPLICATION SIGN}")


def test_table_can_be_read_and_pasted() -> None:
    table = Table("Title", ("", "long head"), (("row", "1"),))
    assert table.text() == "Title\n     long head\nrow          1"
    assert table.markdown() == "**Title**\n\n|  | long head |\n| --- | ---: |\n| row | 1 |"


def test_ratio_has_three_figures() -> None:
    shown = [ratio(value) for value in (0.95123, 6.0, 123.4, None)]
    sign = "\N{MULTIPLICATION SIGN}"
    assert shown == [f"0.951{sign}", f"6{sign}", f"123{sign}", "\N{EN DASH}"]


def test_wrong_count_is_reported_and_has_no_row(tmp_path: Path) -> None:
    if reason := GccReference().missing():
        pytest.skip(reason)
    contest = Contest()
    wrong = Case("two_phase_commit", "wrong", ("managers",), lambda _: 287, (3,))
    compete(wrong, [(GccReference(), (3,))], 1, tmp_path, contest, quiet)
    assert contest.standings == []
    assert figures_table(contest).rows == ()
    assert "counted 288 where 287 is right" in contest.errors[0]


def test_peer_that_cannot_be_built_is_an_error_and_the_others_run(tmp_path: Path) -> None:
    contest = Contest()
    unbuilt: list[tuple[Peer, Size]] = [(GccReference(), (17,)), (ONE_WORKER, (3,))]
    case = Case("two_phase_commit", "t", ("managers",), lambda _: 288, (3,))
    compete(case, unbuilt, 1, tmp_path, contest, quiet)
    assert [s.peer.name for s in contest.standings] == [ONE_WORKER.name]
    assert len(contest.errors) == 1


def test_command_prints_tables_and_writes_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if reason := GccReference().missing():
        pytest.skip(reason)
    file = tmp_path / "figures.json"
    words = ["--quick", "--repeats", "2", "--json", str(file), "--only", GccReference().name]
    assert __main__.main([*words, "--only", "two_phase_commit"]) == 0
    printed = capsys.readouterr()
    assert "1,745,408" in printed.out
    assert "2/2  C (gcc -O3), two-phase commit" in printed.err
    record = json.loads(file.read_text("utf-8"))
    (only,) = record["standings"]
    assert (only["peer"], only["case"], only["states"]) == (
        "C (gcc -O3)",
        "two_phase_commit",
        1_745_408,
    )
    assert [len(runs["cpu"]) for runs in only["runs"]] == [2, 2]
    assert record["machine"]["cores"] >= 1
    assert record["errors"] == []


def test_unknown_name_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        __main__.main(["--only", "two_phase_comit"])
    assert ended.value.code == 2
    assert "did you mean `two_phase_commit`?" in capsys.readouterr().err


def test_names_of_contestants_are_told_apart() -> None:
    names = explicit.names()
    assert len(set(names)) == len(names)
