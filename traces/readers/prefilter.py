"""Finds the few lines of a log that matter, without a look at the others one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from stagewright.traces.readers.protocol import Part, Tally
from stagewright.traces.readers.text_lines import Lines, lines_of

Record = TypeVar("Record")

_PROBE_BYTES = 1 << 20
SHAPES_MAX = 1_000  # of a part; more are not told apart by their shape


@dataclass(frozen=True)
class Watch:
    """Lines that a reader passes over and that are counted by shape: which ones, and the shape of one in a file."""

    pattern: str
    shape: Callable[[str, str], str | None]


def any_of(words: Sequence[str]) -> str:
    """A pattern that finds any of the words."""
    return "|".join(re.escape(word).replace(r"\ ", " ") for word in words)


def begins_with(path: Path, form: str, prefix: str) -> bool:
    """Whether a line in the first megabyte of a file has what a log of this form begins its lines with."""
    part = Part(0, str(path), form, 0, min(path.stat().st_size, _PROBE_BYTES))
    first = next(iter(lines_of(part)), None)
    return first is not None and bool(sorted_out(first, prefix)[1])


def records_in(
    part: Part,
    tally: Tally,
    relevant: str,
    parse: Callable[[str, int, str], Record | str | None],
    watch: Watch | None = None,
) -> list[Record]:
    """What the relevant lines of a part say, each by itself; all others count as `other`.

    `parse` gets a line, its number and its file; it gives the record, None if the line says nothing after
    all, or why it cannot be understood. Of the others those that `watch` finds are counted by shape, too.
    """
    found: list[Record] = []
    for lines in lines_of(part):
        tally.lines += len(lines)
        if lines.too_long:
            tally.refuse(lines.first, "the line is too long")
            continue
        blank, chosen = sorted_out(lines, relevant)
        tally.blank += blank
        tally.other += len(lines) - blank - len(chosen)
        if watch is not None and len(lines) > blank + len(chosen):
            _count_shapes(lines, set(chosen), watch, part.path, tally)
        for index in chosen:
            number = lines.first + index
            try:
                record = parse(lines.text(index).decode(), number, part.path)
            except UnicodeDecodeError as error:
                record = f"not UTF-8 text at byte {error.start + 1}"
            if isinstance(record, str):
                tally.refuse(number, record)
                continue
            tally.other += 1  # until it is known to be an event
            if record is not None:
                found.append(record)
    return found


def _count_shapes(lines: Lines, chosen: set[int], watch: Watch, file: str, tally: Tally) -> None:
    for index in sorted_out(lines, watch.pattern)[1]:
        if index in chosen:
            continue
        shape = watch.shape(lines.text(index).decode(errors="replace"), file)
        if shape is not None and (
            shape in tally.passed_over or len(tally.passed_over) < SHAPES_MAX
        ):
            tally.passed_over[shape] += 1


def sorted_out(lines: Lines, pattern: str) -> tuple[int, list[int]]:
    """How many lines are blank, and which ones the pattern finds something in."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute

    compute: Any = pyarrow.compute  # its functions are made when it is imported
    offsets = pa.array(lines.bounds.tolist(), pa.int32()).buffers()[1]
    texts = pa.BinaryArray.from_buffers(
        pa.binary(), len(lines), [None, offsets, pa.py_buffer(lines.data)]
    )
    blank = int(compute.sum(compute.match_substring_regex(texts, r"^\s*$")).as_py() or 0)
    relevant = compute.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    return blank, np.flatnonzero(relevant).tolist()
