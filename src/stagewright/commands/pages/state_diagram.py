"""A state diagram and a table of states, as Mermaid."""

from __future__ import annotations

import json
from collections.abc import Sequence

from stagewright.checker.counterexample.mermaid import escape
from stagewright.spec.text.state_diagram import Diagram, labels_of, shown_members


def render_diagram(diagram: Diagram) -> str:
    """The diagram as Mermaid's `stateDiagram-v2`, actions between the same two members together.

    Its title says what the edges are; a star marks those that runs take at other scopes only.
    """
    shown = shown_members(diagram)
    ids = {member: f"s{i}" for i, member in enumerate(shown)}
    title = json.dumps(f"{diagram.variable}: {diagram.basis}", ensure_ascii=False)
    lines = ["---", f"title: {title}", "---", "stateDiagram-v2"]
    lines += [f"    %% {note}" for note in diagram.notes]
    if diagram.elsewhere:
        lines.append("    %% marked by a star: taken at other scopes only")
    lines += [f'    state "{escape(m.name)}" as {ids[m]}' for m in shown]
    lines += [f"    [*] --> {ids[m]}" for m in diagram.initial]
    for (source, target, elsewhere), actions in labels_of(diagram).items():
        label = ", ".join(f"{action}*" if elsewhere else action for action in actions)
        lines.append(f"    {ids[source]} --> {ids[target]}: {escape(label)}")
    lines += [f"    {ids[m]} --> [*]" for m in diagram.final]
    if diagram.undrawn:
        lines.append(
            f"    %% not drawn, for their targets depend on more: {', '.join(diagram.undrawn)}"
        )
    if diagram.untaken:
        lines.append("    %% the guards alone allow these, but no run takes them:")
        lines += [f"    %% {a.name} --> {b.name}: {action}" for a, b, action in diagram.untaken]
    return "\n".join(lines) + "\n"


def render_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as Mermaid's grid of blocks, one row below the other."""
    lines = ["block-beta", f"    columns {len(head)}"]
    for number, row in enumerate([head, *rows]):
        cells = (f'r{number}c{place}["{escape(cell) or " "}"]' for place, cell in enumerate(row))
        lines.append("    " + " ".join(cells))
    lines.append("    classDef head fill:#dde6f3,font-weight:bold")
    lines.append("    class " + ",".join(f"r0c{place}" for place in range(len(head))) + " head")
    return "\n".join(lines) + "\n"
