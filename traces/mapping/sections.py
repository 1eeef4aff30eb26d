"""Typed access to the tables of a mapping file; what is wrong is reported with the file, the line and the key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable
from typing import NoReturn, cast

from stagewright.spec.errors import InputError
from stagewright.spec.text.suggestions import did_you_mean
from stagewright.traces.mapping.places import KeyPath, line_of, lines_of_keys, named
from stagewright.traces.mapping.templates import Template, template

_SHOWN_MAX = 30  # names that an error lists


class Section:
    """One table, and where it stands."""

    def __init__(
        self, values: dict[str, object], path: KeyPath, file: str, lines: dict[KeyPath, int]
    ) -> None:
        self.values = values
        self._path = path
        self._file = file
        self._lines = lines

    def fail(self, key: str, problem: str, help: str = "", *more: str) -> NoReturn:
        """Raise the error that a key (or a key within it) is wrong."""
        path = (*self._path, key, *more) if key else self._path
        line = line_of(self._lines, path)
        place = f"{self._file}:{line}" if line else self._file
        name = f": `{named(path)}`" if path else ""
        raise InputError(f"{place}{name} {problem}" if path else f"{place}: {problem}", help=help)

    def only(self, known: Collection[str], of_all: Collection[str] = ()) -> None:
        """Refuse every key that is none of these; those in `of_all` belong to the top of the file."""
        for key in self.values:
            if key in of_all and key not in known:
                self.fail(key, "stands in a table", "move it up, before the first [table]")
            if key not in known:
                self.fail(key, "is no key of a mapping", one_of(key, known))

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def text(self, key: str, default: str = "") -> str:
        """A text."""
        value = self.values.get(key, default)
        if isinstance(value, str):
            return value
        whole = ".".join([key, *(value if isinstance(value, dict) else ())][:2])
        help = f'write a name with dots in quotes: "{whole}" = …' if isinstance(value, dict) else ""
        return self.fail(key, f"is {value!r}, not a text", help)

    def choice(self, key: str, choices: Collection[str], default: str = "") -> str:
        """One of some words."""
        value = self.text(key, default)
        if value not in choices:
            problem = f"is `{value}`" if value else "is missing"
            self.fail(key, problem, one_of(value, choices))
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value = self.values.get(key, default)
        return (
            value
            if isinstance(value, bool)
            else self.fail(key, f"is {value!r}", "write true or false")
        )

    def number(self, key: str, default: int) -> int:
        """A whole number."""
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            self.fail(key, f"is {value!r}", "write a whole number")
        return value

    def texts(self, key: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """A list of texts; a text is a list of one."""
        value = self.values.get(key, default)
        items: Iterable[object] = (
            (value,)
            if isinstance(value, str)
            else cast("Iterable[object]", value if isinstance(value, list | tuple) else (None,))
        )
        found = tuple(items)
        if not all(isinstance(item, str) for item in found):
            self.fail(key, f"is {value!r}", 'write texts in a list: ["one", "two"]')
        return cast("tuple[str, ...]", found)

    def section(self, key: str, help: str = "") -> Section:
        """A table; empty if there is none."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            self.fail(key, f"is {value!r}, not a table", help)
        return Section(
            cast("dict[str, object]", value), (*self._path, key), self._file, self._lines
        )

    def sections(self, key: str) -> list[Section]:
        """An array of tables."""
        value = self.values.get(key, [])
        items = cast("list[object]", value if isinstance(value, list) else [None])
        if not all(isinstance(item, dict) for item in items):
            self.fail(key, f"is {value!r}", f"write each as a table of its own: [[{key}]]")
        tables = cast("list[dict[str, object]]", items)
        return [
            Section(table, (*self._path, key, index), self._file, self._lines)
            for index, table in enumerate(tables)
        ]

    def over(self, defaults: Section, keys: Collection[str]) -> Section:
        """This table with some keys of another where it has none of its own."""
        given = {k: v for k, v in defaults.values.items() if k in keys}
        return _Over(self, {**given, **self.values}, defaults)

    def template(self, key: str) -> Template | None:
        """A text with fields in braces; None if there is none."""
        return self.as_template(self.text(key), key) if key in self else None

    def as_template(self, text: str, key: str, *more: str) -> Template:
        """The template of a text that stands at a key."""
        try:
            return template(text)
        except ValueError as error:
            return self.fail(
                key, f"is no template: {error}", "write {field}, and {{ for a brace", *more
            )

    def pattern(self, text: object, key: str, *more: str) -> re.Pattern[str]:
        """The regular expression that stands at a key."""
        if not isinstance(text, str):
            self.fail(key, f"is {text!r}", "write a regular expression in single quotes", *more)
        try:
            return re.compile(text, re.ASCII)
        except re.error as error:
            return self.fail(key, f"is no regular expression: {error}", "see Python's `re`", *more)


class _Over(Section):
    """A table over the defaults of another: an error in one of these names its own place."""

    def __init__(self, own: Section, values: dict[str, object], defaults: Section) -> None:
        super().__init__(values, own._path, own._file, own._lines)
        self._own = own
        self._defaults = defaults

    def fail(self, key: str, problem: str, help: str = "", *more: str) -> NoReturn:
        if key and key not in self._own and key in self._defaults:
            self._defaults.fail(key, problem, help, *more)
        super().fail(key, problem, help, *more)

    def section(self, key: str, help: str = "") -> Section:
        source = self._own if key in self._own else self._defaults
        return source.section(key, help)


def read_toml(file: str, text: str) -> Section:
    """The mapping file's top table.

    Raises:
        InputError: the text is no TOML.
    """
    try:
        return Section(tomllib.loads(text), (), file, lines_of_keys(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{file} is not TOML: {error}", help=_help(text, error)) from error


def _help(text: str, error: tomllib.TOMLDecodeError) -> str:
    if "declare" in str(error) and re.search(r"(?m)^\s*\[\s*event\s*\]", text):
        return "every event is a table of its own, in two brackets: [[event]]"
    return "regular expressions stand in single quotes: '(?P<name>\\w+)'"


def one_of(wrong: str, known: Iterable[str]) -> str:
    """The mend of a wrong name: the nearest right one, and all of them."""
    names = list(known)
    guess = did_you_mean(wrong, names)
    listed = ", ".join(names[:_SHOWN_MAX]) + ", …" * (len(names) > _SHOWN_MAX)
    return f"{guess}known: {listed}" if names else "it has none"
