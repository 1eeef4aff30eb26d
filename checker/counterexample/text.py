"""A counterexample for a terminal: numbered steps, only what changed, last the broken promise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from stagewright.checker.counterexample.breach import Breach
from stagewright.checker.counterexample.story import Story, StoryStep, story_of
from stagewright.spec.definition import Definition
from stagewright.spec.scope import Scope
from stagewright.spec.verdict import PropertyVerdict

_NUMBER_WIDTH = 3
_INDENT = _NUMBER_WIDTH + 2


def render_text(
    definition: Definition, verdict: PropertyVerdict, scope: Scope | None = None
) -> RenderableType:
    """The verdict's run as rich text; plain characters only where the console is no terminal."""
    story = story_of(definition, verdict, scope)
    return Group(*_title(story), *_start(story), *_steps(story), *_breach(story.breach))


@dataclass(frozen=True)
class _Listed:
    """Texts with commas between them; a line is broken only after a comma."""

    texts: Sequence[str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        line = ""
        for number, text in enumerate(self.texts, start=1):
            piece = text + ("," if number < len(self.texts) else "")
            if line and len(line) + 1 + len(piece) > options.max_width:
                yield Text(line, style="dim")
                line = piece
            else:
                line = f"{line} {piece}" if line else piece
        yield Text(line, style="dim")


def _at(text: RenderableType, indent: int) -> RenderableType:
    return Padding(text, (0, 0, 0, indent), expand=False)


def _title(story: Story) -> Iterator[RenderableType]:
    yield Text(story.headline, style="bold")
    yield Text(f"scope: {story.scope}", style="dim")
    yield Text("")


def _start(story: Story) -> Iterator[RenderableType]:
    words = Text("0".rjust(_NUMBER_WIDTH), style="dim")
    words.append("  " + story.opening, style="default")
    yield words
    yield _at(_Listed([f"{place} = {value}" for place, value in story.start]), _INDENT + 2)


def _steps(story: Story) -> Iterator[RenderableType]:
    looping = False
    for step in story.steps:
        if step.forever and not looping:
            looping = True
            yield _at(Text("and then for ever:", style="bold magenta"), 1)
        yield from _step(step)
    if looping:
        back = f"(back to state {story.loop})"
        yield _at(Text(back, style="magenta"), _INDENT)


def _step(step: StoryStep) -> Iterator[RenderableType]:
    line = Text()
    line.append(str(step.number).rjust(_NUMBER_WIDTH), style="dim")
    line.append(f"  {step.actor}", style="bold cyan")
    line.append(f": {step.title}")
    yield line
    if step.sentence:
        yield _at(Text(step.sentence, style="dim italic"), _INDENT + 2)
    for change in step.changes:
        words = Text(f"{change.place}: ")
        words.append(change.old, style="dim")
        words.append(" → ")
        words.append(change.new, style="bold green")
        yield _at(words, _INDENT + 4)
    if not step.changes:
        yield _at(Text("changes nothing", style="dim"), _INDENT + 4)


def _breach(breach: Breach) -> Iterator[RenderableType]:
    yield Text("")
    mark, style = ("? " if breach.caveat else "✗ "), "bold red"
    if breach.shows:
        mark, style = "✓ ", "bold green"
    line = Text(mark, style=style)
    line.append(breach.name, style=style)
    if breach.instance:
        line.append("  for " + ", ".join(f"{name} = {value}" for name, value in breach.instance))
    if breach.place:
        line.append(f"  {breach.place}", style="dim")
    yield line
    if breach.promise:
        promise = Text(" ".join(breach.promise.split()), style="italic")
        yield _at(promise, 2)
    if breach.headline:
        yield _at(Text(breach.headline), 2)
    for reason in breach.reasons:
        for depth, text in reason.lines():
            yield _at(Text(text, style="" if depth else "bold"), 4 + 2 * depth)
    if breach.caveat:
        yield _at(Text(breach.caveat, style="yellow"), 2)
