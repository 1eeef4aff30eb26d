"""The state diagrams of a definition, with what recorded traces exercised of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from stagewright.commands.pages.dot import Looks, diagram_dot
from stagewright.commands.pages.graphviz import svg_of
from stagewright.spec.errors import InputError
from stagewright.spec.grounding.coverable import Edge, Move, ValueOf
from stagewright.spec.text.state_diagram import Diagram, diagram_of, diagrams_of, has_diagram
from stagewright.traces.coverage.exercised import Count, MachineCoverage, Seen
from stagewright.traces.report.page_coverage import Drawing

_DRAWN_MAX = 4  # of one machine, the main one first
_EDGES_MAX = 150  # more are no picture
_PROLOGUE = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
_TITLES = re.compile(r"<title>.*?</title>\n?", re.DOTALL)


def drawings(coverage: MachineCoverage) -> list[Drawing]:
    """The diagrams as SVG; none where no program here lays them out."""
    definition = coverage.definition
    if not has_diagram(definition):
        return []
    main = diagram_of(definition)
    others = (_moving(d) for d in diagrams_of(definition) if d.variable != main.variable)
    chosen = [d for d in (main, *others) if 1 < len(d.edges) <= _EDGES_MAX]
    try:
        return [Drawing(d.variable, _svg(d, coverage)) for d in chosen[:_DRAWN_MAX]]
    except InputError:
        return []


def _moving(diagram: Diagram) -> Diagram:
    """Without the steps that leave the variable as it is: beside the main one they only crowd."""
    return replace(diagram, edges=tuple(e for e in diagram.edges if e[0] is not e[1]))


def _svg(diagram: Diagram, coverage: MachineCoverage) -> str:
    text = svg_of(diagram_dot(_as_known(diagram, coverage), _looks(diagram, coverage)))
    # It stands inside of a page, where the names of nodes ("s0") would be shown as tooltips.
    return _TITLES.sub("", _PROLOGUE.sub("", text)).strip()


def _as_known(diagram: Diagram, coverage: MachineCoverage) -> Diagram:
    """Without the edges that no run takes, as far as that is known, and with those that were seen."""
    members = {member.name: member for member in diagram.members}
    known = {
        (members[e.source], members[e.target], e.action): count
        for e, count in coverage.of(Edge).items()
        if e.variable == diagram.variable
    }
    possible = [e for e in diagram.edges if e not in known or known[e].reachable is not False]
    seen = [e for e, count in known.items() if count.possible and e[0] is not e[1]]
    basis = diagram.basis
    if coverage.exhausted:
        basis = f"edges that runs take at {coverage.scope}, and those that were seen"
    return replace(diagram, edges=tuple(dict.fromkeys([*possible, *seen])), basis=basis)


def _looks(diagram: Diagram, coverage: MachineCoverage) -> Looks:
    edges = {e: c for e, c in coverage.of(Edge).items() if e.variable == diagram.variable}
    moves = {m: c for m, c in coverage.of(Move).items() if m.variable == diagram.variable}
    return Looks(
        dict(_states(diagram, coverage)),
        {(m.source, m.target): _class(count) for m, count in moves.items()},
        {(e.source, e.target, e.action): _text(e.action, count) for e, count in edges.items()},
    )


def _states(diagram: Diagram, coverage: MachineCoverage) -> Iterator[tuple[str, str]]:
    """The class of each member, over all keys if the variable has some."""
    order = list(Seen)
    for member in diagram.members:
        found = [
            count.seen
            for value, count in coverage.of(ValueOf).items()
            if value.place.partition("[")[0] == diagram.variable and value.value == member.name
        ]
        yield member.name, min(found, key=order.index, default=Seen.NEVER).value


def _class(count: Count) -> str:
    if count.seen is Seen.NEVER and count.reachable is False:
        return "cannot"
    return count.seen.value


def _text(action: str, count: Count) -> str:
    match count.seen:
        case Seen.CERTAINLY:
            return f"{action} {count.certain:,}"
        case Seen.POSSIBLY:
            return f"{action} ≤{count.possible:,}"
        case Seen.NEVER:
            return f"{action} 0"
