"""Sorts out the lines of a mapped file that cannot be an event, without looking at each one in Python.

The expressions of a mapping are Python's; Arrow finds them with RE2, which reads most of them alike. What it
reads otherwise, or not at all, is not sorted out here.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np

from stagewright.traces.mapping.plan import MESSAGE, Plan
from stagewright.traces.readers.text_lines import Lines

# What RE2 reads in another way than Python does: `{,3}` and `[[:alpha:]]` are other things there.
_OTHERWISE = re.compile(r"\{,|\[\[?:|\\[ZzQECpP0-9]|\(\?[#a-zA-Z]*[aLux]")
# A value that stands in JSON as it is: a number may be written otherwise.
_AS_IT_IS = re.compile(r"[A-Za-z][\w .:-]*", re.ASCII)
# A line that is an object, as far as its ends show, and in which nothing is escaped.
_OBJECT = r"^\s*\{[^\\]*\}\s*$"


def of_events(lines: Lines, plan: Plan) -> tuple[int, list[int]]:
    """How many lines are blank, and which may be an event (or must, and are to be refused)."""
    import pyarrow as pa

    offsets = pa.array(lines.bounds.tolist(), pa.int32()).buffers()[1]
    whole = pa.StringArray.from_buffers(len(lines), offsets, pa.py_buffer(lines.data))
    texts = _compute().ascii_rtrim(whole, characters="\r\n")
    blank = _found(texts.cast(pa.binary()), r"^[\s\v]*$")
    likely = ~blank
    if not plan.source.every_line and _is_plain(whole, lines.data):
        strict = [pattern.pattern for pattern in plan.source.strict]
        if all(map(_is_alike, strict)):
            may = _by_form(texts, plan)
            for pattern in strict:
                may |= _found(texts, pattern)
            likely &= may
    return int(blank.sum()), np.flatnonzero(likely).tolist()


def _by_form(texts: Any, plan: Plan) -> Any:
    """Which lines may be an event, as far as can be seen here."""
    everything = np.ones(len(texts), bool)
    if plan.source.form == "jsonl":
        words = _words(plan)
        if words is None:
            return everything
        return ~_found(texts, _OBJECT) | _found(texts, "|".join(map(re.escape, words)))
    patterns = _message_patterns(plan) if plan.source.form == "text" else None
    if patterns is None:
        return everything
    message = texts
    if plan.source.line is not None:
        taken = _compute().extract_regex(texts, plan.source.line.pattern)
        message = _compute().struct_field(taken, [MESSAGE])
    found = ~everything
    for pattern in patterns:
        found |= _found(message, pattern)
    return found


def _words(plan: Plan) -> list[str] | None:
    """Words of which one stands in every line that is an event; None if there are none such."""
    words: list[str] = []
    for rule in plan.every_rule:
        own = [
            values for _, values in rule.where if all(map(_AS_IT_IS.fullmatch, values)) and values
        ]
        if not own:
            return None
        words += sorted(own[0])
    return words


def _message_patterns(plan: Plan) -> list[str] | None:
    """Expressions of which one is found in the message of every line that is an event."""
    patterns: list[str] = []
    for rule in plan.every_rule:
        own = [pattern.pattern for name, pattern in rule.match if name == MESSAGE]
        if not own:
            return None
        patterns.append(own[0])
    line = plan.source.line
    if line is not None and not (
        MESSAGE in line.groupindex and _is_alike(line.pattern, taken=True)
    ):
        return None
    return patterns if all(map(_is_alike, patterns)) else None


def _found(texts: Any, pattern: str) -> Any:
    flags = _compute().match_substring_regex(texts, pattern)
    return flags.fill_null(False).to_numpy(zero_copy_only=False)


def _is_plain(texts: Any, data: bytes) -> bool:
    """Whether the lines are UTF-8, and without the one character that only Python takes for white space."""
    import pyarrow as pa

    if b"\v" in data:
        return False
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


@lru_cache(maxsize=1024)
def _is_alike(pattern: str, *, taken: bool = False) -> bool:
    """Whether RE2 takes an expression, and reads it as Python does; with `taken`, also its groups."""
    import pyarrow as pa

    if _OTHERWISE.search(pattern):
        return False
    try:
        _compute().match_substring_regex(pa.array([""]), pattern)
        if taken:
            _compute().extract_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid:
        return False
    return True


def _compute() -> Any:
    import pyarrow.compute

    return pyarrow.compute  # its functions are made when it is imported
