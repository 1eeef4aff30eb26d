"""The text form, as a person sees it in a terminal, in a pipe and in a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Literal

import pytest
from rich.console import Console

from stagewright.checker.counterexample import render_text
from stagewright.checker.counterexample.files import plain_text
from stagewright.spec.definition import Definition
from stagewright.spec.verdict import PropertyVerdict

ROOT = Path(__file__).resolve().parents[3]

EXPECTED = """\
Migration breaks reads_are_complete after 4 steps
scope: Node=2

  0  initially
       stage = rest, learned[*] = rest, complete = {new, old}
  1  topology coordinator: write both
       Writes go to both replicas from now on.
         stage: rest → write_both
  2  topology coordinator: read new
       The new replica has all the data and is read from now on.
         stage: write_both → read_new
  3  node0: learn
       Coordinator node0 applies the committed stage.
         learned[node0]: rest → read_new
  4  node1: write
       Coordinator node1 acknowledges a write; a replica it does not write to falls behind.
         complete: {new, old} → {old}

✗ reads_are_complete  tests/models/broken.py:LINE
  A replica that some coordinator reads holds every acknowledged write.
  It is false in state 4:
    n = node0:
      new is in learned[node0].reads ({new})
        learned[node0] is read_new
      but new is not in complete ({old})
"""


def test_a_counterexample_reads_as_numbered_steps(
    migration: Definition, incomplete: PropertyVerdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    where = migration.property("reads_are_complete").where
    assert where is not None
    expected = EXPECTED.replace("LINE", str(where.line))
    assert plain_text(migration, incomplete, None) == expected


def test_a_lasso_reads_as_what_happens_for_ever(
    migration: Definition, lasso: PropertyVerdict
) -> None:
    text = plain_text(migration, lasso, None)
    assert " and then for ever:\n  3  node0: write\n" in text
    assert "         changes nothing\n     (back to state 2)\n" in text


@pytest.mark.parametrize("width", [80, 120])
def test_every_line_fits_the_terminal(
    width: int, all_cases: list[tuple[Definition, PropertyVerdict]]
) -> None:
    for definition, verdict in all_cases:
        sink = io.StringIO()
        Console(file=sink, width=width).print(render_text(definition, verdict))
        assert max(map(len, sink.getvalue().splitlines())) <= width


def test_colour_is_for_terminals_alone(migration: Definition, incomplete: PropertyVerdict) -> None:
    def printed(*, terminal: bool) -> str:
        sink = io.StringIO()
        color: Literal["standard", "auto"] = "standard" if terminal else "auto"
        console = Console(file=sink, force_terminal=terminal, width=100, color_system=color)
        console.print(render_text(migration, incomplete))
        return sink.getvalue()

    assert "\x1b[" in printed(terminal=True)
    assert "\x1b" not in printed(terminal=False)
