"""Text in lines: a formula on one line where it fits, else as an indented block.

Lists of conjuncts and disjuncts in TLA+ are delimited by their indentation: all that belongs to a
bullet must stand right of it. Blocks keep that so, for they are only ever shifted as a whole.
"""

from __future__ import annotations

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
    return tuple(line for block in blocks for line in after(f"{sign} ", block))


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


def comment(text: str) -> Block:
    r"""A text as `\*` lines, which nothing inside of it can end."""
    lines = [" ".join(line.split()) for line in text.strip().splitlines()]
    return tuple(f"\\* {line}".rstrip() for line in lines)
