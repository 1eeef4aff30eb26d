"""A machine for a terminal and as Markdown: its states, its actions and its properties."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from stagewright.commands.facts.facts import (
    COMMITTED,
    ActionFacts,
    EnumFacts,
    MachineFacts,
    PropertyFacts,
    VariableFacts,
)


def render_machine(facts: MachineFacts) -> RenderableType:
    """The machine as rich text."""
    return Group(*_head(facts), *_states(facts), *_actions(facts), *_promises(facts))


def render_differences(old: str, new: str, lines: Sequence[str]) -> RenderableType:
    """The differences of two profiles, `+` and `-` in colour."""
    styles = {"+": "green", "-": "red", "~": "yellow"}
    head = Text(f"from {old} to {new}", style="bold")
    if not lines:
        return Group(head, Text("they say the same"))
    body = (Text(line, style=styles.get(line[:1], "bold")) for line in lines)
    return Group(head, Text(""), *body)


def markdown_machine(facts: MachineFacts) -> str:
    """The machine as a Markdown page."""
    return "\n".join(_markdown(facts)).rstrip() + "\n"


def _at(text: str | Text, indent: int, style: str = "") -> RenderableType:
    shown = text if isinstance(text, Text) else Text(text, style=style)
    return _Indented(shown, Text(" " * indent))


@dataclass(frozen=True)
class _Indented:
    """Text whose first line follows a head and whose other lines are indented as far: faster than a table."""

    text: Text
    head: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        indent = self.head.cell_len
        begin = list(self.head.render(console))
        style = console.get_style(self.text.style)
        for line in self._lines(console, max(1, options.max_width - indent)):
            yield from begin  # in segments, for it is broken into lines already
            yield from line.render(console) if line.spans else (Segment(line.plain, style),)
            yield Segment.line()
            begin = [Segment(" " * indent)]

    def _lines(self, console: Console, width: int) -> Iterator[Text]:
        if self.text.cell_len <= width and "\n" not in self.text.plain:
            yield self.text
            return
        for line in self.text.wrap(console, width):
            line.rstrip()
            yield line


def reflowed(doc: str) -> str:
    """A docstring whose paragraphs are lines: the terminal breaks them where it must."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in doc.split("\n\n"))


def _heading(text: str) -> Iterator[RenderableType]:
    yield Text("")
    yield Text(text, style="bold underline")


def _head(facts: MachineFacts) -> Iterator[RenderableType]:
    title = Text(facts.name, style="bold")
    if facts.profile:
        title.append(f" ({facts.profile})")
    yield title
    others = [p for p in facts.profiles if p != facts.profile]
    if others:
        yield Text(f"other profiles: {', '.join(others)}", style="dim")
    if facts.doc:
        yield _at(reflowed(facts.doc), 2)


def _states(facts: MachineFacts) -> Iterator[RenderableType]:
    yield from _heading("state")
    yield _variables(facts.variables)
    for name in facts.entities:
        yield _at(f"entity {name}", 2)
    for budget, default, doc in facts.budgets:
        yield _at(f"budget {budget}: {default}" + (f", {doc}" if doc else ""), 2)
    for name, words in facts.fairness:
        yield _at(f"fairness {name}: {words}", 2)
    for condition in facts.initially:
        yield _at(f"initially {condition}", 2)
    if facts.final:
        yield _at(f"final where {facts.final}", 2)
    if facts.deadlock_allowed:
        yield _at(f"a run may end anywhere: {facts.deadlock_allowed}", 2)
    for name, condition in facts.constraints:
        yield _at(f"checks are bounded by {name}: {condition}", 2)
    for name, place, because in facts.assumptions:
        yield _at(f"assumes, of {place}: {name}; {because}", 2)
    for what, names, because in facts.unexercised:
        yield _at(f"{what} at the default scope: {names}; {because}", 2)
    for names, because in facts.known_violations:
        yield _at(f"known to break {names}: {because}", 2)
    for name, kind, why in facts.not_asked:
        yield _at(f"not asked of its parts: {name} ({kind}); {why}", 2)
    for enum in facts.enums:
        yield Text("")
        yield _enum(enum)


def _variables(variables: Sequence[VariableFacts]) -> RenderableType:
    table = Table("variable", "sort", "starts as", "", box=None, padding=(0, 2, 0, 2))
    for v in variables:
        kept = "" if v.kept == COMMITTED else v.kept
        note = ", ".join(filter(None, ["constant" if v.constant else "", kept, v.doc]))
        table.add_row(*map(Text, (v.name, v.sort, v.initial, note)))
    return table


def _enum(enum: EnumFacts) -> RenderableType:
    table = Table(box=None, padding=(0, 1, 0, 1))
    table.add_column(Text(enum.name), no_wrap=True)
    for head in enum.columns:
        table.add_column(Text(head), overflow="fold")
    for row in enum.rows:
        table.add_row(*map(Text, row))
    return table


def _actions(facts: MachineFacts) -> Iterator[RenderableType]:
    yield from _heading("actions")
    for action in facts.actions:
        line = Text(action.signature, style="bold")
        line.append(_circumstances(action), style="not bold dim")
        yield _at(line, 2)
        if action.doc:
            yield _at(" ".join(action.doc.split()), 6, "italic")
        yield from _clauses(action)


def _circumstances(action: ActionFacts) -> str:
    words = [f"by {action.actor}"] if action.actor else []
    words += [action.fairness] if action.fairness else []
    words += [f"spends {action.budget}"] if action.budget else []
    return "  " + ", ".join(words) if words else ""


def _clauses(action: ActionFacts) -> Iterator[RenderableType]:
    clauses = [("when", r) for r in action.requirements] + [("then", e) for e in action.effects]
    before = ""
    for word, clause in clauses:
        head = Text(" " * 6).append(f"{word if word != before else '':<5}", style="cyan")
        yield _Indented(Text(clause), head)
        before = word
    yield Text("")


def _promises(facts: MachineFacts) -> Iterator[RenderableType]:
    yield from _heading("properties")
    for prop in facts.properties:
        line = Text(prop.signature, style="bold")
        line.append(f"  {prop.kind}", style="not bold dim")
        yield _at(line, 2)
        if prop.doc:
            yield _at(" ".join(prop.doc.split()), 6, "italic")
        yield _at(prop.condition, 6)


def _markdown(facts: MachineFacts) -> Iterator[str]:
    profile = f" ({facts.profile})" if facts.profile else ""
    yield from (f"# {plain(facts.name + profile)}", "")
    if facts.doc:
        yield from (plain(reflowed(facts.doc)), "")
    rows = [(v.name, v.sort, v.initial, v.kept, v.doc) for v in facts.variables]
    yield from markdown_table(("variable", "sort", "starts as", "kept", "meaning"), rows)
    if facts.budgets:
        yield from markdown_table(("budget", "default", "meaning"), facts.budgets)
    for name, words in facts.fairness:
        yield from (f"Fairness {plain(name)}: {plain(words)}.", "")
    for condition in facts.initially:
        yield from (f"Initially {plain(condition)}.", "")
    if facts.final:
        yield from (f"Final where {plain(facts.final)}.", "")
    if facts.deadlock_allowed:
        yield from (f"A run may end anywhere: {plain(facts.deadlock_allowed)}.", "")
    for name, condition in facts.constraints:
        yield from (f"Checks are bounded by {plain(name)}: {plain(condition)}.", "")
    if facts.assumptions:
        yield from markdown_table(("assumption", "of", "why"), facts.assumptions)
    if facts.unexercised:
        yield from markdown_table(("at the default scope", "what", "why"), facts.unexercised)
    if facts.known_violations:
        yield from markdown_table(("known to break", "why"), facts.known_violations)
    if facts.not_asked:
        yield from markdown_table(("not asked of its parts", "kind", "why"), facts.not_asked)
    for enum in facts.enums:
        yield from (f"## {plain(enum.name)}", "")
        yield from markdown_table((enum.name, *enum.columns), enum.rows)
    yield from ("## Actions", "")
    for action in facts.actions:
        yield from _markdown_action(action)
    yield from ("## Properties", "")
    for prop in facts.properties:
        yield from _markdown_property(prop)


def _markdown_action(action: ActionFacts) -> Iterator[str]:
    circumstances = _circumstances(action).strip()
    yield from (f"### {plain(action.signature)}", "")
    if circumstances:
        yield from (f"_{plain(circumstances)}_", "")
    if action.doc:
        yield from (plain(" ".join(action.doc.split())), "")
    yield from (f"- when {plain(r)}" for r in action.requirements)
    yield from (f"- then {plain(e)}" for e in action.effects)
    yield ""


def _markdown_property(prop: PropertyFacts) -> Iterator[str]:
    yield from (f"### {plain(prop.signature)} ({prop.kind})", "")
    if prop.doc:
        yield from (plain(" ".join(prop.doc.split())), "")
    yield from (f"> {plain(prop.condition)}", "")


def prose(text: str) -> str:
    """A docstring is Markdown already, but for what breaks a table or reads as a tag."""
    return re.sub(r"([<>|])", r"\\\1", text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table whose cells are Markdown."""
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table in Markdown, with an empty line after it."""
    yield f"| {' | '.join(map(plain, head))} |"
    yield f"| {' | '.join('---' for _ in head)} |"
    for row in rows:
        yield f"| {' | '.join(map(plain, row))} |"
    yield ""


def plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", text)
