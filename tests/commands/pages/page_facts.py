"""What a page says of its machine, in whatever order and in whatever words: a definition may change these at will."""

from __future__ import annotations

import re

SENTENCES = {
    "what happens",
    "in the words of the document",
    "what happened",
    "why",
    "why it may be assumed",
}
"""The columns of its tables that are written for people."""


def facts_of(page: str) -> list[str]:
    """The rows of its tables without sentences, edges of diagrams, and names of promises: sorted."""
    facts: list[str] = []
    kept: list[int] | None = None
    for line in page.splitlines():
        if not line.startswith("|"):
            kept = None
            facts += _facts_of_text(line)
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if kept is None:
            kept = [i for i, title in enumerate(cells) if title not in SENTENCES]
        facts.append(" | ".join(_sorted(cells[i]) for i in kept))
    return sorted(facts)


def _facts_of_text(line: str) -> list[str]:
    edge = re.fullmatch(r"( *\S+ --> \S+: )(.*)", line)
    if edge:
        return [edge[1] + _sorted(edge[2])]
    if line.startswith(("#", "Edges that runs take", "    ")):
        return [line]
    return re.findall(r"`\w+`,", line)  # of lists: the promises of a part


def _sorted(cell: str) -> str:
    return ", ".join(sorted(cell.split(", ")))
