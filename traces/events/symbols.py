"""What an event says beside who and when, as a text that is equal for events that say the same.

Traces have many events and few distinct symbols: each distinct one is parsed and understood once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from stagewright.spec.trace import Event


@dataclass(frozen=True)
class Symbol:
    """An action (None: unknown) with its parameters, what was observed after it, or the end marker."""

    action: str | None
    parameters: Mapping[str, object]
    observed: Mapping[str, object]
    end: bool = False

    @property
    def text(self) -> str:
        """The canonical text: independent of the order of fields and of the members of sets."""
        fields = [self.action, _sorted(self.parameters), _sorted(self.observed), self.end]
        return json.dumps(fields, separators=(",", ":"))


def symbol_of(event: Event) -> Symbol:
    """What an event says."""
    return Symbol(event.action, event.parameters, event.observed, event.end)


def parse_symbol(text: str) -> Symbol:
    """The symbol of a canonical text."""
    action, parameters, observed, end = json.loads(text)
    return Symbol(action, parameters, observed, end)


def value_key(value: object) -> str:
    """A text that is equal for equal plain values only: 1, true and "1" stay apart."""
    return json.dumps(_canonical(value), separators=(",", ":"), sort_keys=True)


def _sorted(values: Mapping[str, object]) -> dict[str, object]:
    return {name: _canonical(values[name]) for name in sorted(values)}


def _canonical(value: object) -> object:
    if isinstance(value, list) and all(isinstance(v, str) for v in value):
        return sorted(value)
    return value
