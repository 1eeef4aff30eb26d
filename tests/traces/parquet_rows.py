"""Events as the rows of a trace in Parquet."""

from collections.abc import Sequence
from typing import Any

from stagewright.spec.trace import Event
from stagewright.traces.events.symbols import value_key

Row = dict[str, Any]


def rows_of(events: Sequence[Event]) -> list[Row]:
    """One row an event, by column."""
    return [
        {
            "trace": e.trace,
            "machine": e.machine,
            "definition": e.definition,
            "entity": e.entity,
            "seq": e.sequence,
            "node": e.node,
            "action": e.action,
            "params": value_key(dict(e.parameters)),
            "observed": value_key(dict(e.observed)),
            "end": e.end,
        }
        for e in events
    ]
