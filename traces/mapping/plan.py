"""A mapping as data: what `load` makes of a mapping file, and what the reader of mapped files follows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property

from stagewright.traces.events.observability import Recording
from stagewright.traces.mapping.kinds import Kind
from stagewright.traces.mapping.templates import Template, as_text, field_of
from stagewright.traces.mapping.times import TimeFormat

MESSAGE = "message"  # the field of a text's line that events are recognised by
FILE = "file"  # the field that every row has: the name of its file
NOTHING = Template(("",))
_ISO = TimeFormat()
_STRICT = Recording(end_marked=False)


class Absent(Enum):
    """No value at all, which is not the same as the value none."""

    ABSENT = auto()


ABSENT = Absent.ABSENT


@dataclass(frozen=True)
class Source:
    """What a row is: a line of text, of CSV or of JSON, or a row of Parquet.

    `line` takes every line of a text apart; `strict` are patterns of lines that must be an event, and with
    `every_line` each line must.
    """

    form: str
    files: tuple[str, ...]
    every_line: bool = False
    strict: tuple[re.Pattern[str], ...] = ()
    line: re.Pattern[str] | None = None
    delimiter: str = ","
    columns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Meaning:
    """How a value is found: a `constant`, or what `values` makes of a template's text."""

    template: Template | None = None
    constant: object = None
    values: Mapping[str, object] = field(default_factory=dict[str, object])
    absent: object = ABSENT
    separator: str = ""

    def value(self, fields: Mapping[str, object], kind: Kind | None) -> object:
        """The plain value; what has none in this machine is given as it stands."""
        if self.template is None:
            return self.constant
        found = self.template.fill(fields)
        if found is None:
            return self.absent
        if kind is None or not kind.many:
            return self._one(found, kind)
        if isinstance(found, str):
            items = found.split(self.separator) if self.separator else [found]
            found = [item.strip() for item in items if item.strip()]
        return (
            [self._one(item, kind) for item in found] if isinstance(found, list | tuple) else found
        )

    def _one(self, found: object, kind: Kind | None) -> object:
        text = as_text(found)
        if text in self.values:
            return self.values[text]
        return found if kind is None else kind.convert(found)


@dataclass(frozen=True)
class Each:
    """One event for each part of a text, or for each item of a list; a part is the field `name`."""

    name: str
    items: Template
    separator: str = ""

    def fields_of(self, fields: Mapping[str, object]) -> list[Mapping[str, object]]:
        """The fields of each event; none where there is nothing to take apart."""
        found = self.items.fill(fields)
        if isinstance(found, str):
            parts = found.split(self.separator) if self.separator else [found]
            found = [part.strip() for part in parts if part.strip()]
        if found is None:
            return []
        items = found if isinstance(found, list | tuple) else [found]
        return [{**fields, self.name: item} for item in items]


@dataclass(frozen=True)
class Rule:
    """One kind of row that is an event.

    `match`: fields in which a regular expression is found, whose named groups are fields too. `where`: fields
    with one of some values. `members`: fields that hold a real name of a member of the named entity sort.
    `also`: a row that is another event is this one, too.
    """

    entity: Template
    match: tuple[tuple[str, re.Pattern[str]], ...] = ()
    where: tuple[tuple[str, frozenset[str]], ...] = ()
    trace: Template = NOTHING
    node: Template = NOTHING
    time: Template | None = None
    time_format: TimeFormat = _ISO
    sequence: Template | None = None
    first: int = 0
    action: Meaning | None = None
    parameters: tuple[tuple[str, Meaning], ...] = ()
    observed: tuple[tuple[Template, Meaning], ...] = ()
    members: tuple[tuple[str, str], ...] = ()
    end: bool = False
    also: bool = False
    each: Each | None = None

    @property
    def meanings(self) -> list[Meaning]:
        """Of the action, the parameters and the observed values."""
        every = [self.action, *(m for _, m in self.parameters), *(m for _, m in self.observed)]
        return [one for one in every if one is not None]

    @cached_property
    def _words(self) -> Mapping[str, frozenset[str]]:
        found: dict[str, frozenset[str]] = {}
        for one in self.meanings:
            if one.template is not None and one.template.texts == ("", ""):
                (name,) = one.template.fields
                found[name] = found.get(name, frozenset()) | one.values.keys()
        return found

    def words_of(self, name: str) -> frozenset[str]:
        """The texts of a field that `values` gives a meaning: they are no names of members."""
        return self._words.get(name, frozenset())

    @cached_property
    def says(self) -> tuple[str, ...]:
        """The fields on which the action, the parameters and the observed values depend."""
        templates = [m.template for m in self.meanings if m.template is not None]
        templates += [name for name, _ in self.observed]
        return tuple(dict.fromkeys(name for t in templates for name in t.fields))

    @property
    def needs(self) -> tuple[str, ...]:
        """Every field that the rule reads, except groups of its own."""
        templates = [self.entity, self.trace, self.node, self.time, self.sequence]
        names = [name for t in templates if t is not None for name in t.fields]
        names += self.says
        if self.each is not None:
            part = self.each.name
            names = [n for n in names if n != part and not n.startswith(f"{part}.")]
            names += self.each.items.fields
        names += [*(n for n, _ in self.match), *(n for n, _ in self.where)]
        groups = {group for _, pattern in self.match for group in pattern.groupindex}
        return tuple(name for name in dict.fromkeys(names) if name not in groups)

    def fields_of(self, row: Mapping[str, object]) -> Mapping[str, object] | None:
        """The row's fields with the groups of the expressions; None if the rule is of other rows."""
        for name, wanted in self.where:
            value = field_of(row, name)
            if value is None or as_text(value) not in wanted:
                return None
        fields: dict[str, object] = dict(row) if self.match else {}
        for name, pattern in self.match:
            value = field_of(fields, name)
            found = None if value is None else pattern.search(as_text(value))
            if found is None:
                return None
            fields.update(found.groupdict())
        return fields if self.match else row


@dataclass(frozen=True)
class Plan:
    """A mapping that was checked against the definition of its machine."""

    file: str
    machine: str
    profile: str
    source: Source
    rules: tuple[Rule, ...]
    by_time: bool = False  # the order is that of time alone, not that of lines
    recording: Recording = _STRICT
    first_is_step: bool = False  # an entity's first row, so that nothing says how it began
    leaves: Mapping[str, Kind] = field(default_factory=dict[str, Kind])
    parameters: Mapping[str, Mapping[str, Kind]] = field(
        default_factory=dict[str, Mapping[str, Kind]]
    )
    # by the stem of a member's name
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    beside: tuple[Plan, ...] = ()  # what the same rows are of other machines

    @property
    def every(self) -> tuple[Plan, ...]:
        """This plan and those beside it: one for each machine."""
        return (self, *self.beside)

    @property
    def every_rule(self) -> tuple[Rule, ...]:
        """What rows can be, of whatever machine."""
        return tuple(rule for plan in self.every for rule in plan.rules)

    @property
    def numbered(self) -> bool:
        """Whether rows have a number that orders those of an entity."""
        return self.rules[0].sequence is not None

    @property
    def alone(self) -> bool:
        """Whether each row is an event by itself, whatever the others say."""
        acting = {rule.action is not None for rule in self.rules}
        begins = self.first_is_step or len(acting) == 1
        several = bool(self.beside) or any(rule.also or rule.each for rule in self.rules)
        named = any(rule.members for rule in self.rules)
        return self.numbered and begins and not named and not several

    @property
    def reads_names(self) -> bool:
        """Whether the name of a row's file says something of its event."""
        return any(FILE in rule.needs for rule in self.every_rule)

    @property
    def begins_before(self) -> bool:
        """Of rows that are `alone`: whether an entity begins with an event before its first row."""
        return self.first_is_step or self.rules[0].action is not None
