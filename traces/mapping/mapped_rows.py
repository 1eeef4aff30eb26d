"""The rows of a mapped file, each as its fields: lines of text, of CSV and of JSON, and rows of Parquet.

Every row is counted: what cannot be a row at all is refused here, with the reason.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from stagewright.spec.errors import InputError
from stagewright.traces.mapping.mapped_lines import of_events
from stagewright.traces.mapping.plan import FILE, MESSAGE, Plan
from stagewright.traces.readers.protocol import Part, Tally
from stagewright.traces.readers.text_lines import LINE_MAX, Lines, beginning, lines_of

_BATCH_ROWS = 1 << 15
_HEADER_MAX = 1 << 20  # bytes


class Row(NamedTuple):
    """A row that may be an event. `fields` is None where the pattern of lines is not found.

    `damage`: the line is no UTF-8, so that it must not be an event.
    """

    line: int
    text: str
    fields: Mapping[str, object] | None
    damage: str = ""


def rows_of(part: Part, plan: Plan, tally: Tally) -> Iterator[Row]:
    """The rows that may be an event; the others are counted."""
    if plan.source.form == "parquet":
        yield from _parquet_rows(part, plan, tally)
        return
    read = {"text": _Text, "csv": _Csv, "jsonl": _JsonLines}[plan.source.form](part, plan)
    for lines in lines_of(part):
        tally.lines += len(lines)
        if lines.too_long:
            tally.refuse(lines.first, f"the line has more than {LINE_MAX:,} bytes")
            continue
        for index in read.candidates(lines, tally):
            number, line, damage = lines.first + index, lines.text(index), ""
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                text = line.decode(errors="replace")
                damage = f"not UTF-8 text at byte {error.start + 1}"
            fields = read.fields(text)
            if isinstance(fields, str):
                tally.refuse(number, damage or fields)
            else:
                yield Row(number, text, fields and {FILE: read.file, **fields}, damage)


class _JsonLines:
    """Every line is an object."""

    def __init__(self, part: Part, plan: Plan) -> None:
        self.file = Path(part.path).name
        self.plan = plan
        self.part = part

    def candidates(self, lines: Lines, tally: Tally) -> list[int]:
        """The lines that may be rows; the blank ones and those of other matters are counted."""
        blank, found = of_events(lines, self.plan)
        tally.blank += blank
        tally.other += len(lines) - blank - len(found)
        return found

    def fields(self, text: str) -> Mapping[str, object] | str | None:
        """The fields of a line; what is wrong with it; or None, if it is of other matters."""
        try:
            value = json.loads(text)
        except ValueError as error:
            return f"not JSON: {error}"
        except RecursionError:
            return "nested too deeply"
        return value if isinstance(value, dict) else "not a JSON object"


class _Csv(_JsonLines):
    """Every line is a row; the first one of a file has the names, unless the mapping gives them."""

    def __init__(self, part: Part, plan: Plan) -> None:
        super().__init__(part, plan)
        self._columns = plan.source.columns or _header(part.path, plan)
        self._header = part.start == 0 and not plan.source.columns

    def candidates(self, lines: Lines, tally: Tally) -> list[int]:
        found = super().candidates(lines, tally)
        if self._header and found:
            self._header = False
            tally.other += 1
            return found[1:]
        return found

    def fields(self, text: str) -> Mapping[str, object] | str | None:
        try:
            cells = _cells(text, self.plan)
        except csv.Error as error:
            return f"not CSV: {error}; a value must not go on in another line"
        if len(cells) != len(self._columns):
            return f"{len(cells)} values, where {len(self._columns)} columns have names"
        return dict(zip(self._columns, cells, strict=True))


class _Text(_JsonLines):
    """Every line has its groups, or the whole line as its message."""

    def fields(self, text: str) -> Mapping[str, object] | str | None:
        line = self.plan.source.line
        if line is None:
            return {MESSAGE: text}
        found = line.search(text)
        return None if found is None else found.groupdict()


def _cells(text: str, plan: Plan) -> list[str]:
    return next(csv.reader([text], delimiter=plan.source.delimiter, strict=True), [])


def _header(path: str, plan: Plan) -> tuple[str, ...]:
    """The names in the first line that is not blank.

    Raises:
        InputError: they cannot be read, one stands there twice, or one that the mapping reads is missing.
    """
    begin = beginning(Path(path), _HEADER_MAX).lstrip()
    line = re.split(rb"\r?\n", begin, maxsplit=1)[0]
    try:
        names = _cells(line.decode("utf-8-sig"), plan)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"the first line of {path} is no header: {error}",
            help='name the columns in the mapping: columns = ["..."]',
        ) from error
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"{path} has the column `{twice[0]}` twice",
            help='name the columns in the mapping: columns = ["..."]',
        )
    _check_columns(path, names, plan)
    return tuple(names)


def _check_columns(path: str, names: list[str], plan: Plan) -> None:
    known: dict[str, object] = dict.fromkeys([*names, FILE], "")
    for rule in plan.every_rule:
        for name in rule.needs:
            if name not in known and not any(name.startswith(f"{n}.") for n in names):
                _no_column(path, name, names, plan)


def _no_column(path: str, name: str, names: list[str], plan: Plan) -> NoReturn:
    raise InputError(
        f"{path} has no column `{name}`, which {plan.file} reads",
        help=f"its columns: {', '.join(names)}",
    )


def _parquet_rows(part: Part, plan: Plan, tally: Tally) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = Path(part.path).name
    try:
        file: Any = pq.ParquetFile(part.path)
        names = list(file.schema_arrow.names)
        _check_columns(part.path, names, plan)
        wanted = [n for n in names if any(_reads(rule.needs, n) for rule in plan.every_rule)]
        groups = list(range(part.start, part.stop))
        for batch in file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=wanted):
            first = tally.lines + 1
            tally.lines += batch.num_rows
            for index, fields in enumerate(batch.to_pylist()):
                yield Row(first + index, "", {FILE: name, **fields})
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{part.path} cannot be read as Parquet: {error}",
            help="the file is truncated or damaged: take another copy of it, or leave it out",
        ) from error


def _reads(needs: tuple[str, ...], column: str) -> bool:
    return any(name == column or name.startswith(f"{column}.") for name in needs)
