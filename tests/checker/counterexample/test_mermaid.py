"""The Mermaid sequence diagram: lanes, arrows, notes, and names that would break it."""

from __future__ import annotations

import re

import pytest

from stagewright.checker.counterexample import render_mermaid
from stagewright.checker.counterexample.mermaid import escape
from stagewright.spec.definition import Definition
from stagewright.spec.verdict import PropertyVerdict

EXPECTED = """\
sequenceDiagram
    participant p0 as topology coordinator
    participant p1 as node0
    participant p2 as node1
    p0->>p0: 1. write both
    Note over p0: stage: rest → write_both
    p0->>p0: 2. read new
    Note over p0: stage: write_both → read_new
    p1->>p1: 3. learn
    Note over p1: learned[node0]: rest → read_new
    rect rgba(220, 38, 38, 0.12)
    p2->>p2: 4. write
    Note over p2: complete: {new, old} → {old}
    Note over p0,p2: ✗ reads_are_complete<br/>It is false in state 4:<br/>n = node0:<br/>\
new is in learned[node0].reads ({new})<br/>learned[node0] is read_new<br/>\
but new is not in complete ({old})
    end
"""


def test_the_violating_step_stands_in_a_red_rectangle(
    migration: Definition, incomplete: PropertyVerdict
) -> None:
    assert render_mermaid(migration, incomplete) == EXPECTED


def test_an_action_with_two_entities_is_an_arrow(
    workers: Definition, done: PropertyVerdict
) -> None:
    assert "    p0->>p1: 1. claim (task0)\n" in render_mermaid(workers, done)


def test_a_lasso_is_a_loop(migration: Definition, lasso: PropertyVerdict) -> None:
    text = render_mermaid(migration, lasso)
    assert "    loop for ever\n    p1->>p1: 3. write\n    end\n" in text


def test_every_block_is_closed(all_cases: list[tuple[Definition, PropertyVerdict]]) -> None:
    for definition, verdict in all_cases:
        words = [line.split()[0] for line in render_mermaid(definition, verdict).splitlines()]
        assert words.count("end") == words.count("rect") + words.count("loop")


def test_lines_of_notes_are_short(all_cases: list[tuple[Definition, PropertyVerdict]]) -> None:
    for definition, verdict in all_cases:
        for note in re.findall(r"Note over [^:]*: (.*)", render_mermaid(definition, verdict)):
            plain = re.sub(r"#\d+;", "x", note)
            assert all(len(line) <= 48 for line in plain.split("<br/>"))


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("a; b", "a#59; b"),
        ("#1", "#35;1"),
        ('say "no"', "say #34;no#34;"),
        ("<script>", "#60;script#62;"),
        ("the end", "the #101;nd"),
        ("END", "#69;ND"),
        ("bend_ends", "bend_ends"),
        ("two\nlines", "two lines"),
        ("%% no comment", "#37;#37; no comment"),
    ],
)
def test_what_mermaid_reads_as_syntax_is_escaped(text: str, escaped: str) -> None:
    assert escape(text) == escaped
