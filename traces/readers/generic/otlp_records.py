"""What the log records, spans and span events of OpenTelemetry (OTLP as JSON) say of a machine.

The encoding: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding. Whole numbers of 64 bits are
texts, keys are in camel case; what is absent has its default.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from stagewright.spec.text.suggestions import nearest
from stagewright.traces.readers.located_json import line_of

PREFIX = "stagewright."
# What may be said of an event; `params.x` and `observed.x` also one by one.
TEXTS = ("machine", "profile", "entity", "trace", "node", "action")
OTHERS = ("sequence", "params", "observed", "none", "end")
_EVENT_KEYS = (
    "action",
    "observed",
    "none",
    "end",
    "sequence",
)  # without one of them it is no event
_TIMES = ("timeUnixNano", "endTimeUnixNano", "observedTimeUnixNano")
_NUMBER_MAX = 1 << 53
_TIME_MAX = 1 << 62

Attributes = dict[str, object]


class EventRecord(NamedTuple):
    """An event, as far as one record has it.

    `same`: what records have in common that are equal in everything. `wrong`: why the record cannot be understood;
    then only what says whose event it is was read, as far as it can be.
    """

    line: int
    machine: str
    profile: str
    trace: str
    entity: str
    node: str
    action: str | None
    parameters: Mapping[str, object]
    observed: Mapping[str, object]
    end: bool
    sequence: int | None
    time: int | None
    same: bytes = b""
    wrong: str = ""


class WrongRecordError(Exception):
    """A record that should be an event, but cannot be understood."""


def event_records(document: Mapping[str, object], line: int | None = None) -> list[EventRecord]:
    """All events of an export request; they are on `line`, or each on its own.

    Raises:
        WrongRecordError: the document is no such request.
    """
    found: list[EventRecord] = []
    number = 0
    for resource in (*_objects(document, "resourceLogs"), *_objects(document, "resourceSpans")):
        about = _attributes(_object(resource, "resource"))
        scopes = (
            *_objects(resource, "scopeLogs"),
            *_objects(resource, "scopeSpans"),
            *_objects(resource, "instrumentationLibraryLogs"),  # before OTLP 0.19
            *_objects(resource, "instrumentationLibrarySpans"),
        )
        for scope in scopes:
            around = {**about, **_attributes(_object(scope, "scope"))}
            for number, record in enumerate(_records(scope, around), start=number + 1):  # noqa: B020
                event = _read(*record, number)
                if event is not None:
                    found.append(event if line is None else event._replace(line=line))
    return found


def _read(
    record: Mapping[str, object], around: Attributes, trace_id: str, number: int
) -> EventRecord | None:
    """The event that a record is, or what is wrong with it; None if it is of other matters."""
    try:
        event = _event_record(record, around, trace_id)
    except WrongRecordError as error:
        return _wrong(record, around, trace_id, f"record {number}: {error}")
    if event is None:
        return None
    said = json.dumps([record, around, trace_id], sort_keys=True).encode()
    return event._replace(same=hashlib.blake2b(said, digest_size=16).digest())


def _wrong(
    record: Mapping[str, object], around: Attributes, trace_id: str, reason: str
) -> EventRecord:
    """What is wrong with a record, and whose it is as far as is known."""
    said = dict(around)
    with contextlib.suppress(WrongRecordError):
        for pair in _objects(record, "attributes"):
            with contextlib.suppress(WrongRecordError):
                said[str(pair.get("key"))] = _value(pair.get("value"))
    texts = {name: str(said.get(f"{PREFIX}{name}") or "") for name in TEXTS}
    time = None
    with contextlib.suppress(WrongRecordError):
        time = next((t for name in _TIMES if (t := _whole(record.get(name), name))), None)
    trace = texts["trace"] or str(around.get("service.instance.id") or "") or trace_id
    whose = (texts["machine"], texts["profile"], trace, texts["entity"])
    nothing: Attributes = {}
    return EventRecord(
        line_of(record), *whose, "", None, nothing, nothing, False, None, time, wrong=reason
    )


def _records(
    scope: Mapping[str, object], around: Attributes
) -> Iterator[tuple[Mapping[str, object], Attributes, str]]:
    """Log records, spans and span events, each with the attributes around it and its trace's id."""
    for record in _objects(scope, "logRecords"):
        yield record, around, str(record.get("traceId", ""))
    for span in _objects(scope, "spans"):
        trace = str(span.get("traceId", ""))
        yield span, around, trace
        try:
            within = {**around, **_of_span(_attributes(span))}
        except WrongRecordError:
            within = around  # the span is reported as wrong
        for event in _objects(span, "events"):
            yield event, within, trace


def _of_span(attributes: Attributes) -> Attributes:
    """What a span says for its events too: whose they are, not what happened."""
    return {
        name: value
        for name, value in attributes.items()
        if name.removeprefix(PREFIX) in TEXTS and name != f"{PREFIX}action"
    }


def _event_record(
    record: Mapping[str, object], around: Attributes, trace_id: str
) -> EventRecord | None:
    own = _attributes(record)
    ours = {n.removeprefix(PREFIX): v for n, v in own.items() if n.startswith(PREFIX)}
    if not any(name.partition(".")[0] in _EVENT_KEYS for name in ours):
        return None
    said = {n.removeprefix(PREFIX): v for n, v in around.items() if n.startswith(PREFIX)} | ours
    _check_names(said)
    texts = {name: _text(said, name) for name in TEXTS}
    if not texts["entity"]:
        raise WrongRecordError(f"`{PREFIX}entity` is missing")
    observed = _grouped(said, "observed") | dict.fromkeys(_names(said.get("none", [])))
    time = next((t for name in _TIMES if (t := _whole(record.get(name), name))), None)
    sequence = _whole(said["sequence"], f"{PREFIX}sequence") if "sequence" in said else None
    if sequence is not None and not 0 <= sequence < _NUMBER_MAX:
        raise WrongRecordError(f"`{PREFIX}sequence` is {sequence}")
    if sequence is None and time is None:
        raise WrongRecordError(f"it has neither a time nor `{PREFIX}sequence`")
    if time is not None and not 0 < time < _TIME_MAX:
        raise WrongRecordError(f"its time is {time}")
    instance = str(around.get("service.instance.id") or "")
    return EventRecord(
        line_of(record),
        texts["machine"],
        texts["profile"],
        texts["trace"] or instance or trace_id,
        texts["entity"],
        texts["node"] or instance or str(around.get("host.name") or ""),
        texts["action"] or None,
        _grouped(said, "params"),
        observed,
        _flag(said, "end"),
        sequence,
        time,
    )


def _check_names(said: Attributes) -> None:
    known = (*TEXTS, *OTHERS)
    for name in said:
        group, dot, _ = name.partition(".")
        if name not in known and not (dot and group in ("params", "observed")):
            near = nearest(name, known)
            guess = f" (did you mean `{PREFIX}{near}`?)" if near else ""
            raise WrongRecordError(f"unknown attribute `{PREFIX}{name}`{guess}")


def _text(said: Attributes, name: str) -> str:
    value = said.get(name, "")
    if not isinstance(value, str):
        raise WrongRecordError(f"`{PREFIX}{name}` is {value!r}, not a text")
    return value


def _flag(said: Attributes, name: str) -> bool:
    value = said.get(name, False)
    if not isinstance(value, bool):
        raise WrongRecordError(f"`{PREFIX}{name}` is {value!r}, not true or false")
    return value


def _grouped(said: Attributes, group: str) -> Attributes:
    """The values of `observed.x` and of the map `observed`, by x."""
    whole = said.get(group, {})
    if not isinstance(whole, dict):
        raise WrongRecordError(f"`{PREFIX}{group}` is {whole!r}, not a map")
    single = {n.partition(".")[2]: v for n, v in said.items() if n.startswith(f"{group}.")}
    return {**cast("Attributes", whole), **single}


def _names(value: object) -> list[str]:
    names: list[object] = cast("list[object]", value) if isinstance(value, list) else [value]
    if not all(isinstance(name, str) for name in names):
        raise WrongRecordError(f"`{PREFIX}none` is {value!r}, not a list of names")
    return cast("list[str]", names)


def _attributes(carrier: Mapping[str, object]) -> Attributes:
    """The attributes of a resource, a scope or a record, by name."""
    return {
        str(pair.get("key")): _value(pair.get("value")) for pair in _objects(carrier, "attributes")
    }


def _value(any_value: object) -> object:
    """An `AnyValue` as plain JSON; None if it has none."""
    if not isinstance(any_value, dict):
        return None
    for kind, value in cast("dict[str, Any]", any_value).items():
        match kind:
            case "stringValue" | "boolValue" | "bytesValue":
                return value
            case "intValue":
                return _whole(value, "an attribute")
            case "doubleValue":
                whole = isinstance(value, float) and value.is_integer()
                return int(value) if whole else value
            case "arrayValue":
                return [_value(item) for item in _items(value, "values")]
            case "kvlistValue":
                return {
                    str(p.get("key")): _value(p.get("value")) for p in _objects(value, "values")
                }
            case _:
                pass
    return None


def _whole(value: object, name: str) -> int | None:
    """A whole number, which may be a text; None if it is absent."""
    if value is None or (isinstance(value, int) and not isinstance(value, bool)):
        return value
    digits = value.removeprefix("-") if isinstance(value, str) else ""
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        raise WrongRecordError(f"{name} is {value!r}, not a whole number")
    return int(str(value))


def _object(carrier: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = carrier.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise WrongRecordError(f"`{name}` is no object")
    return cast("Mapping[str, object]", value)


def _items(carrier: object, name: str) -> list[object]:
    value: object = (
        cast("dict[str, object]", carrier).get(name) if isinstance(carrier, dict) else None
    )
    if value is None:
        return []
    if not isinstance(value, list):
        raise WrongRecordError(f"`{name}` is no list")
    return cast("list[object]", value)


def _objects(carrier: object, name: str) -> list[Mapping[str, object]]:
    items = _items(carrier, name)
    if not all(isinstance(item, dict) for item in items):
        raise WrongRecordError(f"`{name}` has something that is no object")
    return cast("list[Mapping[str, object]]", items)
