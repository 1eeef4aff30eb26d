"""Coverage by production as text: to programs as JSON of a stable form, and to people in a few lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from stagewright.spec.grounding.coverable import (
    ActionOf,
    Edge,
    Move,
    RequirementOf,
    ValueOf,
    name_of,
)
from stagewright.spec.text.counting import counted
from stagewright.traces.coverage.exercised import Count, MachineCoverage, Seen

VERSION = 1
_LISTED = 5  # names of one kind that are listed


def as_json(coverage: Sequence[MachineCoverage]) -> dict[str, object]:
    """All machines. What the keys mean is in `stagewright.traces.coverage.exercised`.

    Actions, edges and requirements have the names of `check --json` and of the diagrams of `draw`.
    """
    return {"version": VERSION, "machines": [_machine(one) for one in coverage]}


def _machine(coverage: MachineCoverage) -> dict[str, object]:
    definition = coverage.definition
    requirements: list[dict[str, object]] = []
    parts: dict[tuple[str, str], list[dict[str, object]]] = {}
    for thing, count in coverage.of(RequirementOf).items():
        key = thing.action, thing.requirement
        if thing.part:
            parts[key].append({"part": thing.part, **_count(count)})
        else:
            parts[key] = []
            names = {"action": thing.action, "requirement": thing.requirement}
            requirements.append({**names, **_count(count), "parts": parts[key]})
    return {
        "machine": definition.name,
        "profile": definition.profile,
        "fingerprint": definition.fingerprint(),
        "scope": coverage.scope,
        "events": coverage.events,
        "reachability": {"states": coverage.states, "exhausted": coverage.exhausted},
        "values": [
            {"place": v.place, "value": v.value, **_count(c)}
            for v, c in coverage.of(ValueOf).items()
        ],
        "actions": [{"action": a.action, **_count(c)} for a, c in coverage.of(ActionOf).items()],
        "moves": [
            {"variable": m.variable, "source": m.source, "target": m.target, **_count(c)}
            for m, c in coverage.of(Move).items()
        ],
        "edges": [
            {
                "variable": e.variable,
                "source": e.source,
                "target": e.target,
                "action": e.action,
                **_count(c),
            }
            for e, c in coverage.of(Edge).items()
        ],
        "requirements": requirements,
    }


def _count(count: Count) -> dict[str, object]:
    return {
        "seen": count.seen.value,
        "certain": count.certain,
        "possible": count.possible,
        "reachable": count.reachable,
    }


def summary(coverage: MachineCoverage) -> dict[str, object]:
    """How many things of each kind were seen how surely; their names are in `as_json`."""
    kinds = (("actions", ActionOf), ("moves", Move), ("edges", Edge), ("values", ValueOf))
    return {
        "machine": coverage.definition.name,
        "profile": coverage.definition.profile,
        "scope": coverage.scope,
        "events": coverage.events,
        **{
            name: {seen.value: n for seen, n in tally(coverage.of(kind).values()).items()}
            for name, kind in kinds
        },
    }


def coverage_lines(coverage: MachineCoverage) -> list[str]:
    """A line for each kind of thing, with what was never exercised though it can be."""
    definition = coverage.definition
    profile = f" ({definition.profile})" if definition.profile else ""
    lines = [f"coverage  {definition.name}{profile}: {counted(coverage.events, 'event')}"]
    for name, counts in (
        ("actions", {a.action: c for a, c in coverage.of(ActionOf).items()}),
        ("edges", {name_of(e): c for e, c in coverage.of(Edge).items()}),
        ("values", {name_of(v): c for v, c in coverage.of(ValueOf).items()}),
        ("parts of requirements", _parts(coverage)),
    ):
        if counts:
            lines.append(f"  {_line(name, counts)}")
    return lines


def tally(counts: Iterable[Count]) -> Mapping[Seen, int]:
    """How many things were seen how surely; those that cannot be are left out."""
    found = dict.fromkeys(Seen, 0)
    for count in counts:
        if count.reachable is not False:
            found[count.seen] += 1
    return found


def never(counts: Mapping[str, Count]) -> list[str]:
    """The names of what was never exercised, but can be as far as is known."""
    return [n for n, c in counts.items() if c.seen is Seen.NEVER and c.reachable is not False]


def _line(name: str, counts: Mapping[str, Count]) -> str:
    found = tally(counts.values())
    whole = sum(found.values())
    text = f"{name}: {found[Seen.CERTAINLY]} of {whole}"
    if found[Seen.POSSIBLY]:
        text += f", possibly {found[Seen.POSSIBLY]} more"
    missing = never(counts)
    if missing:
        more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
        text += f"; never {', '.join(missing[:_LISTED])}{more}"
    return text


def _parts(coverage: MachineCoverage) -> dict[str, Count]:
    return {name_of(r): c for r, c in coverage.of(RequirementOf).items() if r.part}
