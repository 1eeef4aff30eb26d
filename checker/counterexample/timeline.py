"""The timeline of a counterexample's page: a lane for each actor and entity, a bar for each enum.

Column i of the grid is state i and the step that led to it; column 0 is the first state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum
from html import escape
from itertools import groupby

from stagewright.checker.counterexample.story import Story, StoryStep, leaves
from stagewright.spec.values import State, Value, show

_MOST_BARS = 16  # enum places drawn; those that change come first


def timeline(story: Story, states: Sequence[State]) -> str:
    """The grid's cells, row by row."""
    cells = [*_numbers(story, states)]
    for index, lane in enumerate(story.lanes):
        cells += _lane(story, lane, index)
    cells.append('<div class="gap"></div>')
    for place in _drawn(states):
        cells += _bar(place, [leaves(state)[place] for state in states])
    return "".join(cells)


def legend(story: Story, states: Sequence[State]) -> str:
    """What the drawing shows, and what it leaves out."""
    text = "A filled dot acts; a line leads to whom it concerns; a bar is a value over time."
    if story.loop is not None:
        text += " The underlined steps repeat for ever."
    left_out = len(_enum_places(states)) - len(_drawn(states))
    if left_out:
        text += f" Not drawn: {left_out} more values of enums, which are in the state panel."
    return text


def _numbers(story: Story, states: Sequence[State]) -> Iterator[str]:
    yield '<div class="label">step</div>'
    for column in range(len(states)):
        forever = story.loop is not None and column > story.loop
        kind = ' class="forever"' if forever else ""
        title = story.steps[column - 1].label if column else story.opening
        yield (
            f'<button type="button" data-state="{column}"{kind} title="{escape(title)}">'
            f"{column}</button>"
        )


def _lane(story: Story, lane: str, index: int) -> Iterator[str]:
    yield f'<div class="label" title="{escape(lane)}">{escape(lane)}</div>'
    yield '<div class="lane" data-column="0"></div>'
    for step in story.steps:
        involved = sorted(story.lanes.index(name) for name in step.lanes)
        kinds = ["lane"]
        if involved[0] < index <= involved[-1]:
            kinds.append("up")
        if involved[0] <= index < involved[-1]:
            kinds.append("down")
        dot = _dot(story, step, lane) if lane in step.lanes else ""
        yield f'<div class="{" ".join(kinds)}" data-column="{step.number}">{dot}</div>'


def _dot(story: Story, step: StoryStep, lane: str) -> str:
    breaks = story.loop is None and step.number == len(story.steps)
    kinds = ["dot", *(["acts"] if lane == step.actor else []), *(["breaks"] if breaks else [])]
    return f'<span class="{" ".join(kinds)}" title="{escape(step.label)}"></span>'


def _enum_places(states: Sequence[State]) -> list[str]:
    """The places that hold an enum member in some state, those that change first."""
    values: dict[str, list[Value]] = {}
    for state in states:
        for place, value in leaves(state).items():
            values.setdefault(place, []).append(value)
    enums = [p for p, vs in values.items() if any(isinstance(v, Enum) for v in vs)]
    return sorted(enums, key=lambda p: len(set(values[p])) == 1)


def _drawn(states: Sequence[State]) -> list[str]:
    return _enum_places(states)[:_MOST_BARS]


def _bar(place: str, values: Sequence[Value]) -> Iterator[str]:
    yield f'<div class="label place" title="{escape(place)}">{escape(place)}</div>'
    for value, group in groupby(values):
        span = len(list(group))
        text = escape(show(value))
        if isinstance(value, Enum):
            look = f'class="bar" style="grid-column: span {span}; --hue: {_hue(value)}"'
        else:
            look = f'class="bar none" style="grid-column: span {span}"'
        yield f'<div {look} title="{text}">{text}</div>'


def _hue(member: Enum) -> int:
    """Members in order go once around the colour circle, so neighbours differ."""
    members = list(type(member))
    return round(210 + 360 * members.index(member) / len(members)) % 360
