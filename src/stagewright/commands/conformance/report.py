"""What conformance tests found, as text for people and as JSON for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.checker.conformance.aims import Aimed
from stagewright.checker.conformance.divergence import Divergence
from stagewright.checker.conformance.exercised import Exercised, Gaps, gaps
from stagewright.checker.conformance.oracle import Oracle
from stagewright.checker.conformance.play import SuiteResult
from stagewright.commands.conformance.aim_file import Aim
from stagewright.spec.grounding.coverable import Thing, kind_of, name_of
from stagewright.spec.text.counting import counted
from stagewright.spec.values import plain
from stagewright.spec.verdict import Step

if TYPE_CHECKING:
    from rich.console import RenderableType

_LISTED = 6  # names of what was not exercised

Json = object


@dataclass(frozen=True)
class AimReport:
    """What suites aimed at; `note`: which states were not explored, empty if all were."""

    aim: Aim
    aimed: tuple[Aimed, ...]
    note: str

    @property
    def reached(self) -> tuple[Thing, ...]:
        """What the walks do."""
        return tuple(thing for one in self.aimed for thing in one.reached)

    @property
    def unreachable(self) -> tuple[Thing, ...]:
        """What no explored state offers."""
        return tuple(thing for one in self.aimed for thing in one.unreachable)

    @property
    def left_out(self) -> tuple[Thing, ...]:
        """What a suite could do that was not asked for, or that would take more moves."""
        parts = {*self.reached, *self.unreachable}
        return tuple(thing for thing in self.aim.things if thing not in parts)


@dataclass(frozen=True)
class Tested:
    """One implementation, tested against one definition."""

    oracle: Oracle
    adapter: str
    results: tuple[SuiteResult, ...]
    seed: int
    exported: Path | None
    reproduce: str
    aimed: AimReport | None = None

    @property
    def exercised(self) -> Exercised:
        """What all suites together have exercised."""
        whole = Exercised()
        for result in self.results:
            whole.merge(result.exercised)
        return whole

    @property
    def gaps(self) -> Gaps:
        """What none of them has."""
        oracle = self.oracle
        actions = {action.name for action in oracle.definition.actions}
        leaves = [leaf for leaf in oracle.leaves(oracle.initial_states()[0]) if _written(leaf)]
        found = gaps(oracle.source, leaves, self.exercised)
        # What the scope switches off cannot be exercised.
        return Gaps(
            tuple(name for name in found.actions if name in actions),
            tuple(key for key in found.requirements if key[0] in actions),
            tuple(key for key in found.never_alone if key[0] in actions),
            found.leaves,
        )

    @property
    def stopped(self) -> str:
        """Why not all was done; empty if all was."""
        return next((result.stopped for result in self.results if result.stopped), "")

    @property
    def outcome(self) -> str:
        """One word."""
        if any(result.failure is not None for result in self.results):
            return "violated"
        return "undecided" if self.stopped else "holds"


def document(tested: Tested) -> Json:
    """Everything as one JSON object."""
    definition, left = tested.oracle.source, tested.gaps
    return {
        "outcome": tested.outcome,
        "machine": definition.name,
        "profile": definition.profile,
        "fingerprint": definition.fingerprint(),
        "scope": str(tested.oracle.scope),
        "adapter": tested.adapter,
        "seed": tested.seed,
        "suites": [_suite(result) for result in tested.results],
        "exercised": _exercised(tested.exercised),
        "not_exercised": {
            "actions": list(left.actions),
            "requirements": [f"{action}: {name}" for action, name in left.requirements],
            "requirements_never_alone": [f"{action}: {name}" for action, name in left.never_alone],
            "leaves_never_observed": list(left.leaves),
        },
        **({} if tested.aimed is None else {"aim": _aim(tested.aimed)}),
        "exported": None if tested.exported is None else str(tested.exported),
        "reproduce": tested.reproduce,
    }


def _aim(report: AimReport) -> Json:
    return {
        "coverage": str(report.aim.path),
        "events": report.aim.events,
        "all_states_explored": not report.note,
        "reached": _named(report.reached),
        "unreachable": _named(report.unreachable),
        "left_out": _named(report.left_out),
    }


def _named(things: Sequence[Thing]) -> list[dict[str, str]]:
    return [{"kind": kind_of(thing), "name": name_of(thing)} for thing in things]


def _suite(result: SuiteResult) -> Json:
    exercised = result.exercised
    return {
        "name": result.name,
        "outcome": _outcome(result),
        "runs": exercised.runs,
        "steps": exercised.steps,
        "refusals": exercised.refusals,
        "edges": len(exercised.edges),
        "covered": result.covered,
        "total": result.total,
        "of": result.of,
        "note": "; ".join(filter(None, (result.note, result.stopped))),
        "failure": None if result.failure is None else _failure(result.failure),
    }


def _exercised(exercised: Exercised) -> Json:
    return {
        "actions": dict(sorted(exercised.fired.items())),
        "edges": len(exercised.edges),
        "refused_by": {f"{a}: {r}": n for (a, r), n in sorted(exercised.refused.items())},
        "refused_by_it_alone": {f"{a}: {r}": n for (a, r), n in sorted(exercised.alone.items())},
        "leaves": sorted(exercised.observed),
    }


def _failure(failure: Divergence) -> Json:
    return {
        "fault": failure.fault.name.lower(),
        "headline": failure.headline,
        "moves": [
            {"action": m.step.action, "arguments": _arguments(m.step), "must_be_refused": m.refused}
            for m in failure.moves
        ],
        "states": [{n: plain(v) for n, v in state.items()} for state in failure.states],
        "requirements": list(failure.requirements),
        "differences": [
            {"leaf": d.leaf, "expected": d.expected, "observed": _json(d.observed)}
            for d in failure.differences
        ],
        "error": failure.error,
        "story": failure.story(),
    }


def _arguments(step: Step) -> dict[str, object]:
    return {name: plain(value) for name, value in step.arguments.items()}


def _json(value: object) -> Json:
    return value if isinstance(value, str | int | list | None) else repr(value)


def _outcome(result: SuiteResult) -> str:
    if result.failure is not None:
        return "violated"
    return "undecided" if result.stopped else "holds"


def print_text(tested: Tested) -> None:
    """Print the report for people."""
    from rich.console import Group

    from stagewright.commands.console.output import console

    console().print(Group(*_parts(tested)), crop=False)


def _parts(tested: Tested) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    from stagewright.commands.console.output import to_copy

    title = Text(tested.oracle.name, style="bold")
    yield title.append(f", {tested.oracle.scope}, adapter {tested.adapter}", style="dim")
    table = Table.grid(padding=(0, 2, 0, 0))
    marks = {"holds": ("✓", "green"), "violated": ("✗", "bold red"), "undecided": ("?", "yellow")}
    for result in tested.results:
        mark, style = marks[_outcome(result)]
        table.add_row(Text(f"  {mark}", style=style), result.name, Text(_counts(result)))
    yield table
    stories: dict[str, list[str]] = {}
    for result in tested.results:
        if result.failure is not None:
            stories.setdefault(result.failure.story(), []).append(result.name)
    for story, suites in stories.items():
        yield Text("")
        *others, last = suites
        by = f"{', '.join(others)} and {last}" if others else last
        yield Text(f"found by {by}", style="dim")
        yield Text(story)
    yield Text("")
    if tested.aimed is None:  # else it is plain that much is not exercised
        yield from (Text(line, style="yellow") for line in _missing(tested.gaps))
    else:
        yield from (Text(line) for line in _aim_lines(tested.aimed))
    if tested.exported is not None:
        yield to_copy(f"written: {tested.exported}")
    yield to_copy(f"seed {tested.seed}; reproduce: {tested.reproduce}")


def _counts(result: SuiteResult) -> str:
    exercised = result.exercised
    text = f"{counted(exercised.runs, 'run')}, {counted(exercised.steps, 'step')}, "
    text += counted(exercised.refusals, "refusal")
    if result.covered is not None and result.total is not None:
        text += f"; {result.covered:,} of {result.total:,} {result.of}"
    else:
        text += f"; {counted(len(exercised.edges), 'edge')}"
    return "; ".join(filter(None, (text, result.note, result.stopped)))


def _missing(left: Gaps) -> Iterator[str]:
    pairs = [f"{action}: {name}" for action, name in left.requirements]
    alone = [f"{action}: {name}" for action, name in left.never_alone]
    for what, names in (
        ("actions that never happened", left.actions),
        ("requirements that never refused", pairs),
        ("requirements that never refused alone", alone),
        ("variables that the adapter does not observe", left.leaves),
    ):
        if names:
            more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            yield f"{what}: {', '.join(names[:_LISTED])}{more}"


def _aim_lines(report: AimReport) -> Iterator[str]:
    aim = report.aim
    many = _counted(aim.things) or "nothing: production did all of it"
    yield f"aimed at what {aim.events:,} recorded events never did: {many}"
    if aim.things:
        yield f"reached: {_counted(report.reached) or 'nothing'}"
    why = f"not found ({report.note})" if report.note else "unreachable at this scope"
    for what, things in ((why, report.unreachable), ("left out", report.left_out)):
        for kind in dict.fromkeys(map(kind_of, things)):
            names = [name_of(thing) for thing in things if kind_of(thing) == kind]
            more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            yield f"{what}: {kind} {', '.join(names[:_LISTED])}{more}"


def _counted(things: Sequence[Thing]) -> str:
    """How many of each kind."""
    counts = Counter(map(kind_of, things))
    parts = {"part of a requirement": "parts of requirements"}
    return ", ".join(
        f"{n:,} {kind if n == 1 else parts.get(kind, kind + 's')}" for kind, n in counts.items()
    )


def _written(leaf: str) -> bool:
    from stagewright.spec.scope import BUDGET_PREFIX

    return not leaf.startswith(BUDGET_PREFIX)
