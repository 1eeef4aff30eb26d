"""How events and values are written: `take(node0)`, `none or node1`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stagewright.spec.trace import observation
from stagewright.spec.values import State
from stagewright.traces.events.symbols import Symbol

LISTED_MAX = 12  # values or actions of one kind that are listed


def label(symbol: Symbol, order: Sequence[str] = ()) -> str:
    """An event in a few words; `order` has the names of the action's parameters, if they are known."""
    if symbol.end:
        return "the end marker"
    if symbol.action is None:
        seen = ", ".join(f"{n} = {text(v)}" for n, v in symbol.observed.items())
        return f"an observation of {seen or 'no variable'}"
    names = [n for n in order if n in symbol.parameters]
    names += [n for n in symbol.parameters if n not in order]
    return call(symbol.action, (symbol.parameters[n] for n in names))


def call(action: str, values: Iterable[object]) -> str:
    """An action with its parameters, as plain values."""
    phrase = ", ".join(text(v) for v in values)
    return f"{action}({phrase})" if phrase else action


def text(value: object) -> str:
    """A plain value as a person reads it."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case dict():
            return "{" + ", ".join(f"{name}: {text(inner)}" for name, inner in value.items()) + "}"
        case list():
            return "{" + ", ".join(map(str, value)) + "}"
        case _:
            return str(value)


def alternatives(values: Iterable[object]) -> str:
    """All values that are possible, each once."""
    distinct = list(dict.fromkeys(text(v) for v in values))
    more = len(distinct) - LISTED_MAX
    return " or ".join(distinct[:LISTED_MAX]) + (f" or {more} others" if more > 0 else "")


def summary(possible: Sequence[State]) -> tuple[tuple[str, str], ...]:
    """The possible values of each leaf."""
    seen = [observation(state) for state in possible]
    names = list(seen[0]) if seen else []
    return tuple((name, alternatives(leaves[name] for leaves in seen)) for name in names)


def changes(
    before: Iterable[tuple[str, str]], after: Iterable[tuple[str, str]]
) -> tuple[tuple[str, str, str], ...]:
    """The leaves whose possible values differ: name, old, new."""
    old = dict(before)
    return tuple((n, old[n], v) for n, v in after if n in old and old[n] != v)
