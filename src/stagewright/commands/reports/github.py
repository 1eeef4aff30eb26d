"""Suites as GitHub shows them: annotations on lines of the changed files, and a summary of the job."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stagewright.commands.reports.check_text import first_sentence
from stagewright.commands.reports.places import Place, place_of
from stagewright.commands.reports.suite import Case, Level, Suite
from stagewright.commands.reports.text import readable, shortened
from stagewright.spec.errors import StagewrightError
from stagewright.spec.verdict import Outcome

MOST_OF_A_KIND = 10  # annotations: GitHub drops the others of a step without a word
MOST_MESSAGE = 4_000  # characters: the runner cuts at 4,096
MOST_TITLE = 200
SUMMARY_BYTES = 1024 * 1024  # of one step: GitHub refuses a larger summary as a whole
_ENDING_BYTES = 100  # kept free for the line that says what did not fit
_STORY_CHARACTERS = 20_000  # of one counterexample in the summary
_STEPS = 40  # of a counterexample in an annotation: the last ones
_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}
_MARKS = {Outcome.HOLDS: "✅", Outcome.VIOLATED: "❌", Outcome.UNDECIDED: "❔", None: "⏩"}


@dataclass(frozen=True)
class _Annotation:
    level: Level
    title: str
    text: str
    where: Place | None

    def __str__(self) -> str:
        return command(
            _COMMANDS[self.level],
            {**_place(self.where), "title": shortened(readable(self.title), MOST_TITLE)},
            shortened(readable(self.text), MOST_MESSAGE),
        )


def workflow_commands(suites: Sequence[Suite]) -> list[str]:
    """The workflow commands, one a line; of each kind no more than GitHub shows, the rest counted."""
    found = [one for suite in suites for one in _annotations(suite)]
    return [str(one) for level in Level for one in _capped([a for a in found if a.level is level])]


def error_command(error: StagewrightError) -> str:
    """The workflow command for an error in what a user gave: on its line, if it has one."""
    title = f"{error.code}: {shortened(readable(error.problem.partition(chr(10))[0]), MOST_TITLE)}"
    text = f"{error.problem}\nhelp: {error.help}" if error.help else error.problem
    return str(_Annotation(Level.ERROR, title, text, place_of(error.where)))


def command(name: str, properties: Mapping[str, str | int], message: str) -> str:
    """A workflow command: `::error file=app.py,line=1::message`, with everything escaped."""
    listed = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name} {listed}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _place(where: Place | None) -> dict[str, str | int]:
    """Nothing for a file outside of the repository, which GitHub could not show."""
    if where is None or not where.inside:
        return {}
    return {"file": where.path, "line": where.line, "endLine": max(where.line, where.end_line)}


def _capped(found: Sequence[_Annotation]) -> Sequence[_Annotation]:
    if len(found) <= MOST_OF_A_KIND:
        return found
    shown, rest = found[: MOST_OF_A_KIND - 1], found[MOST_OF_A_KIND - 1 :]
    title = f"{len(rest)} more of this kind"
    text = "Not shown on their lines:\n" + "\n".join(one.title for one in rest)
    return [*shown, _Annotation(shown[0].level, title, text, None)]


def _annotations(suite: Suite) -> Iterator[_Annotation]:
    """One for each finding that has a cause of its own; what shares its cause shares one."""
    open_ones = [c for c in suite.cases if c.outcome is Outcome.UNDECIDED and not c.flow]
    for case in suite.cases:
        if case.level is not None and (case not in open_ones or len(open_ones) == 1):
            title = case.headline or f"{suite.title}: {case.name} is vacuous"
            yield _Annotation(case.level, title, _message(suite, case), case.where or suite.where)
    if len(open_ones) > 1:
        title = f"{suite.title}: {len(open_ones)} properties are undecided"
        lines = [f"{case.name}: {case.note}" for case in open_ones]
        text = "\n".join(filter(None, (suite.note, *lines, _again(suite))))
        yield _Annotation(Level.WARNING, title, text, suite.where)
    for remark in suite.remarks:
        if remark.level is not Level.NOTE:
            title = f"{remark.rule.replace('-', ' ')}: {remark.subject}"
            yield _Annotation(remark.level, title, remark.text, remark.where or suite.where)
    for rule in dict.fromkeys(r.rule for r in suite.remarks if r.level is Level.NOTE):
        alike = [r for r in suite.remarks if r.rule == rule and r.level is Level.NOTE]
        title = f"{suite.title}: {len(alike)} x {rule.replace('-', ' ')}"
        where = (alike[0].where if len(alike) == 1 else None) or suite.where
        yield _Annotation(Level.NOTE, title, "\n".join(r.text for r in alike), where)


def _again(suite: Suite) -> str:
    return f"at {suite.scope}; reproduce: {suite.reproduce}"


def _message(suite: Suite, case: Case) -> str:
    steps = [f"{s.number:>3}  {s.text}" for s in case.flow if not s.is_breach]
    if (more := len(steps) - _STEPS) > 0:
        steps = [f"… {more:,} states before", *steps[more:]]
    ending = _again(suite)
    opening = "\n".join(filter(None, (first_sentence(case.promise), case.why or case.note)))
    room = MOST_MESSAGE - len(opening) - len(ending) - 2
    return "\n".join(filter(None, (opening, shortened("\n".join(steps), max(0, room)), ending)))


def summary(suites: Sequence[Suite], room: int = SUMMARY_BYTES) -> str:
    """The suites in Markdown, of at most `room` bytes: what does not fit is counted; empty without room."""
    parts = [part for suite in suites for part in _parts(suite)]
    room -= _ENDING_BYTES
    if room < 0:
        return ""
    kept: list[str] = []
    for part in parts:
        if (size := len(part.encode())) > room:
            left = len(parts) - len(kept)
            return "".join([*kept, f"\n*{left:,} more parts did not fit into this summary.*\n"])
        kept.append(part)
        room -= size
    return "".join(kept)


def room_in(path: Path) -> int:
    """How many bytes a step's summary can still take."""
    return SUMMARY_BYTES - (path.stat().st_size if path.exists() else 0)


def _parts(suite: Suite) -> Iterator[str]:
    """The table first, then each counterexample, then what was not exercised."""
    rows = "".join(
        f"| {_MARKS[c.outcome]} | {_code(c.name)} | {_outcome(c)} |\n" for c in suite.cases
    )
    yield (
        f"\n## {_MARKS[suite.outcome]} {_inline(suite.title)}: {suite.command}\n\n"
        f"{_inline(suite.scope)}. {_inline(suite.summary)}"
        f"{'. ' + _inline(suite.note) if suite.note else ''}\n\n"
        f"| | property | |\n|---|---|---|\n{rows}\n{_code(suite.reproduce)}\n"
    )
    for case in suite.cases:
        if case.story:
            yield _details(case.headline, shortened(case.story, _STORY_CHARACTERS))
    if suite.remarks:
        yield _details("What was not exercised", "\n".join(r.text for r in suite.remarks))


def _outcome(case: Case) -> str:
    if case.outcome is Outcome.VIOLATED:
        return _inline(": ".join(filter(None, (case.headline, first_sentence(case.promise)))))
    return _inline(case.note)


def _details(title: str, text: str) -> str:
    text = readable(text).rstrip("\n")
    fence = "```"
    while fence in text:
        fence += "`"
    escaped = _inline(title)
    return (
        f"\n<details><summary>{escaped}</summary>\n\n{fence}text\n{text}\n{fence}\n\n</details>\n"
    )


def _inline(text: str) -> str:
    """The text on one line, of which Markdown and HTML make nothing."""
    line = " ".join(readable(text).split())
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"&#{ord(c)};" if c in "\\`*_[]|~#@!" else c for c in line)


def _code(text: str) -> str:
    return f"<code>{_inline(text)}</code>"
