"""What production exercised of a machine, on a trace report's page: its diagram, and what was never seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stagewright.spec.grounding.coverable import ActionOf, Edge, RequirementOf, ValueOf
from stagewright.traces.coverage.exercised import Count, MachineCoverage, Seen
from stagewright.traces.coverage.report import tally
from stagewright.traces.report.page_entity import shown

_ROWS_MAX = 2_000


@dataclass(frozen=True)
class Drawing:
    """A state diagram: whose states it has, and what shows it (SVG)."""

    variable: str
    svg: str


def coverage_section(number: int, coverage: MachineCoverage, drawings: Sequence[Drawing]) -> str:
    """The section of one machine."""
    definition = coverage.definition
    profile = f" ({definition.profile})" if definition.profile else ""
    looked = f"{coverage.states:,} states" + ("" if coverage.exhausted else ", not all")
    tables = [
        ("actions", "action", {a.action: c for a, c in coverage.of(ActionOf).items()}),
        ("edges", "edge", {_edge(e): c for e, c in coverage.of(Edge).items()}),
        ("values", "value", {f"{v.place} = {v.value}": c for v, c in coverage.of(ValueOf).items()}),
        (
            "parts of requirements",
            "part",
            {
                f"{r.action}: {r.requirement}: {r.part}": c
                for r, c in coverage.of(RequirementOf).items()
                if r.part
            },
        ),
    ]
    rows = "".join(_summary(name, counts) for name, _, counts in tables if counts)
    first, *others = [_drawing(d) for d in drawings] or [""]
    folded = f"<details><summary>Other state diagrams: {len(others)}</summary>{''.join(others)}</details>"
    drawn = first
    legend = (
        '<p class="legend"><span class="key"></span>certainly taken<span class="key possibly"></span>'
        'possibly<span class="key never"></span>never; the number is how many events took it.</p>'
        if drawn
        else ""
    )
    lists = "".join(_table(name, one, counts) for name, one, counts in tables if counts)
    return (
        f'<section class="panel" id="c{number}" aria-label="Coverage"><h2>What {coverage.events:,} events exercised of '
        f"{shown(definition.name + profile)}</h2>"
        f'<div class="scroll"><table><thead><tr><th></th><th class=number>certainly</th><th class=number>possibly'
        f"</th><th class=number>never</th><th class=number>of</th><th></th></tr></thead><tbody>{rows}</tbody>"
        f"</table></div><p class=legend>Counted is what the definition can do at {shown(coverage.scope)} "
        f"({looked} were looked at).</p>{drawn}{legend}{folded if others else ''}{lists}</section>"
    )


def _drawing(drawing: Drawing) -> str:
    return f'<h3>{shown(drawing.variable)}</h3><div class="drawing">{drawing.svg}</div>'


def _summary(name: str, counts: Mapping[str, Count]) -> str:
    found = tally(counts.values())
    whole = sum(found.values())
    numbers = "".join(f'<td class="number">{found[seen]:,}</td>' for seen in Seen)
    bars = "".join(
        f'<div class="{seen.value}" style="width: {100 * found[seen] / max(whole, 1):.1f}%"></div>'
        for seen in (Seen.CERTAINLY, Seen.POSSIBLY)
    )
    return (
        f'<tr><td class="name">{name}</td>{numbers}<td class="number">{whole:,}</td>'
        f'<td><div class="meter">{bars}</div></td></tr>'
    )


def _table(name: str, one: str, counts: Mapping[str, Count]) -> str:
    """All things of one kind; what was never seen comes first."""
    order = (Seen.NEVER, Seen.POSSIBLY, Seen.CERTAINLY)
    named = sorted(counts.items(), key=lambda item: (order.index(item[1].seen), _cannot(item[1])))
    rows = "".join(
        f'<tr><td class="{_look(c)}">{_words(c)}</td><td><code>{shown(n)}</code></td>'
        f'<td class="number">{c.certain:,}</td><td class="number">{c.possible:,}</td></tr>'
        for n, c in named[:_ROWS_MAX]
    )
    cannot = sum(map(_cannot, counts.values()))
    others = f", and {cannot:,} that cannot be" if cannot else ""
    return (
        f"<details><summary>All {len(counts) - cannot:,} {name}{others}</summary>"
        f'<div class="list"><table><thead><tr><th></th><th>{one}</th><th class=number>certainly</th>'
        f"<th class=number>possibly</th></tr></thead><tbody>{rows}</tbody></table></div></details>"
    )


def _cannot(count: Count) -> bool:
    return count.reachable is False


def _words(count: Count) -> str:
    return "cannot be" if _cannot(count) else count.seen.value


def _look(count: Count) -> str:
    if _cannot(count):
        return "none"
    return {Seen.CERTAINLY: "good", Seen.POSSIBLY: "unsure", Seen.NEVER: "bad"}[count.seen]


def _edge(edge: Edge) -> str:
    return f"{edge.variable}: {edge.source} → {edge.target} by {edge.action}"
