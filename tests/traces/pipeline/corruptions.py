"""Random ways to spoil traces, and what a slow, obvious reader makes of the result."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from stagewright.spec.trace import Event, TraceVerdict
from stagewright.traces.readers.generic.jsonl_line import parse_line
from stagewright.traces.readers.text_lines import LINE_MAX

Rng = random.Random
Lines = list[bytes]
Corruption = Callable[[Rng, bytes], bytes]

LOG_LINE = b"INFO  2024-09-27 22:15:13,717 [shard 0: gms] raft_topology - Will set tablet x stage"
FOREIGN = (
    b"hello",
    b"<html>",
    b"{}",
    b"[]",
    b"null",
    b'{"entity":"x"}',
    b'{"v":1,"entity":"","seq":0}',
    b'{"v":2,"entity":"x","seq":0}',
    b'{"v":1,"entity":"x","seq":0,"entity":"y"}',
    b'{"v":1,"entity":"x","seq":NaN}',
    b'{"v":1,"entity":"x","seq":0,"sequence":0}',
    b'{"v":1,"entity":"x","seq":' + b"9" * 5000 + b"}",
    b'{"a":' * 20_000,
    b"\xff\xfe{\x00}\x00",
    b"\x00" * 100,
    LOG_LINE,
)
WRONG: tuple[object, ...] = (
    None,
    True,
    1,
    -1,
    1.5,
    1 << 70,
    "",
    "x",
    "\ud800",
    [],
    ["node0", 3],
    {},
    {"a": None},
)
FIELDS = ("v", "trace", "entity", "seq", "time", "node", "action", "params", "observed", "end")


def _spot(rng: Rng, data: bytes) -> int:
    return rng.randrange(len(data))


def flipped_bit(rng: Rng, data: bytes) -> bytes:
    at = _spot(rng, data)
    return data[:at] + bytes([data[at] ^ (1 << rng.randrange(8))]) + data[at + 1 :]


def truncated(rng: Rng, data: bytes) -> bytes:
    return data[: rng.randrange(1, len(data))]


def lost_bytes(rng: Rng, data: bytes) -> bytes:
    at = _spot(rng, data)
    return data[:at] + data[at + rng.choice((1, 2, 30, 300)) :]


def added_bytes(rng: Rng, data: bytes) -> bytes:
    at = _spot(rng, data)
    return data[:at] + rng.randbytes(rng.choice((1, 2, 30))) + data[at:]


def zeroed(rng: Rng, data: bytes) -> bytes:
    at, size = _spot(rng, data), rng.choice((1, 64, 512))
    return data[:at] + b"\x00" * len(data[at : at + size]) + data[at + size :]


def _of_lines(change: Callable[[Rng, Lines], None]) -> Corruption:
    def corrupt(rng: Rng, data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        change(rng, lines)
        return b"".join(lines)

    corrupt.__name__ = change.__name__
    return corrupt


def dropped_line(rng: Rng, lines: Lines) -> None:
    del lines[rng.randrange(len(lines))]


def doubled_lines(rng: Rng, lines: Lines) -> None:
    for line in rng.choices(lines, k=3):
        lines.insert(rng.randrange(len(lines)), line)


def swapped_lines(rng: Rng, lines: Lines) -> None:
    rng.shuffle(lines)


def joined_lines(rng: Rng, lines: Lines) -> None:
    at = rng.randrange(len(lines))
    lines[at] = lines[at].rstrip(b"\n")


def cut_line(rng: Rng, lines: Lines) -> None:
    at = rng.randrange(len(lines))
    lines[at] = lines[at][: rng.randrange(len(lines[at]))] + b"\n"


def foreign_line(rng: Rng, lines: Lines) -> None:
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(FOREIGN) + b"\n")


def huge_line(rng: Rng, lines: Lines) -> None:
    at = rng.randrange(len(lines))
    lines.insert(at, lines[at].rstrip(b"\n") + b" " * rng.choice((LINE_MAX, 2 * LINE_MAX)) + b"\n")


def blank_lines(rng: Rng, lines: Lines) -> None:
    for blank in (b"\n", b"\r\n", b"  \t\n"):
        lines.insert(rng.randrange(len(lines) + 1), blank)


def other_line_ends(_rng: Rng, lines: Lines) -> None:
    lines[:] = [line.rstrip(b"\n") + b"\r\n" for line in lines]


def byte_order_mark(_rng: Rng, lines: Lines) -> None:
    lines[0] = b"\xef\xbb\xbf" + lines[0]


def other_encoding(rng: Rng, lines: Lines) -> None:
    at = rng.randrange(len(lines))
    lines[at] = lines[at].decode().encode("utf-16")


def _with_field(rng: Rng, lines: Lines, name: str, value: object) -> None:
    at = rng.randrange(len(lines))
    fields = json.loads(lines[at])
    fields[name] = value
    lines[at] = json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def null_field(rng: Rng, lines: Lines) -> None:
    _with_field(rng, lines, rng.choice(FIELDS), None)


def wrong_type(rng: Rng, lines: Lines) -> None:
    _with_field(rng, lines, rng.choice(FIELDS), rng.choice(WRONG))


def wrong_value(rng: Rng, lines: Lines) -> None:
    name = rng.choice(("phase", "owner", "watchers", "seen[node0]", "strict", "colour"))
    _with_field(rng, lines, "observed", {name: rng.choice((None, True, "held", "x", 7, ["node1"]))})


def unknown_field(rng: Rng, lines: Lines) -> None:
    _with_field(rng, lines, "colour", "red")


def other_entity(rng: Rng, lines: Lines) -> None:
    _with_field(rng, lines, "entity", rng.choice(("é", "lease9\n", "a" * 5000, '"', "lease1")))


def unknown_stream(rng: Rng, lines: Lines) -> None:
    name = rng.choice(("machine", "profile", "definition"))
    _with_field(rng, lines, name, "unheard-of")


OF_BYTES: tuple[Corruption, ...] = (flipped_bit, truncated, lost_bytes, added_bytes, zeroed)
OF_LINES: tuple[Corruption, ...] = tuple(
    _of_lines(change)
    for change in (
        dropped_line, doubled_lines, swapped_lines, joined_lines, cut_line, foreign_line, huge_line,
        blank_lines, other_line_ends, byte_order_mark, other_encoding, null_field, wrong_type,
        wrong_value, unknown_field, other_entity, unknown_stream,
    )
)  # fmt: skip

Key = tuple[str, str, str, str, str]  # trace, machine, profile, definition, entity
Kind = tuple[str, str, str]  # machine, profile, definition


@dataclass
class Expected:
    """What a reader must make of some files: verdicts by entity, and lines by what they are."""

    verdicts: dict[Key, tuple[TraceVerdict, int]] = field(default_factory=dict)
    lines: int = 0
    blank: int = 0
    unparsed: int = 0
    foreign: int = 0  # events of machines that nobody knows

    def counted(self) -> Counter[TraceVerdict]:
        """How many entities have each verdict."""
        return Counter(verdict for verdict, _ in self.verdicts.values())


def expected_of(contents: Sequence[bytes], evaluator: Any, known: Set[Kind]) -> Expected:
    """What the slow reader and the slow validator make of the contents of JSON lines."""
    found, events = Expected(), dict[Key, list[Event]]()
    for content in contents:
        lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        for line in lines[:-1] if not lines[-1] else lines:
            found.lines += 1
            if len(line) > LINE_MAX:
                found.unparsed += 1
            elif not line.strip():
                found.blank += 1
            elif isinstance(parse_line(line.rstrip(b"\r\n")), str):
                found.unparsed += 1
            else:
                _add(events, json.loads(line))
    _evaluate(found, events, evaluator, known)
    return found


def expected_of_rows(
    rows: Sequence[Mapping[str, Any]], evaluator: Any, known: Set[Kind]
) -> Expected:
    """The same for rows of a table: null is what is absent from a line."""
    found, events = Expected(lines=len(rows)), dict[Key, list[Event]]()
    for row in rows:
        fields: dict[str, Any] = {"v": 1} | {
            name: value for name, value in row.items() if value is not None
        }
        try:
            for name in ("params", "observed"):
                if name in fields:
                    fields[name] = json.loads(fields[name])
        except ValueError:
            found.unparsed += 1
            continue
        if isinstance(parse_line(json.dumps(fields).encode()), str):
            found.unparsed += 1
        else:
            _add(events, fields)
    _evaluate(found, events, evaluator, known)
    return found


def _add(events: dict[Key, list[Event]], fields: Mapping[str, Any]) -> None:
    stream = [str(fields.get(name) or "") for name in ("trace", "machine", "profile", "definition")]
    key: Key = (stream[0], stream[1], stream[2], stream[3], fields["entity"])
    event = Event(
        *key,
        fields["seq"],
        action=fields.get("action"),
        parameters=fields.get("params") or {},
        observed=fields.get("observed") or {},
        end=fields.get("end") is True,
    )
    events.setdefault(key, []).append(event)


def _evaluate(
    found: Expected, events: dict[Key, list[Event]], evaluator: Any, known: Set[Kind]
) -> None:
    found.verdicts = {key: evaluator(t) for key, t in events.items() if key[1:4] in known}
    found.foreign = sum(len(trace) for key, trace in events.items() if key[1:4] not in known)
