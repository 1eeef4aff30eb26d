"""What the versions of a machine differ in, as its page says it: in brief, with the command that says all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from stagewright.commands.facts.facts import ActionFacts, MachineFacts, PropertyFacts
from stagewright.commands.facts.of_definition import facts_of
from stagewright.commands.pages.compare import Change, changes, lines_of_changes
from stagewright.commands.pages.text import prose, table
from stagewright.spec.definition import Definition

LONGEST = 140  # characters of a condition that a reader compares by eye


def versions(name: str, definitions: Sequence[Definition]) -> Iterator[str]:
    """The section of a page on the versions of machine `name`, oldest first."""
    if len(definitions) < 2:
        return
    yield from ("## What the versions differ in", "")
    for old, new in pairwise(definitions):
        lines = brief(facts_of(old), facts_of(new)) or ["they say the same"]
        yield from (f"<details><summary>from {old.profile} to {new.profile}</summary>", "")
        yield from ("```diff", *lines, "```", "", "</details>", "")
    oldest = definitions[0].profile
    yield "Steps that are new or gone are listed by what they do, long conditions by their names. In full:"
    yield f"`stagewright show {name} --compare {oldest}`."
    yield ""
    broken = [
        (definition.profile, _codes(names), prose(why))
        for definition in definitions
        for names, why in facts_of(definition).known_violations
    ]
    if broken:
        yield from table(("version", "is known to break", "because"), broken)
    yield f"What the older ones leave open, each with a run that shows it: [{name}/]({name}/README.md)."
    yield ""


def _codes(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", "))


def brief(old: MachineFacts, new: MachineFacts) -> list[str]:
    """The differences of two versions, none longer than a line that a person reads."""
    docs = {what.name: what.doc for facts in (old, new) for what in _documented(facts)}
    return lines_of_changes(
        changes(old, new), lambda change: _lines(change, docs.get(change.name, ""))
    )


def _documented(facts: MachineFacts) -> Iterator[ActionFacts | PropertyFacts]:
    yield from facts.actions
    yield from facts.properties


def _lines(change: Change, doc: str) -> Iterator[str]:
    if change.name:
        does = " ".join(doc.split()) if change.sign != "~" else ""
        yield f"{change.sign} {change.name}{': ' if does else ''}{does}"
        if does:
            return
    space = " " * 5 if change.name else " "
    long = [line for line in (*change.gone, *change.come) if len(line) > LONGEST]
    names = list(dict.fromkeys(_name(line) for line in long))
    yield from (f"-{space}{line}" for line in change.gone if _name(line) not in names)
    yield from (f"+{space}{line}" for line in change.come if _name(line) not in names)
    for name in names:
        was, now = (any(_name(line) == name for line in x) for x in (change.gone, change.come))
        sign = "~" if was and now else "-" if was else "+"
        yield f"{sign}{space}{name}{' otherwise' if sign == '~' else ''}"
    if not change.gone and not change.come and change.sign == "~":
        yield f"~{space}the same in another order"


def _name(line: str) -> str:
    """Of a condition the name, of an effect what it assigns, without what it says."""
    for end in (": ", " becomes "):
        head, found, _ = line.partition(end)
        if found:
            return head + end.rstrip().rstrip(":")
    return line
