"""Text made fit for reports that other programs read: no characters that they refuse, no endless lines."""

from __future__ import annotations

import re

# XML 1.0 has no other characters, and JSON readers refuse lone surrogates: one rule for all reports.
_UNFIT = re.compile("[^\t\n\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def readable(text: str) -> str:
    r"""The text with every control character and lone surrogate written as an escape: `\\x1b`."""
    return _UNFIT.sub(lambda match: ascii(match[0])[1:-1], text)


def shortened(text: str, most: int) -> str:
    """The text, or its beginning and how many characters more there are: at most `most` in all."""
    if len(text) <= most:
        return text
    told = f" … ({len(text):,} characters in all)"
    return text[: max(0, most - len(told))] + told
