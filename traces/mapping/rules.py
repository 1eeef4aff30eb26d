"""Reads one `[[event]]` of a mapping: which rows it is of, and what they mean in the machine's terms."""

from __future__ import annotations

import re
from typing import cast

from stagewright.traces.mapping.kinds import Kind
from stagewright.traces.mapping.plan import ABSENT, MESSAGE, NOTHING, Each, Meaning, Plan, Rule
from stagewright.traces.mapping.sections import Section, one_of
from stagewright.traces.mapping.templates import Template, as_text
from stagewright.traces.mapping.times import ISO, UNITS, TimeFormat, check_pattern, zone_named

# What may stand at the top of the file, for all events.
DEFAULTS = ("entity", "trace", "node", "time", "sequence", "members", "where")
KEYS = (*DEFAULTS, "match", "action", "parameters", "observed", "end", "also", "each")
_MEANING = ("from", "values", "absent", "separator")
_EXAMPLE = '"{field}", or {from = "{field}", values = {ON = true}}'


def read_rule(section: Section, plan: Plan) -> Rule:
    """The rule that a table describes, checked against the plan's machine."""
    section.only(KEYS)
    entity = section.template("entity")
    if entity is None:
        section.fail("", "has no `entity`", 'say whose event it is: entity = "{table}/{tablet}"')
    action = _action(section, plan)
    time, time_format = _time(section)
    sequence, first = _sequence(section)
    rule = Rule(
        entity,
        _match(section),
        _where(section),
        section.template("trace") or NOTHING,
        section.template("node") or NOTHING,
        time,
        time_format,
        sequence,
        first,
        action,
        _parameters(section, plan, action),
        _observed(section, plan),
        _members(section, plan),
        section.flag("end", default=False),
        section.flag("also", default=False),
        _each(section),
    )
    if rule.action is None and not rule.observed and not rule.end:
        section.fail("", "says nothing", "give it an `action`, what is `observed`, or `end = true`")
    return rule


def _match(section: Section) -> tuple[tuple[str, re.Pattern[str]], ...]:
    given = section.values.get("match", {})
    if isinstance(given, str):
        return ((MESSAGE, section.pattern(given, "match")),)
    fields = section.section("match", "write a regular expression, or one for each field")
    return tuple((n, fields.pattern(p, n)) for n, p in fields.values.items())


def _where(section: Section) -> tuple[tuple[str, frozenset[str]], ...]:
    fields = section.section("where", 'write the fields and their values: {kind = "stage"}')
    return tuple((name, frozenset(fields.texts(name))) for name in fields.values)


def _time(section: Section) -> tuple[Template | None, TimeFormat]:
    given = section.values.get("time")
    if not isinstance(given, dict):
        return section.template("time"), TimeFormat()
    table = section.section("time")
    table.only(("from", "format", "zone"))
    pattern = table.text("format", ISO)
    if pattern not in (ISO, *UNITS) and "%" not in pattern:
        table.fail(
            "format",
            f"is `{pattern}`",
            f"write {ISO}, {', '.join(UNITS)}, or a pattern such as '%Y-%m-%d %H:%M:%S.%f'",
        )
    if "%" in pattern:
        try:
            check_pattern(pattern)
        except ValueError as error:
            table.fail(
                "format", f"cannot be read by: {error}", "see the directives of Python's `strptime`"
            )
    zone = table.text("zone", "UTC")
    try:
        zone_named(zone)
    except ValueError as error:
        table.fail("zone", f"is `{zone}`: {error}", 'write "UTC", "+02:00" or "Europe/Berlin"')
    return _from(table), TimeFormat(pattern, zone)


def _sequence(section: Section) -> tuple[Template | None, int]:
    if not isinstance(section.values.get("sequence"), dict):
        return section.template("sequence"), 0
    table = section.section("sequence")
    table.only(("from", "first"))
    return _from(table), table.number("first", 0)


def _each(section: Section) -> Each | None:
    if "each" not in section:
        return None
    table = section.section("each", 'write each = {as = "key", from = "{keys}", separator = ","}')
    table.only(("as", "from", "separator"))
    name = table.text("as")
    if not name.isidentifier():
        table.fail("as", f"is `{name}`", 'name the field that holds one part: as = "key"')
    return Each(name, _from(table), table.text("separator"))


def _from(table: Section) -> Template:
    found = table.template("from")
    if found is None or not found.fields:
        table.fail("from", "names no field", 'write from = "{field}"')
    return found


def _members(section: Section, plan: Plan) -> tuple[tuple[str, str], ...]:
    fields = section.section("members", 'write the fields and their sorts: {host = "Node"}')
    for name in fields.values:
        if fields.text(name).lower() not in plan.sizes:
            fields.fail(
                name,
                f"is `{fields.text(name)}`, which is no entity of {plan.machine}",
                one_of(fields.text(name).lower(), plan.sizes),
            )
    return tuple((name, fields.text(name).lower()) for name in fields.values)


def _action(section: Section, plan: Plan) -> Meaning | None:
    if "action" not in section:
        return None
    kind = Kind(tuple(plan.parameters))
    what = f"which is no action of {plan.machine}"
    return _meaning(section, "action", kind, what)


def _parameters(
    section: Section, plan: Plan, action: Meaning | None
) -> tuple[tuple[str, Meaning], ...]:
    table = section.section("parameters", "write the parameters of the action: {node = ...}")
    if table.values and action is None:
        section.fail("parameters", "stand without an action", 'say which: action = "..."')
    possible = _possible(action, plan) if action is not None else []
    found: list[tuple[str, Meaning]] = []
    for name in table.values:
        kinds = [plan.parameters[a][name] for a in possible if name in plan.parameters[a]]
        if not kinds:
            known = dict.fromkeys(p for a in possible for p in plan.parameters[a])
            actions = f"`{possible[0]}`" if len(possible) == 1 else "the actions"
            table.fail(name, f"is no parameter of {actions}", one_of(name, known))
        found.append((name, _meaning(table, name, kinds[0], f"which `{name}` cannot be")))
    return tuple(found)


def _possible(action: Meaning, plan: Plan) -> list[str]:
    """The actions that a row of this kind may stand for."""
    if action.template is None:
        return [str(action.constant)]
    listed = [str(value) for value in action.values.values()]
    return listed or list(plan.parameters)


def _observed(section: Section, plan: Plan) -> tuple[tuple[Template, Meaning], ...]:
    table = section.section("observed", 'write variables and values: {stage = "{stage}"}')
    found: list[tuple[Template, Meaning]] = []
    for name in table.values:
        leaf = table.as_template(name, name)
        pattern = leaf.pattern()
        kinds = [kind for known, kind in plan.leaves.items() if pattern.fullmatch(known)]
        if not kinds:
            table.fail(name, f"is no variable of {plan.machine}", one_of(name, plan.leaves))
        found.append((leaf, _meaning(table, name, kinds[0], f"which `{name}` cannot be")))
    return tuple(found)


def _meaning(section: Section, key: str, kind: Kind, cannot: str) -> Meaning:
    given = section.values[key]
    if isinstance(given, dict):
        table = section.section(key)
        table.only(_MEANING)
        values = table.section("values", "write what each text means: {ON = true, OFF = false}")
        meant = {
            text: _constant(values, text, value, kind, cannot)
            for text, value in values.values.items()
        }
        absent: object = ABSENT
        if "absent" in table:
            absent = _constant(table, "absent", table.values["absent"], kind, cannot)
        return Meaning(_from(table), None, meant, absent, table.text("separator"))
    if isinstance(given, str) and (found := section.as_template(given, key)).fields:
        return Meaning(found)
    return Meaning(None, _constant(section, key, given, kind, cannot))


def _constant(section: Section, key: str, given: object, kind: Kind, cannot: str) -> object:
    """A value that the mapping itself gives: it must be one of the kind."""
    if kind.many:
        items = cast("list[object]", given if isinstance(given, list) else [given])
        return [_member(section, key, item, kind, cannot) for item in items]
    return _member(section, key, given, kind, cannot)


def _member(section: Section, key: str, given: object, kind: Kind, cannot: str) -> object:
    if not isinstance(given, bool | int | float | str):
        section.fail(key, f"is {given!r}", f"write {_EXAMPLE}")
    value = kind.convert(given)
    if isinstance(value, float) or not kind.has(value):
        nearest = one_of(str(given), kind.names) if kind.names else f"it is {kind}"
        section.fail(key, f"is `{as_text(given)}`, {cannot}", nearest)
    return value
