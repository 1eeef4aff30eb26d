"""A counterexample as a Mermaid sequence diagram, which GitHub and most wikis draw."""

from __future__ import annotations

import re
from collections.abc import Iterator
from textwrap import wrap

from stagewright.checker.counterexample.story import Story, StoryStep, story_of
from stagewright.spec.definition import Definition
from stagewright.spec.scope import Scope
from stagewright.spec.verdict import PropertyVerdict

_NOTE_WIDTH = 48  # characters: Mermaid does not break the lines of a note itself
_RED = "rgba(220, 38, 38, 0.12)"

# What Mermaid would read as syntax, a comment, an entity, HTML or mathematics.
_SPECIAL = re.compile(r'[#;"<>%$`&\\]')
# It can close a block wherever it stands.
_RESERVED = re.compile(r"\bend\b", re.IGNORECASE)


def render_mermaid(
    definition: Definition, verdict: PropertyVerdict, scope: Scope | None = None
) -> str:
    """The verdict's run as a `sequenceDiagram`, a lane for each actor and entity involved."""
    return diagram(story_of(definition, verdict, scope))


def diagram(story: Story) -> str:
    """The story as a `sequenceDiagram`."""
    lanes = story.lanes or (story.definition.name,)
    ids = {lane: f"p{i}" for i, lane in enumerate(lanes)}
    lines = ["sequenceDiagram"]
    lines += [f"    participant {ids[lane]} as {escape(lane)}" for lane in lanes]
    lines += [f"    {line}" for line in _body(story, lanes, ids)]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    """Text that Mermaid takes as plain text, on one line."""
    flat = " ".join(text.split())
    flat = _SPECIAL.sub(lambda m: f"#{ord(m[0])};", flat)
    return _RESERVED.sub(lambda m: f"#{ord(m[0][0])};{m[0][1:]}", flat)


def _body(story: Story, lanes: tuple[str, ...], ids: dict[str, str]) -> Iterator[str]:
    breaking = len(story.steps) - 1 if story.loop is None else -1
    looping = False
    for index, step in enumerate(story.steps):
        if step.forever and not looping:
            looping = True
            yield "loop for ever"
        if index == breaking:
            yield f"rect {_RED}"
        yield from _step(step, lanes, ids)
    if looping:
        yield "end"
    if breaking < 0:
        yield f"rect {_RED}"
    yield _over(lanes, lanes, ids, _breach_lines(story))
    yield "end"


def _step(step: StoryStep, lanes: tuple[str, ...], ids: dict[str, str]) -> Iterator[str]:
    actor = ids[step.actor]
    others = [ids[lane] for lane in step.lanes[1:]] or [actor]
    label = escape(f"{step.number}. {step.title}")
    yield f"{actor}->>{others[0]}: {label}"
    for other in others[1:]:
        yield f"{actor}->>{other}: {step.number}."
    if step.changes:
        yield _over(step.lanes, lanes, ids, [str(change) for change in step.changes])


def _over(
    involved: tuple[str, ...], lanes: tuple[str, ...], ids: dict[str, str], texts: list[str]
) -> str:
    order = sorted(involved, key=lanes.index)
    over = ids[order[0]] if len(order) == 1 else f"{ids[order[0]]},{ids[order[-1]]}"
    lines = [line for text in texts for line in wrap(text, _NOTE_WIDTH) or [""]]
    return f"Note over {over}: {'<br/>'.join(map(escape, lines))}"


def _breach_lines(story: Story) -> list[str]:
    breach = story.breach
    mark = "?" if breach.caveat else "✗"
    instance = ", ".join(f"{name} = {value}" for name, value in breach.instance)
    name = f"{mark} {breach.name}" + (f" for {instance}" if instance else "")
    reasons = [text for reason in breach.reasons for _, text in reason.lines()]
    return [name, *([breach.headline] if breach.headline else []), *reasons]
