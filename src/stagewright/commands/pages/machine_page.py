"""The page of a machine: what it is, its diagram, tables, steps, properties, versions and known bugs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stagewright.commands.facts.facts import MachineFacts
from stagewright.commands.facts.of_definition import facts_of
from stagewright.commands.pages.known_bugs import file_of
from stagewright.commands.pages.parts import of_parts, own, pages_of_parts
from stagewright.commands.pages.reached_diagram import reached_diagram
from stagewright.commands.pages.state_diagram import render_diagram
from stagewright.commands.pages.text import markdown_table, plain, prose, reflowed, table
from stagewright.commands.pages.versions import versions
from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.known_bugs import KnownBug, NotFound
from stagewright.spec.loading import find
from stagewright.spec.machine import Machine, profile_names
from stagewright.spec.scope import scope_of
from stagewright.spec.text.state_diagram import Diagram, has_diagram


@dataclass(frozen=True)
class Page:
    """A machine's page, and the diagram that it shows, if the machine has an enum to draw."""

    name: str
    markdown: str
    diagram: Diagram | None


def page_of(
    name: str, shipped: dict[str, str], bugs: Sequence[KnownBug], *, drawn: bool = True
) -> Page:
    """The page of a shipped machine; `bugs`: all known bugs, of which it lists its own.

    `drawn`: with its diagram, of which the edges are searched for.
    """
    machine = find(name, shipped)
    profiles = profile_names(machine)
    definitions = [define(machine, profile) for profile in profiles] or [define(machine)]
    newest = definitions[-1]
    facts = facts_of(newest, tuple(profiles))
    diagram = reached_diagram(newest) if drawn and has_diagram(newest) else None
    parts = pages_of_parts(machine, shipped)
    lines = [
        *_head(name, machine, newest, facts),
        *_drawing(name, diagram),
        *_tables(facts),
        *_steps(facts, parts),
        *_promises(facts, parts),
        *versions(name, definitions),
        *_bugs(name, [bug for bug in bugs if bug.right is machine]),
    ]
    return Page(name, "\n".join(lines).rstrip() + "\n", diagram)


def _head(
    name: str, machine: type[Machine], definition: Definition, facts: MachineFacts
) -> Iterator[str]:
    file = machine.__module__.removeprefix("stagewright.").replace(".", "/") + ".py"
    yield from (f"# {name}", "")
    yield from (prose(reflowed(facts.doc)), "")
    yield f"Definition: [`{file}`](../../{file}), class `{definition.name}`. "
    if facts.profiles:
        text = ", ".join(f"`{p}`" for p in facts.profiles)
        yield f"Profiles, oldest first: {text}. "
    yield f"Default scope: {plain(str(scope_of(definition)))}."
    yield from (
        "",
        "```console",
        f"$ stagewright check {name}",
        f"$ stagewright show {name}",
        "```",
        "",
    )


def _drawing(name: str, diagram: Diagram | None) -> Iterator[str]:
    if diagram is None:
        return
    yield from (f"## States of `{diagram.variable}`", "")
    yield from (f"![state diagram of {diagram.variable}]({name}.svg)", "")
    yield from (_basis(diagram), "")
    yield from ("<details><summary>as Mermaid</summary>", "", "```mermaid")
    yield from (render_diagram(diagram).rstrip(), "```", "", "</details>", "")


def _basis(diagram: Diagram) -> str:
    """What the edges of the picture are, in sentences."""
    parts = [diagram.basis, *diagram.notes]
    if diagram.elsewhere:
        parts.append("dashed edges are taken only at other scopes")
    if diagram.untaken:
        edges = (
            "one more edge" if len(diagram.untaken) == 1 else f"{len(diagram.untaken)} more edges"
        )
        parts.append(f"the guards alone would allow {edges}, which no run takes")
    return plain(" ".join(f"{text[0].upper()}{text[1:]}." for text in parts))


def _tables(facts: MachineFacts) -> Iterator[str]:
    for enum in facts.enums:
        if not enum.columns:
            continue  # its members are in the words of the steps
        yield from (f"## {plain(enum.name)}", "")
        if enum.doc:
            yield from (prose(reflowed(enum.doc)), "")
        yield from markdown_table((enum.name, *enum.columns), enum.rows)


def _steps(facts: MachineFacts, parts: Mapping[str, str]) -> Iterator[str]:
    yield from ("## Steps", "")
    rows = [
        (
            f"`{a.name}`",
            plain(a.actor),
            _sentence(a.doc),
            plain("; ".join(map(_name_of_requirement, a.requirements))),
        )
        for a in own(facts.actions, parts)
    ]
    yield from table(("step", "by", "what happens", "requires"), rows)
    yield from of_parts(facts.actions, parts, "Steps")


def _name_of_requirement(text: str) -> str:
    """`barrier done: barrier is done` is shown by its name; one without a name by its words."""
    return text.split(": ", 1)[0]


def _promises(facts: MachineFacts, parts: Mapping[str, str]) -> Iterator[str]:
    if facts.assumptions:
        yield from ("## Assumptions", "")
        pieces = [(plain(name), plain(place), prose(why)) for name, place, why in facts.assumptions]
        yield from table(("assumption", "of", "why it may be assumed"), pieces)
    yield from ("## Properties", "")
    rows = [(f"`{p.name}`", p.kind, _sentence(p.doc)) for p in own(facts.properties, parts)]
    yield from table(("property", "kind", "in the words of the document"), rows)
    yield from of_parts(facts.properties, parts, "Properties")
    if facts.not_asked:
        yield from ("## What parts promise, and this system does not", "")
        rest = [(f"`{name}`", plain(kind), prose(why)) for name, kind, why in facts.not_asked]
        yield from table(("property", "kind", "why"), rest)
    if facts.unexercised:
        yield from ("## What the default scope does not exercise", "")
        left = [
            (what, ", ".join(f"`{name}`" for name in names.split(", ")), prose(why))
            for what, names, why in facts.unexercised
        ]
        yield from table(("", "what", "why"), left)


def _sentence(doc: str) -> str:
    return prose(" ".join(doc.split()))


def _bugs(name: str, bugs: Sequence[KnownBug]) -> Iterator[str]:
    """Those that a database had; how many mistakes its document rules out, with their page."""
    if not bugs:
        return
    yield from ("## Known bugs that the checker finds again", "")
    historical = [bug for bug in bugs if bug.is_historical]
    if historical:
        head = ("row", "reference", "what happened", "violated property")
        rows = [(b.id, b.reference, _sentence(b.story), _codes(b.breaks)) for b in historical]
        yield from table(head, rows)
    if mistakes := len(bugs) - len(historical):
        link = f"../known-bugs/{file_of(bugs[0])}#{name}"
        yield from (
            f"Mistakes that its document rules out: [{mistakes}, with what each breaks]({link}).",
            "",
        )


def _codes(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def index_of(
    pages: Sequence[Page],
    absent: Sequence[NotFound],
    refined: Mapping[str, Sequence[str]],
    parts: Mapping[str, Sequence[str]],
) -> str:
    """The page that lists the machines with what each refines, and the bugs of the list that none of them shows."""
    lines = ["# The machines", "", "Generated from the definitions: `stagewright docs`.", ""]
    introduction = (
        "A machine *is seen as* another one if everything that it does is something that the other one does, seen from there: "
        "a refinement, which `check --all` decides ([refinement](../language/refinement.md)). It *is made of* the machines "
        "that it has as parts or extends; where the base class itself is not shipped, the shipped machine is named. "
        "[Decision 6](../adr/0006-small-machines.md) says why there are not fewer, larger ones."
    )
    lines += [introduction, ""]
    head = ("machine", "what it is", "is seen as", "is made of")
    lines += table(
        head,
        [
            (
                _link(page.name),
                _first_sentence(page.markdown),
                ", ".join(map(_link, refined.get(page.name, ()))),
                ", ".join(map(_link, parts.get(page.name, ()))),
            )
            for page in pages
        ],
    )
    lines += ["All [known bugs](../known-bugs/README.md), with what finds them.", ""]
    if absent:
        lines += ["Bugs on the list that no machine shows:", ""]
        lines += table(
            ("row", "reference", "", "why"),
            [(a.id, a.reference, a.absence.value, prose(a.reason)) for a in absent],
        )
    return "\n".join(lines).rstrip() + "\n"


def _link(name: str) -> str:
    return f"[{name}]({name}.md)"


def _first_sentence(markdown: str) -> str:
    body = markdown.split("\n")[2]
    return re.split(r"(?<=\.)\s", body, maxsplit=1)[0]
