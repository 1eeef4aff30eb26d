"""JSON documents whose objects know their lines, for files that are one document."""

from __future__ import annotations

import json
import json.decoder
import json.scanner
from bisect import bisect_right
from typing import Any


class Located(dict[str, Any]):
    """An object and the line on which it begins, counted from 1."""

    line: int = 1


def line_of(value: object) -> int:
    """The line of an object; 1 for anything else."""
    return value.line if isinstance(value, Located) else 1


def load_located(text: str) -> Any:
    """What a JSON text is, with objects that know their lines.

    Raises:
        ValueError: it is no JSON; a `json.JSONDecodeError` has the line.
    """
    newlines = [i for i, character in enumerate(text) if character == "\n"]
    decoder: Any = json.JSONDecoder()

    def parse_object(at: tuple[str, int], *rest: Any) -> tuple[Located, int]:
        found, end = json.decoder.JSONObject(at, *rest)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
        located = Located(found)
        located.line = bisect_right(newlines, at[1] - 1) + 1
        return located, end

    decoder.parse_object = parse_object
    decoder.scan_once = json.scanner.py_make_scanner(decoder)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    try:
        return decoder.decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
