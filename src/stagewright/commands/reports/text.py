"""Text made fit for reports that other programs read: no characters that they refuse, no endless lines."""

from __future__ import annotations

from stagewright.spec.text.visible import visible


def readable(text: str) -> str:
    """The text as a terminal may show it.

    XML 1.0 has no control characters, JSON readers refuse lone surrogates, and what turns the direction of
    writing hides what is there: one rule for all reports.
    """
    return visible(text)


def shortened(text: str, most: int) -> str:
    """The text, or its beginning and how many characters more there are: at most `most` in all."""
    if len(text) <= most:
        return text
    phrase = f" … ({len(text):,} characters in all)"
    return text[: max(0, most - len(phrase))] + phrase
