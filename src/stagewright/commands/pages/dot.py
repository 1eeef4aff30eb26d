"""A state diagram, and an enum's table, in the DOT language of Graphviz."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import wrap

from stagewright.commands.facts.facts import EnumFacts
from stagewright.commands.pages.graphviz import escaped, quoted
from stagewright.spec.text.state_diagram import Diagram, labels_of, shown_members

_FONT = 'fontname="Helvetica"'
_NODES = 'style="rounded,filled", fillcolor="#eef3fb", color="#33557f", margin="0.15,0.06"'
_EDGES = 'fontsize="9", color="#5a6b80", fontcolor="#333333", arrowsize="0.7"'
_LABEL_WIDTH = 72  # characters
_STYLE = (
    f'    graph [{_FONT}, fontsize="9", bgcolor="transparent", ranksep="0.45", nodesep="0.35"];',
    f'    node [{_FONT}, fontsize="12", shape="box", {_NODES}];',
    f"    edge [{_FONT}, {_EDGES}];",
)


@dataclass(frozen=True)
class Looks:
    """Classes that the SVG is to have, for states by name and for edges by both ends; texts of actions."""

    states: Mapping[str, str] = field(default_factory=dict[str, str])
    edges: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    texts: Mapping[tuple[str, str, str], str] = field(
        default_factory=dict[tuple[str, str, str], str]
    )


def diagram_dot(diagram: Diagram, looks: Looks | None = None) -> str:
    """The state diagram: where it starts a dot, where it may stop a double frame; below, what the edges are."""
    looks = looks or Looks()
    shown = shown_members(diagram)
    ids = {member: f"s{i}" for i, member in enumerate(shown)}
    lines = ["digraph {", *_STYLE, f"    label={quoted(_label(diagram))};"]
    if diagram.initial:
        lines.append(
            '    start [shape="circle", style="filled", fillcolor="#33557f", label="", width="0.15"];'
        )
    for member in shown:
        peripheries = ', peripheries="2"' if member in diagram.final else ""
        kind = _class(looks.states.get(member.name))
        lines.append(f"    {ids[member]} [label={quoted(member.name)}{peripheries}{kind}];")
    lines += [f"    start -> {ids[member]};" for member in diagram.initial]
    for (source, target, elsewhere), actions in labels_of(diagram).items():
        ends = source.name, target.name
        label = quoted(_stacked([looks.texts.get((*ends, action), action) for action in actions]))
        kind = ', style="dashed"' if elsewhere else ""
        kind += _class(looks.edges.get(ends))
        lines.append(f"    {ids[source]} -> {ids[target]} [label={label}{kind}];")
    return "\n".join([*lines, "}"]) + "\n"


def _label(diagram: Diagram) -> str:
    """What the edges are, in lines that are no wider than a picture."""
    parts = [diagram.basis, *diagram.notes]
    if diagram.elsewhere:
        parts.append("dashed: at other scopes only")
    return "\n".join(line for text in parts for line in wrap(text, _LABEL_WIDTH))


def _class(name: str | None) -> str:
    return "" if name is None else f", class={quoted(name)}"


def _stacked(actions: list[str]) -> str:
    return "\n".join(f" {action} " for action in actions)


def table_dot(table: EnumFacts) -> str:
    """The table of an enum: one row a member, one column an attribute."""
    head = (table.name, *table.columns)
    cells = "".join(f'<TD BGCOLOR="#dde6f3"><B>{escaped(h)}</B></TD>' for h in head)
    rows = [f"<TR>{cells}</TR>"]
    for row in table.rows:
        cells = "".join(f'<TD ALIGN="LEFT">{escaped(cell) or " "}</TD>' for cell in row)
        rows.append(f"<TR>{cells}</TR>")
    inner = "\n        ".join(rows)
    return (
        f'digraph {{\n    graph [bgcolor="transparent"];\n    node [{_FONT}, fontsize="11", shape="plaintext"];\n'
        '    table [label=<<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0" CELLPADDING="4" '
        f'COLOR="#8fa3bf" BGCOLOR="#ffffff">\n        {inner}\n    </TABLE>>];\n}}\n'
    )
