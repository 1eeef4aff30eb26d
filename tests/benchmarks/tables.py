"""Tables for a terminal and for a Markdown page, from the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A title, the columns' heads, the rows; the first column is text, the others are figures."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        assert all(len(row) == len(self.heads) for row in self.rows), "a row has a cell a head"

    def text(self) -> str:
        """For a terminal: columns aligned by blanks."""
        widths = [max(map(len, column)) for column in zip(self.heads, *self.rows, strict=True)]
        lines = [self.title, _aligned(self.heads, widths)]
        lines += [_aligned(row, widths) for row in self.rows]
        return "\n".join([*lines, *([self.note] if self.note else [])])

    def markdown(self) -> str:
        """To paste into a page."""
        lines = [f"**{self.title}**", "", _piped(self.heads)]
        lines.append(_piped(["---", *["---:"] * (len(self.heads) - 1)]))
        lines += [_piped(row) for row in self.rows]
        return "\n".join([*lines, *(["", self.note] if self.note else [])])


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = cells[0].ljust(widths[0])
    others = (c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))
    return "  ".join([first, *others]).rstrip()


def _piped(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def ratio(value: float | None) -> str:
    """Three figures and a sign for times, or a dash where there is nothing to compare."""
    if value is None:
        return "\N{EN DASH}"
    figures = f"{value:.0f}" if value >= 100 else f"{value:.3g}"
    return f"{figures}\N{MULTIPLICATION SIGN}"


def whole(value: float) -> str:
    """A count, with its thousands set apart."""
    return f"{value:,.0f}"
