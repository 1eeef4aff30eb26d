"""What the older versions of a machine leave open: the shortest run that breaks each such property."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stagewright.checker.check import check
from stagewright.checker.counterexample.files import file_stem, markdown, write_whole
from stagewright.checker.counterexample.story import story_of
from stagewright.checker.limits import Limits
from stagewright.commands.pages.text import plain, prose
from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.loading import find
from stagewright.spec.machine import profile_names
from stagewright.spec.scope import scope_of
from stagewright.spec.text.counting import counted
from stagewright.spec.verdict import Outcome, Report


def write_runs(
    name: str, shipped: dict[str, str], directory: Path, timeout: float
) -> Iterator[Path]:
    """Check every version but the newest at its default scope; write a page a broken promise, and a list.

    `timeout`: seconds for each version; what it leaves undecided is said in the list.
    """
    machine = find(name, shipped)
    older = profile_names(machine)[:-1]
    if not older:
        return
    directory.mkdir(parents=True, exist_ok=True)
    for stale in directory.glob("*.md"):
        stale.unlink()
    lines = [f"# {name}: what its older versions leave open", ""]
    for profile in older:
        definition = define(machine, profile)
        scope = scope_of(definition)
        report = check(definition, scope, limits=Limits(seconds=timeout), symmetry=True)
        lines += _section(name, definition, report, str(scope))
        for verdict in report.verdicts:
            if verdict.run is not None and verdict.outcome is Outcome.VIOLATED:
                file = directory / _file(profile, verdict.name)
                write_whole(file, markdown(story_of(definition, verdict, scope)))
                yield file
    index = directory / "README.md"
    write_whole(index, "\n".join(lines).rstrip() + "\n")
    yield index


def _file(profile: str, promise: str) -> str:
    return f"{file_stem(profile)}.{file_stem(promise)}.md"


def _section(name: str, definition: Definition, report: Report, scope: str) -> Iterator[str]:
    yield from (f"## {definition.profile}", "")
    yield f"`stagewright check {name} --profile {definition.profile}` at {scope}: "
    yield f"{counted(report.states, 'state')}, {report.note or 'all of them'}."
    yield ""
    data = {p.name: " ".join(p.doc.split()) for p in definition.properties}
    open_ones = [v for v in report.verdicts if v.outcome is not Outcome.HOLDS]
    if not open_ones:
        yield from ("Every property holds.", "")
        return
    rows = [
        (
            _linked(definition.profile, v.name, shown=v.run is not None),
            v.outcome.name.lower(),
            prose(data.get(v.name, "")),
            prose(definition.known_violation(v.name)),
        )
        for v in open_ones
    ]
    yield "| property | verdict | in the words of the document | what this version does |"
    yield "| --- | --- | --- | --- |"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _linked(profile: str, promise: str, *, shown: bool) -> str:
    return f"[{plain(promise)}]({_file(profile, promise)})" if shown else plain(promise)
