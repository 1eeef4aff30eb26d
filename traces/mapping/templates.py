"""Templates of a mapping: texts with fields in braces, `{table}/{tablet}`, and where a field is found."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|[{}]")


@dataclass(frozen=True)
class Template:
    """`texts` stand before, between and after the `fields`: there is one more of them."""

    texts: tuple[str, ...]
    fields: tuple[str, ...] = ()

    def fill(self, fields: Mapping[str, object]) -> object:
        """The text; or the field itself, if there is nothing else; None if a field is absent."""
        values = [field_of(fields, name) for name in self.fields]
        if any(value is None or value == "" for value in values):
            return None
        if self.texts == ("", ""):
            return values[0]
        return self.texts[0] + "".join(
            as_text(value) + text for value, text in zip(values, self.texts[1:], strict=True)
        )

    def fill_text(self, fields: Mapping[str, object]) -> str:
        """The text; empty if a field is absent."""
        if not self.fields:
            return self.texts[0]
        value = self.fill(fields)
        return "" if value is None else as_text(value)

    def pattern(self) -> re.Pattern[str]:
        """What every text that the template can give matches as a whole."""
        return re.compile(".+".join(map(re.escape, self.texts)), re.DOTALL)


def template(text: str) -> Template:
    """The template that a text is.

    Raises:
        ValueError: a brace that belongs to no field.
    """
    texts, fields, end = [""], list[str](), 0
    for piece in _PIECE.finditer(text):
        texts[-1] += text[end : piece.start()]
        end = piece.end()
        if piece[1]:
            fields.append(piece[1])
            texts.append("")
        elif len(piece[0]) == 2:
            texts[-1] += piece[0][0]
        else:
            raise ValueError(f"the brace at column {piece.start() + 1} belongs to no field")
    texts[-1] += text[end:]
    return Template(tuple(texts), tuple(fields))


def field_of(fields: Mapping[str, object], name: str) -> object:
    """A field by its name, or by its path through objects and lists: `resource.attributes.0.key`.

    A name with dots in it is found as well as a path; None if there is nothing.
    """
    if name in fields:
        return fields[name]
    head, dot, rest = name.partition(".")
    while dot:
        inner = fields.get(head)
        if isinstance(inner, list):
            items = cast("list[object]", inner)
            inner = {str(index): item for index, item in enumerate(items)}
        if isinstance(inner, Mapping):
            return field_of(cast("Mapping[str, object]", inner), rest)
        more, dot, rest = rest.partition(".")
        head = f"{head}.{more}"
    return None


def as_text(value: object) -> str:
    """A field within a text: numbers without needless decimals, objects and lists as JSON."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case dict() | list() | tuple():
            return json.dumps(value, default=str)
        case _:
            return str(value)
