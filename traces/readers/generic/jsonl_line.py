"""One line of JSON, read exactly: the event that it is, or why it is none."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from stagewright.spec.text.suggestions import nearest
from stagewright.spec.trace import TRACE_VERSION
from stagewright.traces.events.event_block import NO_TIME, Stream
from stagewright.traces.events.symbols import Symbol

SEQUENCE_MAX = 1 << 53  # what every JSON reader can hold
TIME_MAX = 1 << 62
TEXTS = ("trace", "machine", "profile", "definition", "node")  # empty if absent
FIELDS = ("v", *TEXTS, "entity", "seq", "time", "action", "params", "observed", "end")
REQUIRED = ("entity", "seq")

_ABSENT = object()
_KINDS: dict[str, tuple[Any, str]] = {
    "v": (int, "an integer"),
    **dict.fromkeys((*TEXTS, "entity"), (str, "a text")),
    "seq": (int, "an integer"),
    "time": (int, "an integer or null"),
    "action": (str, "a text or null"),
    **dict.fromkeys(("params", "observed"), (dict, "an object")),
    "end": (bool, "true or false"),
}


class Parsed(NamedTuple):
    """An event, as far as replaying it needs."""

    stream: Stream
    entity: str
    sequence: int
    symbol: str
    time: int = NO_TIME


def parse_line(line: bytes) -> Parsed | str:
    """The event that a line is, or what is wrong with it."""
    try:
        fields = json_of(line.decode())
    except UnicodeDecodeError as error:
        return f"not UTF-8 text at byte {error.start + 1}"
    except json.JSONDecodeError as error:
        return f"not JSON: {error.msg} at column {error.colno}"
    except RecursionError:
        return "nested too deeply"
    except ValueError as error:
        return f"not JSON: {error}"
    if not isinstance(fields, dict):
        return "not a JSON object"
    return event_of(fields)


def json_of(text: str) -> Any:
    """The value that a text is, without what JSON leaves open: no field twice, no NaN.

    Raises:
        ValueError, RecursionError: it is none.
    """
    return json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)


def event_of(fields: dict[str, object]) -> Parsed | str:
    """The event that the fields make, or what is wrong with them; null is as good as absent."""
    if (wrong := _unknown_field(fields)) is not None:
        return wrong
    fields = {n: v for n, v in fields.items() if v is not None or n in REQUIRED}
    if (wrong := _wrong_field(fields)) is not None:
        return wrong
    stream = Stream(*(str(fields.get(name, "")) for name in TEXTS[:4]))
    entity, sequence = fields["entity"], fields["seq"]
    parameters, observed = fields.get("params", {}), fields.get("observed", {})
    action = fields.get("action")
    assert isinstance(entity, str)
    assert isinstance(sequence, int)
    assert isinstance(parameters, dict)
    assert isinstance(observed, dict)
    assert action is None or isinstance(action, str)
    symbol = Symbol(action, parameters, observed, end=fields.get("end") is True)
    time = fields.get("time")
    return Parsed(stream, entity, sequence, symbol.text, time if isinstance(time, int) else NO_TIME)


def _unknown_field(fields: dict[str, object]) -> str | None:
    for name in fields:
        if name not in FIELDS:
            near = nearest(name, FIELDS)
            return f"unknown field `{name}`" + (f" (did you mean `{near}`?)" if near else "")
    return None


def _wrong_field(fields: dict[str, object]) -> str | None:
    for name in REQUIRED:
        if name not in fields:
            return f"field `{name}` is missing"
    for name, (kinds, wanted) in _KINDS.items():
        # True and False are integers to Python, but not here.
        value = fields.get(name, _ABSENT)
        misplaced = isinstance(value, bool) and kinds is not bool
        if value is not _ABSENT and (misplaced or not isinstance(value, kinds)):
            return f"field `{name}` is {_kind(value)}, not {wanted}"
    if fields.get("v", TRACE_VERSION) != TRACE_VERSION:
        return f"trace version {fields['v']}; this program reads version {TRACE_VERSION}"
    if not fields["entity"]:
        return "field `entity` is empty"
    sequence, time = fields["seq"], fields.get("time")
    assert isinstance(sequence, int)
    if isinstance(time, int) and not -TIME_MAX < time < TIME_MAX:
        return f"field `time` is {time}, not within 2**62"
    return (
        None
        if 0 <= sequence < SEQUENCE_MAX
        else f"field `seq` is {sequence}, not in 0 .. 2**53 - 1"
    )


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"field `{twice}` appears twice")
    return fields


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON value")
