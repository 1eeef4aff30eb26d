"""`export --to tla`: two files for TLC, or both on the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.checker.tla.tlc import tlc_in

from stagewright.commands import run_command_line

LEASE = str(Path(__file__).resolve().parents[1] / "models" / "lease.py")
LEASE_STATES = 21  # with two nodes


def test_the_two_files_are_what_tlc_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "new" / "tla"
    words = ("export", LEASE, "--to", "tla", "--size", "node=2", "--out", str(target))
    assert run_command_line(words) == 0
    assert {path.name for path in target.iterdir()} == {"LeaseTable.tla", "LeaseTable.cfg"}
    assert str(target / "LeaseTable.cfg") in capsys.readouterr().err
    run = tlc_in(target).run("LeaseTable")
    assert (run.distinct, run.broken) == (LEASE_STATES, ())


def test_check_finds_as_many_states(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(("check", LEASE, "--size", "node=2", "--no-symmetry", "--json")) == 0
    assert f'"states": {LEASE_STATES}' in capsys.readouterr().out


def test_without_a_directory_both_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(("export", LEASE, "--to", "tla", "--size", "node=4")) == 0
    module, rule, config = capsys.readouterr().out.partition(f"\n{'=' * 78}\n")
    assert rule
    assert module.splitlines()[0].strip("- ") == "MODULE LeaseTable"
    assert "  Node = {node0, node1, node2, node3}\n" in config


def test_the_module_reads_like_the_definition(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command_line(("export", LEASE, "--to", "tla")) == 0
    text = capsys.readouterr().out
    for part in (
        """\
\\* Node `n` takes the free lease, under an epoch of its own.
can_acquire(n) ==
  /\\ lease = "free"  \\* lease is free
  /\\ epoch < 4       \\* an epoch is left

acquire(n) ==
  /\\ can_acquire(n)
  /\\ lease' = "held"
  /\\ holder' = n
  /\\ epoch' = epoch + 1
""",
        "Lease_writes == [free |-> FALSE, held |-> TRUE, expiring |-> FALSE]\n",
        "  /\\ holder \\in Node \\cup {NONE}\n",
        "writes_have_a_holder == Lease_writes[lease] => holder # NONE\n",
        "epochs_grow == [][epoch <= epoch']_vars\n",
        'leases_expire == (lease = "expiring") ~> (lease = "free")\n',
        "  /\\ WF_vars(expire)\n",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--to", "tla", "--variable", "lease"), "without --variable"),
        (("--to", "tla", "--run", "x.itf.json"), "without --run"),
        (("--to", "tla", "--size", "nod=2"), "did you mean `Node`"),
        (("--to", "tla", "--budget", "crashes=1"), "no budget named `crashes`"),
        (("--to", "itf", "--size", "node=2"), "a run has no use for it"),
        (("--to", "tla", "--out", LEASE), "cannot write to"),
    ],
)
def test_bad_use_is_one_clear_error(
    words: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command_line(("export", LEASE, *words)) == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert problem in found.err
