"""Which events of the mapping a row of a mapped file is, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stagewright.spec.errors import InputError
from stagewright.spec.trace import Event
from stagewright.traces.mapping.mapped_rows import Row
from stagewright.traces.mapping.plan import ABSENT, Plan, Rule
from stagewright.traces.mapping.templates import as_text, field_of
from stagewright.traces.readers.protocol import Part

_SEQUENCE_MAX = 1 << 53
_SHORT = 120  # characters of a line that a reason shows


class RowEvent(NamedTuple):
    """An event in a row: which rule it follows, and what that rule reads of it."""

    line: int
    rule: int
    entity: str
    trace: str
    node: str
    time: int | None
    sequence: int | None
    says: tuple[object, ...]  # the values of the rule's `says`
    plan: int = 0  # which of the mappings has the rule


class Meant(NamedTuple):
    """What an event says beside who and when."""

    action: str | None = None
    parameters: Mapping[str, object] = {}
    observed: Mapping[str, object] = {}
    end: bool = False


END = Meant(end=True)


def plan_of(part: Part) -> Plan:
    """The plan that a part is read by.

    Raises:
        InputError: there is none.
    """
    if not isinstance(part.mapping, Plan):
        raise InputError(
            f"how to read {part.path} is not said", help="say it with --mapping FILE.toml"
        )
    return part.mapping


def events_in(row: Row, plan: Plan) -> list[RowEvent] | str:
    """The events that a row is, of each machine in the order of the mapping; a reason if it cannot be understood."""
    found: list[RowEvent] = []
    fits = False
    for machine, one in enumerate(plan.every):
        fitted = False
        for number, rule in enumerate(one.rules):
            if row.fields is None or (fitted and not rule.also):
                continue
            fields = rule.fields_of(row.fields)
            if fields is None:
                continue
            if row.damage:
                return row.damage
            fitted = fitted or not rule.also
            fits = True
            for own in (fields,) if rule.each is None else rule.each.fields_of(fields):
                event = _by_rule(row.line, (machine, number), rule, own, one)
                if isinstance(event, str):
                    return event
                found.append(event)
    source = plan.source
    if not fits and (source.every_line or any(p.search(row.text) for p in source.strict)):
        return row.damage or f"it is no event of the mapping: {row.text[:_SHORT]}"
    return found


def _by_rule(
    line: int, place: tuple[int, int], rule: Rule, fields: Mapping[str, object], plan: Plan
) -> RowEvent | str:
    machine, number = place
    which = f"event {number + 1}" if machine == 0 else f"event {number + 1} of {plan.file}"
    entity = rule.entity.fill_text(fields)
    if not entity:
        return f"{which}: the entity is empty"
    time = None
    if rule.time is not None:
        value = rule.time.fill(fields)
        time = rule.time_format.read(value)
        if value is not None and time is None:
            return f"{which}: the time {as_text(value)!r} is not `{rule.time_format.pattern}`"
        if time is None and plan.by_time:
            return f"{which}: there is no time"
    sequence = None
    if rule.sequence is not None:
        text = rule.sequence.fill_text(fields)
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) < 17):
            return f"{which}: the sequence number is {text!r}"
        sequence = int(text) - rule.first
        if not 0 <= sequence < _SEQUENCE_MAX:
            return f"{which}: the sequence number {text} is below the first, {rule.first}"
    says = tuple(_frozen(field_of(fields, name)) for name in rule.says)
    trace, node = rule.trace.fill_text(fields), rule.node.fill_text(fields)
    return RowEvent(line, number, entity, trace, node, time, sequence, says, machine)


def _frozen(value: object) -> object:
    """A field as something that can be compared and hashed."""
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return value if isinstance(value, bool | int | float | str | None) else as_text(value)


class Meanings:
    """What rows mean: worked out once for all that say the same."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._known: dict[tuple[int, str], Meant] = {}

    def meant(self, number: int, says: tuple[object, ...]) -> Meant:
        """What a row means that fits the rule of a number."""
        key = number, repr(says)  # tells 1 from True
        if key not in self._known:
            self._known[key] = _meaning(self._plan, self._plan.rules[number], says)
        return self._known[key]

    def events(self, row: RowEvent, meant: Meant, sequence: int) -> list[Event]:
        """The event in a row, and the end marker after it, where its rule has one."""
        ends = self._plan.rules[row.rule].end
        if not ends:
            return [self._event(row, meant, sequence)]
        if meant.action is None and not meant.observed:
            return [self._event(row, END, sequence)]
        return [self._event(row, meant, sequence), self._event(row, END, sequence + 1)]

    def _event(self, row: RowEvent, meant: Meant, sequence: int) -> Event:
        return Event(
            trace=row.trace,
            machine=self._plan.machine,
            profile=self._plan.profile,
            definition="",
            entity=row.entity,
            sequence=sequence,
            node=row.node,
            action=meant.action,
            parameters=meant.parameters,
            observed=meant.observed,
            end=meant.end,
            time=row.time,
            line=row.line,
        )


def _meaning(plan: Plan, rule: Rule, says: tuple[object, ...]) -> Meant:
    fields = dict(zip(rule.says, says, strict=True))
    action: str | None = None
    if rule.action is not None:
        value = rule.action.value(fields, None)
        action = None if value is ABSENT or value is None else as_text(value)
    kinds = plan.parameters.get(action or "", {})
    parameters = {
        name: value
        for name, meaning in rule.parameters
        if name in kinds and (value := meaning.value(fields, kinds[name])) is not ABSENT
    }
    observed: dict[str, object] = {}
    for template, meaning in rule.observed:
        leaf = template.fill_text(fields)
        value = meaning.value(fields, plan.leaves.get(leaf))
        if leaf and value is not ABSENT:
            observed[leaf] = value
    return Meant(action, parameters, observed)
