"""Reads traces in JSON lines, as `TraceWriter` writes them (plain, gzip or zstandard).

A line in the recorder's own layout is cut at fixed marks by array operations: what stands before the
entity and after the node is the same for many lines, and each distinct text is parsed once, exactly. Every
other line is parsed by itself: the result is the same, only slower.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stagewright.traces.blocks import NO_TIME, Block, EntityKey, Stream, coded_place
from stagewright.traces.readers.jsonl_line import Parsed, parse_line
from stagewright.traces.readers.lines import LINE_MAX, Lines, line_parts, lines_of
from stagewright.traces.readers.parts import Part, Tally
from stagewright.traces.replay.names import names_of

Ints = NDArray[Any]

_ENTITY = b'"entity":"'
_SEQUENCE = b'","seq":'
_NODE = b',"node":"'
_DIGITS_MAX = 15
_NOT_PLAIN = re.compile(rb"[\\\x00-\x1f]")


def check(path: Path) -> None:
    """Any text may hold JSON lines: what is none is reported line by line."""


def parts(path: Path) -> list[tuple[int, int]]:
    """Pieces of whole lines."""
    return line_parts(path)


def read(part: Part, tally: Tally) -> Iterator[Block]:
    """The events of a part."""
    for lines in lines_of(part):
        tally.lines += len(lines)
        if lines.too_long:
            tally.refuse(lines.first, f"the line has more than {LINE_MAX:,} bytes")
            continue
        rows = _Rows(lines, part.number)
        rest = rows.cut()
        for index in rest.tolist():
            rows.parse(index, tally)
        if block := rows.block():
            tally.told += len(block)
            tally.events += len(block)
            yield block


class _Rows:
    """Collects the events of some lines as columns of indices."""

    def __init__(self, lines: Lines, source: int) -> None:
        self._lines = lines
        self._source = source
        self._keys: dict[EntityKey, int] = {}
        self._symbols: dict[str, int] = {}
        self._columns: list[
            tuple[Ints, Ints, Ints, Ints, Ints]
        ] = []  # entity, sequence, symbol, line, time
        self._single: list[tuple[int, int, int, int, int]] = []

    def parse(self, index: int, tally: Tally) -> None:
        """Take one line by itself."""
        text = self._lines.text(index)
        number = self._lines.first + index
        if not text.strip():
            tally.blank += 1
            return
        parsed = parse_line(text)
        if isinstance(parsed, str):
            tally.refuse(number, parsed)
            return
        key = self._key(parsed.stream, parsed.entity)
        symbol = self._symbol(parsed.symbol)
        self._single.append((key, parsed.sequence, symbol, number, parsed.time))

    def cut(self) -> Ints:
        """Take all lines in the recorder's layout; returns the indices of the others."""
        import pyarrow as pa
        import pyarrow.compute as pc

        marks = _marks(self._lines, pa, pc)
        if not len(marks.line):
            return np.arange(len(self._lines))
        bounds = np.stack(
            [marks.begin, marks.entity, marks.sequence, marks.node, marks.tail, marks.end]
        )
        offsets = pa.array(np.append(bounds.T.ravel(), marks.end[-1]).astype(np.int32))
        size = len(marks.line)
        pieces = pa.BinaryArray.from_buffers(
            pa.binary(), 6 * size, [None, offsets.buffers()[1], pa.py_buffer(self._lines.data)]
        )
        heads, head = _distinct(pieces, 0, size, pa)
        entities, entity = _distinct(pieces, 1, size, pa)
        nodes, node = _distinct(pieces, 3, size, pa)
        tails, tail = _distinct(pieces, 4, size, pa)
        pairs, pair = np.unique(head.astype(np.int64) * len(tails) + tail, return_inverse=True)
        meanings = [_meaning(heads[p // len(tails)], tails[p % len(tails)]) for p in pairs]
        names = [_plain_text(e) for e in entities]
        good = np.array([m is not None for m in meanings], bool)[pair]
        good &= np.array([bool(name) for name in names], bool)[entity]
        good &= np.array([_plain_text(n) is not None for n in nodes], bool)[node]
        self._add(meanings, pair[good], names, entity[good], marks.number[good], marks.line[good])
        others = np.ones(len(self._lines), bool)
        others[marks.line[good]] = False
        return np.flatnonzero(others)

    def _add(
        self,
        meanings: list[Parsed | None],
        pair: Ints,
        names: list[str | None],
        entity: Ints,
        sequence: Ints,
        line: Ints,
    ) -> None:
        streams = {m.stream: i for i, m in enumerate(meanings) if m is not None}
        order = list(streams)
        stream_of = np.array(
            [-1 if m is None else order.index(m.stream) for m in meanings], np.int64
        )
        symbol_of = np.array([-1 if m is None else self._symbol(m.symbol) for m in meanings])
        who, which = np.unique(stream_of[pair] * len(names) + entity, return_inverse=True)
        keys = np.array(
            [self._key(order[w // len(names)], str(names[w % len(names)])) for w in who.tolist()],
            np.int64,
        )
        if len(line):
            no_time = np.full(len(line), NO_TIME)
            self._columns.append(
                (keys[which], sequence, symbol_of[pair], line + self._lines.first, no_time)
            )

    def block(self) -> Block | None:
        """All events taken so far."""
        if self._single:
            singles = np.array(self._single, np.int64)
            self._columns.append(tuple(singles.T))
        if not self._columns:
            return None
        entity, sequence, symbol, line, time = (
            np.concatenate(c) for c in zip(*self._columns, strict=True)
        )
        streams = {key.stream: 0 for key in self._keys}
        number = {stream: i for i, stream in enumerate(streams)}
        return Block(
            tuple(streams),
            names_of(key.entity for key in self._keys),
            np.array([number[key.stream] for key in self._keys], np.int32),
            tuple(self._symbols),
            entity.astype(np.int32),
            sequence,
            symbol.astype(np.int32),
            coded_place(self._source, line),
            time,
        )

    def _key(self, stream: Stream, entity: str) -> int:
        return self._keys.setdefault(EntityKey(stream, entity), len(self._keys))

    def _symbol(self, text: str) -> int:
        return self._symbols.setdefault(text, len(self._symbols))


class _Marks:
    """Where the lines in the recorder's layout are to be cut: places in the data, by line."""

    def __init__(self, line: Ints, begin: Ints, end: Ints) -> None:
        self.line, self.begin, self.end = line, begin, end
        self.entity = self.sequence = self.node = self.tail = self.number = begin

    def keep(self, good: Ints) -> None:
        """Forget the lines that are laid out otherwise."""
        for name, column in vars(self).items():
            setattr(self, name, column[good])


def _marks(lines: Lines, pa: Any, pc: Any) -> _Marks:
    bytes_ = np.frombuffer(lines.data + bytes(32), np.uint8)  # so that looking ahead stays inside
    offsets = pa.array(lines.bounds.astype(np.int32)).buffers()[1]
    texts = pa.BinaryArray.from_buffers(
        pa.binary(), len(lines), [None, offsets, pa.py_buffer(lines.data)]
    )
    found = pc.find_substring(texts, _ENTITY).to_numpy()
    marks = _Marks(np.arange(len(lines)), lines.bounds[:-1], lines.bounds[1:])
    marks.entity = marks.begin + found + len(_ENTITY)
    marks.keep(found >= 0)
    quotes = np.append(np.flatnonzero(bytes_ == ord('"')), len(bytes_) - 1)
    marks.sequence = quotes[np.searchsorted(quotes, marks.entity)]
    marks.keep(_stands(bytes_, marks.sequence, _SEQUENCE))
    digits = marks.sequence + len(_SEQUENCE)
    marks.number, width = _numbers(bytes_, digits)
    marks.node = digits + width
    leading_zero = (bytes_[digits] == ord("0")) & (width > 1)
    laid_out = _stands(bytes_, marks.node, _NODE)
    marks.node = marks.node + len(_NODE)
    marks.keep((width > 0) & (width <= _DIGITS_MAX) & ~leading_zero & laid_out)
    marks.tail = quotes[np.searchsorted(quotes, marks.node)]
    marks.keep(marks.tail < marks.end)
    return marks


def _stands(bytes_: Ints, at: Ints, mark: bytes) -> Ints:
    """Whether the mark stands at each of these places."""
    at = np.minimum(at, len(bytes_) - len(mark))
    stands = np.ones(len(at), bool)
    for i, byte in enumerate(mark):
        stands &= bytes_[at + i] == byte
    return stands


def _numbers(bytes_: Ints, at: Ints) -> tuple[Ints, Ints]:
    """The decimal number that begins at each of these places, and how many digits it has."""
    value, width = np.zeros(len(at), np.int64), np.zeros(len(at), np.int64)
    going = np.ones(len(at), bool)
    for i in range(_DIGITS_MAX + 1):
        digit = bytes_[np.minimum(at + i, len(bytes_) - 1)].astype(np.int64) - ord("0")
        going &= (digit >= 0) & (digit <= 9)
        if not going.any():
            break
        value = np.where(going, value * 10 + digit, value)
        width += going
    return value, width


def _distinct(pieces: Any, first: int, size: int, pa: Any) -> tuple[list[bytes], Ints]:
    """The distinct texts of every sixth piece, and which of them each line has."""
    coded = pieces.take(pa.array(np.arange(first, 6 * size, 6))).dictionary_encode()
    texts: list[bytes] = coded.dictionary.to_pylist()
    return texts, coded.indices.to_numpy()


def _meaning(head: bytes, tail: bytes) -> Parsed | None:
    """What a line says that has this head and tail; None if it must be parsed by itself."""
    tail = tail.rstrip(b"\r\n")
    first, second = (
        parse_line(head + who + _SEQUENCE + number + _NODE + tail)
        for who, number in ((b"one", b"1"), (b"two", b"2"))
    )
    if isinstance(first, str) or isinstance(second, str):
        return None
    # The marks may have stood inside of something else: then this is not what was cut out.
    cut_out = (first.entity, first.sequence, second.entity, second.sequence)
    return first if cut_out == ("one", 1, "two", 2) else None


def _plain_text(text: bytes) -> str | None:
    """A JSON text without escapes; None if it has some, or is not valid."""
    if _NOT_PLAIN.search(text):
        return None
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None
