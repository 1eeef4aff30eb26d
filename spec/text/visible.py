"""Text from outside, made fit to be shown: what a trace or a file name holds may not steer a terminal."""

from __future__ import annotations


def visible(text: str) -> str:
    """The text with all but line ends, tabs and what can be printed written as escapes."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)


def one_line(text: str) -> str:
    """The text with all but what can be printed written as escapes: a name may not begin a line of its own."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
