"""A counterexample as one HTML page that needs nothing else: no network, no other file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from html import escape
from importlib.resources import files

from stagewright.checker.counterexample.because import Reason
from stagewright.checker.counterexample.mermaid import diagram
from stagewright.checker.counterexample.story import Story, StoryStep, leaves, story_of
from stagewright.checker.counterexample.timeline import legend, timeline
from stagewright.spec.definition import Definition
from stagewright.spec.scope import Scope
from stagewright.spec.text.itf import to_itf
from stagewright.spec.values import State, show
from stagewright.spec.verdict import PropertyVerdict

_SLOT = re.compile(r"\{\{([a-z-]+)\}\}")


def render_page(
    definition: Definition, verdict: PropertyVerdict, scope: Scope | None = None
) -> str:
    """The verdict's run as an HTML page with a timeline, its steps and the state after each."""
    story = story_of(definition, verdict, scope)
    script = _asset("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    itf = json.dumps(to_itf(story.definition, verdict, story.scope), indent=1, ensure_ascii=False)
    return _filled(
        _asset("page.html"),
        {
            "script-hash": f"sha256-{digest}",
            "title": escape(story.headline),
            "facts": _facts(story),
            "breach": _breach(story),
            "columns": str(len(_states(story))),
            "timeline": timeline(story, _states(story)),
            "legend": escape(legend(story, _states(story))),
            "steps": _steps(story),
            "mermaid": escape(diagram(story)),
            "itf": escape(itf),
            "run": _run(story),
            "script": script,
        },
    )


def _asset(name: str) -> str:
    return files(__package__ or __name__).joinpath(name).read_text(encoding="utf-8")


def _filled(template: str, parts: Mapping[str, str]) -> str:
    # One pass: what is put in is never looked at again, so it cannot hold a slot of its own.
    return _SLOT.sub(lambda slot: parts[slot[1]], template)


def _states(story: Story) -> tuple[State, ...]:
    """The states by column; for a lasso, the state that the loop returns to once more."""
    run = story.run
    return run.states if run.loop is None else (*run.states, run.states[run.loop])


def _facts(story: Story) -> str:
    facts = {
        "machine": story.definition.name,
        "profile": story.definition.profile,
        "scope": str(story.scope),
        "found by": story.verdict.method,
        "note": story.verdict.note,
    }
    return "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>"
        for name, text in facts.items()
        if text
    )


def _breach(story: Story) -> str:
    breach = story.breach
    instance = ", ".join(f"{name} = {value}" for name, value in breach.instance)
    text = f" for {escape(instance)}" if instance else ""
    parts = [f"<h2>{escape(breach.name)}{text}<small>{escape(breach.place)}</small></h2>"]
    if breach.promise:
        paragraphs = (" ".join(p.split()) for p in breach.promise.split("\n\n"))
        parts.append(f"<blockquote>{escape(chr(10).join(paragraphs))}</blockquote>")
    if breach.headline:
        parts.append(f"<p>{escape(breach.headline)}</p>")
    parts.append(_reasons(breach.reasons))
    if breach.caveat:
        parts.append(f"<p><strong>{escape(breach.caveat)}</strong></p>")
    return "".join(parts)


def _reasons(reasons: tuple[Reason, ...]) -> str:
    if not reasons:
        return ""
    items = (f"<li>{escape(r.text)}{_reasons(r.below)}</li>" for r in reasons)
    return f"<ul>{''.join(items)}</ul>"


def _steps(story: Story) -> str:
    first = f'<span class="number">0</span><span class="title">{escape(story.opening)}</span>'
    items = [f'<li data-state="0" tabindex="0">{first}</li>']
    for step in story.steps:
        if step.forever and step.number == (story.loop or 0) + 1:
            items.append('<li class="turn">and then for ever:</li>')
        items.append(_step(story, step))
    return "".join(items)


def _step(story: Story, step: StoryStep) -> str:
    breaks = story.loop is None and step.number == len(story.steps)
    kinds = [k for k, on in (("breaks", breaks), ("forever", step.forever)) if on]
    changes = "".join(
        f'<li class="place">{escape(c.place)}: <span class="old">{escape(c.old)}</span> → '
        f'<span class="new">{escape(c.new)}</span></li>'
        for c in step.changes
    )
    nothing = '<li class="old">changes nothing</li>'
    back = f" (back to state {story.loop})" if step.closing else ""
    return (
        f'<li data-state="{step.number}" tabindex="0" class="{" ".join(kinds)}">'
        f'<span class="number">{step.number}</span>'
        f'<span class="title"><strong>{escape(step.actor)}</strong>: '
        f"{escape(step.title)}{back}</span>"
        f'<div class="sentence">{escape(step.sentence)}</div>'
        f"<ul>{changes or nothing}</ul></li>"
    )


def _run(story: Story) -> str:
    """The states as JSON inside of a script element, where `<` must not occur."""
    shown = [{p: show(v) for p, v in leaves(state).items()} for state in _states(story)]
    places = list(shown[0])
    titles = ["State 0"]
    for step in story.steps:
        back = f", which is state {story.loop} again" if step.closing else ""
        titles.append(f"State after step {step.number}{back}")
    data = {"places": places, "states": [[s[p] for p in places] for s in shown], "titles": titles}
    return json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
