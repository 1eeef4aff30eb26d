"""Reads traces in JSON lines, as `TraceWriter` writes them (plain, gzip or zstandard).

A line in the recorder's own layout is cut at fixed marks by compiled code: what stands before the entity
and after the node is the same for many lines, and each distinct text is parsed once, exactly. Every other
line is parsed by itself: the result is the same, only slower.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.compiled import compiled
from stagewright.traces.events.event_block import NO_TIME, Block, coded_place
from stagewright.traces.events.string_pool import Interner, Names, joined, names_of, same_bytes
from stagewright.traces.readers.generic.jsonl_line import Parsed, parse_line
from stagewright.traces.readers.protocol import Part, Tally
from stagewright.traces.readers.text_lines import LINE_MAX, Lines, line_parts, lines_of

Ints = NDArray[Any]

_ENTITY = b'"entity":"'
_SEQUENCE = b'","seq":'
_TIME = b',"time":'
_NODE = b',"node":"'
_DIGITS_MAX = 15
_TEXTS_MAX = 1 << 16  # distinct texts of one kind that are remembered

_NO_SALT = np.zeros(1, np.uint64)


def check(path: Path) -> None:
    """Any text may hold JSON lines: what is none is reported line by line."""


def parts(path: Path) -> list[tuple[int, int]]:
    """Pieces of whole lines."""
    return line_parts(path)


def read(part: Part, tally: Tally) -> Iterator[Block]:
    """The events of a part."""
    meanings = _Meanings()
    for lines in lines_of(part):
        tally.lines += len(lines)
        if lines.too_long:
            tally.refuse(lines.first, f"the line has more than {LINE_MAX:,} bytes")
            continue
        if block := _block(lines, part.number, meanings, tally):
            tally.with_events += len(block)
            tally.events += len(block)
            yield block


class _Meanings:
    """What lines say beside who and when, by the number of their head and of their tail."""

    def __init__(self) -> None:
        self._texts = Interner(), Interner()
        self._known: dict[tuple[int, int], int] = {}
        self.parsed: list[Parsed | None] = []  # None: such a line must be parsed by itself

    def number(self, heads: Names, tails: Names) -> Ints:
        """The index in `parsed` of what each line says."""
        if max(len(one) for one in self._texts) > _TEXTS_MAX:
            self.__init__()  # type: ignore[misc]
        head, tail = (_distinct(i, n) for i, n in zip(self._texts, (heads, tails), strict=True))
        pairs, which = np.unique((head.astype(np.int64) << 32) | tail, return_inverse=True)
        numbers = np.empty(len(pairs), np.int64)
        for i, pair in enumerate(pairs.tolist()):
            key = divmod(pair, 1 << 32)
            if key not in self._known:
                texts = (one.names.bytes_of(k) for one, k in zip(self._texts, key, strict=True))
                self._known[key] = len(self.parsed)
                self.parsed.append(_meaning(*texts))
            numbers[i] = self._known[key]
        return numbers[which]


def _distinct(known: Interner, texts: Names) -> Ints:
    return known.number(texts, np.zeros(len(texts), np.int32), _NO_SALT)


def _block(lines: Lines, source: int, meanings: _Meanings, tally: Tally) -> Block | None:
    """The events of some lines."""
    data = np.frombuffer(lines.data, np.uint8)
    cuts = np.empty((len(lines), 7), np.int64)
    line = np.empty(len(lines), np.int64)
    size = _cut(data, lines.bounds.astype(np.int64), _MARKS, cuts, line)
    begin, entity, after, tail, end, sequence, time = (
        np.ascontiguousarray(c) for c in cuts[:size].T
    )
    line = line[:size]
    meaning = meanings.number(Names(data, begin, entity), Names(data, tail, end))
    parsed = meanings.parsed
    good = np.array([one is not None for one in parsed], bool)[meaning]
    if not good.all():
        entity, after, line, sequence, time, meaning = (
            column[good] for column in (entity, after, line, sequence, time, meaning)
        )
    others = np.ones(len(lines), bool)
    others[line] = False
    single = [
        (index + lines.first, one)
        for index in np.flatnonzero(others).tolist()
        if (one := _single(lines, index, tally)) is not None
    ]
    said = [*(one for one in parsed if one is not None), *(one for _, one in single)]
    streams = list(dict.fromkeys(one.stream for one in said))
    symbols = list(dict.fromkeys(one.symbol for one in said))
    if not size and not single:
        return None
    stream_number = {stream: i for i, stream in enumerate(streams)}
    symbol_number = {symbol: i for i, symbol in enumerate(symbols)}

    def coded(ones: list[Parsed | None]) -> tuple[Ints, Ints]:
        pairs = [
            (-1, -1) if o is None else (stream_number[o.stream], symbol_number[o.symbol])
            for o in ones
        ]
        columns = np.array(pairs, np.int32).reshape(-1, 2).T
        return columns[0], columns[1]

    of_parsed, of_single = coded(parsed), coded([one for _, one in single])
    names = Interner()
    whose = names.number(
        joined([Names(data, entity, after), names_of(one.entity for _, one in single)]),
        np.concatenate([of_parsed[0][meaning], of_single[0]]),
        np.arange(len(streams), dtype=np.uint64),
    )
    return Block(
        tuple(streams),
        names.names,
        names.groups,
        tuple(symbols),
        whose,
        np.concatenate([sequence, np.array([one.sequence for _, one in single], np.int64)]),
        np.concatenate([of_parsed[1][meaning], of_single[1]]),
        coded_place(
            source, np.concatenate([line + lines.first, [at for at, _ in single]]).astype(np.int64)
        ),
        np.concatenate([time, np.array([one.time for _, one in single], np.int64)]),
    )


def _single(lines: Lines, index: int, tally: Tally) -> Parsed | None:
    """One line by itself; None if it is no event."""
    text = lines.text(index)
    if not text.strip():
        tally.blank += 1
        return None
    parsed = parse_line(text)
    if isinstance(parsed, str):
        tally.refuse(lines.first + index, parsed)
        return None
    return parsed


@lru_cache(maxsize=_TEXTS_MAX)
def _meaning(head: bytes, tail: bytes) -> Parsed | None:
    """What a line says that has this head and tail; None if it must be parsed by itself."""
    first, second = (
        parse_line(head + who + _SEQUENCE + number + _NODE + tail)
        for who, number in ((b"one", b"1"), (b"two", b"2"))
    )
    if isinstance(first, str) or isinstance(second, str):
        return None
    # The marks may have stood inside of something else: then this is not what was cut out.
    cut_out = (first.entity, first.sequence, second.entity, second.sequence)
    return first if cut_out == ("one", 1, "two", 2) and first.time == NO_TIME else None


_MARKS = (
    np.frombuffer(_ENTITY, np.uint8),
    np.frombuffer(_SEQUENCE, np.uint8),
    np.frombuffer(_TIME, np.uint8),
    np.frombuffer(_NODE, np.uint8),
)


@compiled
def _stands(data: Ints, at: int, end: int, mark: Ints) -> bool:
    """Whether a mark stands at a place."""
    if at + len(mark) > end:
        return False
    same = True
    for i in range(len(mark)):
        same &= data[at + i] == mark[i]
    return same


@compiled
def _quote(data: Ints, at: int, end: int) -> int:
    """Where the plain text that begins at a place ends; -1 if it is not plain."""
    while at < end:
        byte = data[at]
        if byte == 34:
            return at
        if byte == 92 or byte < 32 or byte > 126:
            return -1
        at += 1
    return -1


@compiled
def _digits(data: Ints, at: int, end: int) -> tuple[int, int]:
    """The plain decimal number that begins at a place, and where it ends; -1 if there is none."""
    value: Any = np.int64(0)  # also in plain Python, which would go on in 8 bits
    first = at
    while at < end and at - first <= _DIGITS_MAX and 48 <= data[at] <= 57:
        value = value * 10 + (data[at] - 48)
        at += 1
    width = at - first
    if width == 0 or width > _DIGITS_MAX or (width > 1 and data[first] == 48):
        return 0, -1
    return value, at


@compiled
def _cut(
    data: Ints, bounds: Ints, marks: tuple[Ints, Ints, Ints, Ints], cuts: Ints, line: Ints
) -> int:
    """Cut the lines that are laid out as the recorder does; returns how many they are.

    `cuts` gets where a line begins, its entity begins and ends, its tail begins and ends, its sequence
    number and time; `line` its index.
    """
    entity, sequence, time, node = marks
    count = 0
    head, size = 0, 0  # of the line before: the next one's is mostly the same
    for i in range(len(bounds) - 1):
        begin, end = bounds[i], bounds[i + 1]
        while end > begin and (data[end - 1] == 10 or data[end - 1] == 13):
            end -= 1
        at = begin
        if size > 0 and begin + size <= end and same_bytes(data, begin, data, head, size):
            at = begin + size
        else:
            while at < end and not (data[at] == 34 and _stands(data, at, end, entity)):
                at += 1
            at += len(entity)
        name = at
        at = _quote(data, at, end)
        if at < 0 or at == name:
            continue
        name_end = at
        if not _stands(data, at, end, sequence):
            continue
        number, at = _digits(data, at + len(sequence), end)
        if at < 0:
            continue
        when = NO_TIME
        if _stands(data, at, end, time):
            when, at = _digits(data, at + len(time), end)
            if at < 0:
                continue
        if not _stands(data, at, end, node):
            continue
        at = _quote(data, at + len(node), end)
        if at < 0:
            continue
        head, size = begin, name - begin
        one = cuts[count]
        one[0] = begin
        one[1] = name
        one[2] = name_end
        one[3] = at
        one[4] = end
        one[5] = number
        one[6] = when
        line[count] = i
        count += 1
    return count
