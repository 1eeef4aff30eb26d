"""Text in lines: a formula on one line where it fits, else as an indented block.

Lists of conjuncts and disjuncts in TLA+ are delimited by their indentation: all that belongs to a
bullet must stand right of it. Blocks keep that so, for they are only ever shifted as a whole.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

Block = tuple[str, ...]

WIDTH = 96  # columns, where a formula can be broken


def indented(block: Iterable[str], by: int) -> Block:
    """The block, shifted to the right."""
    return tuple(f"{' ' * by}{line}" if line else "" for line in block)


def after(prefix: str, block: Sequence[str]) -> Block:
    """The block right of a prefix on its first line."""
    first, *rest = block
    return (f"{prefix}{first}", *indented(rest, len(prefix)))


def bullets(sign: str, blocks: Iterable[Sequence[str]]) -> Block:
    r"""A list of conjuncts (`/\`) or disjuncts (`\/`)."""
    listed = list(blocks)
    if len(listed) == 1 and sign == "\\/":
        return tuple(listed[0])
    return tuple(line for block in listed for line in after(f"{sign} ", block))


def parenthesised(block: Sequence[str]) -> Block:
    """The block in parentheses."""
    *rest, last = after("(", block)
    return (*rest, f"{last})")


def followed(block: Sequence[str], suffix: str) -> Block:
    """The block with a suffix on its last line."""
    *rest, last = block
    return (*rest, f"{last}{suffix}")


def hanging(prefix: str, block: Sequence[str], width: int) -> Block:
    """The prefix and the block on one line if they fit, else the block below."""
    if len(block) == 1 and len(prefix) + 1 + len(block[0]) <= width:
        return (f"{prefix} {block[0]}",)
    return (prefix, *indented(block, 2))


def filled(left: str, items: Sequence[str], right: str, width: int) -> Block:
    """Items with commas between, as many on a line as fit, below each other right of `left`."""
    texts = [*(f"{item}," for item in items[:-1]), f"{items[-1]}{right}"]
    lines = [left]
    for number, text in enumerate(texts):
        if number and len(lines[-1]) + 1 + len(text) > width:
            lines.append(" " * len(left))
            lines[-1] += text
        else:
            lines[-1] += f" {text}" if number else text
    return tuple(lines)


def folded(text: str, width: int) -> Block:
    """A set or value in nested brackets, broken at its arrows and commas where it is too long."""
    start = text.find("[")
    if len(text) <= width or start < 0 or not text.endswith("]"):
        return (text,)
    head, inner = text[: start + 1], text[start + 1 : -1]
    arrow = _arrow(inner)
    if arrow:
        below = folded(inner[arrow + 1 :], width - 2)
        return (head + inner[:arrow], *followed(indented(below, 2), "]"))
    most, last = _items(inner)[:-1], _items(inner)[-1]
    lines = [line for item in most for line in followed(folded(item, width - len(head)), ",")]
    lines += folded(last, width - len(head))
    return followed(after(head, lines), "]")


def _arrow(inner: str) -> int:
    """Where the first item's value begins, if the value is in brackets and the only item."""
    found = re.match(r"[^\[\],]*->(?= \[)", inner)
    return found.end() if found and len(_items(inner)) == 1 else 0


def _items(inner: str) -> list[str]:
    """The parts between the commas that stand in no brackets of their own."""
    depth, items = 0, [""]
    for letter in inner:
        depth += (letter in "[{(") - (letter in "]})")
        if letter == "," and not depth:
            items.append("")
        else:
            items[-1] += letter
    return [item.strip() for item in items]


def remark(text: str) -> str:
    r"""A text as a `\*` remark that ends its line."""
    return f"\\* {' '.join(_printable(text).split())}".rstrip()


def _printable(text: str) -> str:
    """The text without what might end a line, or what a lexer or an encoder stumbles over."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def comment(text: str) -> Block:
    r"""A text as `\*` lines, which nothing inside of it can end."""
    lines = [
        part
        for line in text.strip().splitlines()
        for part in textwrap.wrap(_printable(line), WIDTH + 4, break_on_hyphens=False) or [""]
    ]
    return tuple(f"\\* {line}".rstrip() for line in lines)
