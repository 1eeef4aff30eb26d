"""Loads a mapping file: from its TOML to a `Plan`, checked against the definition of its machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError, StagewrightError
from stagewright.spec.scope import MAX_SIZE, Scope
from stagewright.spec.values import FrozenMap
from stagewright.traces.events.observability import ALL_HIDDEN, HiddenSteps, Recording
from stagewright.traces.mapping.kinds import leaf_kinds, parameter_kinds
from stagewright.traces.mapping.plan import MESSAGE, Plan, Rule, Source
from stagewright.traces.mapping.rules import DEFAULTS, read_rule
from stagewright.traces.mapping.sections import Section, one_of, read_toml
from stagewright.traces.options import Options, Resolve

# Which files of a directory are meant, unless the mapping says it; also compressed ones.
FILES = {
    "text": ("*.log", "*.txt", "*.out"),
    "csv": ("*.csv", "*.tsv"),
    "jsonl": ("*.jsonl", "*.ndjson", "*.json", "*.log"),
    "parquet": ("*.parquet",),
}
_ORDERS = ("lines", "time")
KEYS = ("machine", "profile", "source", "recording", "event", *DEFAULTS)
SOURCE_KEYS = ("form", "files", "order", "unmatched", "strict", "line", "delimiter", "columns")
RECORDING_KEYS = ("hidden", "visible", "from_start", "first_row", "end_marked", "sizes")
_FIRST_ROWS = ("beginning", "step")


def mapping_of(options: Options, resolve: Resolve) -> Plan | None:
    """The plan of the mapping file, checked against its machine; None without one.

    Raises:
        InputError: the mapping cannot be used; the text names the line and the mend.
    """
    if options.mapping is None:
        return None
    plans = [
        load_mapping(path, resolve, options.scope, options.profile)
        for path in (options.mapping, *options.mappings_beside)
    ]
    for number, plan in enumerate(plans):
        _check_beside(plan, plans[:number])
    return replace(plans[0], beside=tuple(plans[1:]))


def _check_beside(plan: Plan, before: Sequence[Plan]) -> None:
    """Mappings that are used together are of the same rows, and each of another machine."""
    for other in before:
        if plan.machine == other.machine:
            raise InputError(
                f"{other.file} and {plan.file} are both of the machine {plan.machine}",
                help="write all events of a machine into one mapping",
            )
        if plan.source != other.source:
            raise InputError(
                f"{other.file} and {plan.file} read different rows",
                help="give both the same [source]: each row is taken apart once, for all machines",
            )


def load_mapping(
    path: Path,
    resolve: Resolve,
    scope: Callable[[Definition], Scope],
    profile: str = "",
) -> Plan:
    """The plan of a mapping file.

    `resolve` finds the definition of a machine by its name and profile; `profile` overrides the file's.

    Raises:
        InputError: the file cannot be read or used; the text names the line, what is wrong and the mend.
    """
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}", help="is it there?") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not UTF-8 text at byte {error.start + 1}", help="save it as UTF-8"
        ) from error
    return plan_of(read_toml(str(path), text), str(path), resolve, scope, profile)


def plan_of(
    top: Section,
    file: str,
    resolve: Resolve,
    scope: Callable[[Definition], Scope],
    profile: str = "",
) -> Plan:
    """The plan that a mapping's top table describes."""
    top.only(KEYS)
    definition = _definition(top, resolve, profile)
    sizes = _sizes(top.section("recording"), definition, scope(definition))
    source = _source(top.section("source"))
    plan = Plan(
        file,
        definition.name,
        definition.profile,
        source,
        (),
        leaves=leaf_kinds(definition, sizes),
        parameters=parameter_kinds(definition, sizes),
        sizes={kind.__name__.lower(): n for kind, n in sizes.sizes.items()},
    )
    events = top.sections("event")
    if not events:
        top.fail("", "there is no [[event]]", "say which rows are events: [[event]]")
    rules = [read_rule(one.over(top, DEFAULTS), plan) for one in events]
    _alike(events, rules)
    _check_members([one.over(top, DEFAULTS) for one in events], rules)
    by_time = _by_time(top.section("source"), source, rules)
    for section, rule in zip(events, rules, strict=True):
        _check_fields(section, rule, source)
        if by_time and rule.time is None and rule.sequence is None:
            section.fail("time", "is missing", 'order = "time" needs one: time = "{field}"')
    plan = replace(plan, rules=tuple(rules), by_time=by_time)
    section = top.section("recording")
    first = section.choice("first_row", _FIRST_ROWS, "beginning")
    return replace(
        plan, recording=_recording(section, plan, definition), first_is_step=first == "step"
    )


def _check_members(events: Sequence[Section], rules: Sequence[Rule]) -> None:
    """Refuse a field of real names from which no event takes anything: the names would stay what they are."""
    read = dict.fromkeys(name for rule in rules for name in rule.says)
    for section, rule in zip(events, rules, strict=True):
        for name, _ in rule.members:
            if name not in read:
                section.section("members").fail(
                    name, "is a field from which no event takes a value", one_of(name, read)
                )


def _sizes(section: Section, definition: Definition, given: Scope) -> Scope:
    """The scope with the sizes that the traces are said to have."""
    names = [kind.__name__ for kind in definition.entities]
    table = section.section("sizes", "write how many of each entity a trace has: {Node = 3}")
    for name in table.values:
        if name not in names:
            table.fail(name, f"is no entity of {definition.name}", one_of(name, names))
        if not 0 < table.number(name, 1) <= MAX_SIZE:
            table.fail(name, f"is {table.values[name]}", f"write a number in 1 .. {MAX_SIZE}")
    numbers = {name: table.number(name, 1) for name in table.values}
    return Recording(sizes=FrozenMap(numbers)).scope(given)


def _definition(top: Section, resolve: Resolve, profile: str) -> Definition:
    machine = top.text("machine")
    wanted = profile or top.text("profile")
    try:
        return resolve(machine, wanted)
    except StagewrightError as error:
        if not machine:
            top.fail(
                "",
                "no machine is named",
                'write machine = "tablet-migration", or give --machine path/to/file.py:Class',
            )
        known = wanted and not profile and _is_known(resolve, machine)
        key = "profile" if known else "machine"
        top.fail(key, f"cannot be used: {error.problem}", error.help)


def _is_known(resolve: Resolve, machine: str) -> bool:
    try:
        resolve(machine, "")
    except StagewrightError:
        return False
    return True


def _source(section: Section) -> Source:
    section.only(SOURCE_KEYS, KEYS)
    form = section.choice("form", tuple(FILES))
    for key, forms in (
        ("line", ("text",)),
        ("strict", ("text", "csv", "jsonl")),
        ("delimiter", ("csv",)),
        ("columns", ("csv",)),
    ):
        if key in section and form not in forms:
            section.fail(key, f"means nothing for {form}", f"it is for {' and '.join(forms)}")
    delimiter = section.text("delimiter", ",")
    if len(delimiter) != 1 or delimiter in '"\r\n':
        section.fail("delimiter", f"is {delimiter!r}", r'write one character: "," or "\t"')
    columns = section.texts("columns")
    if len(set(columns)) != len(columns):
        section.fail("columns", "has a name twice", "name each column once")
    line = section.pattern(section.text("line"), "line") if "line" in section else None
    if line is not None and not line.groupindex:
        section.fail(
            "line", "has no named group", r"name the parts: '(?P<time>\S+) (?P<message>.*)'"
        )
    return Source(
        form,
        section.texts("files", FILES[form]),
        section.choice("unmatched", ("other", "unparsed"), "other") == "unparsed",
        tuple(section.pattern(text, "strict") for text in section.texts("strict")),
        line,
        delimiter,
        columns,
    )


def _by_time(section: Section, source: Source, rules: list[Rule]) -> bool:
    timed = all(rule.time is not None for rule in rules)
    default = "time" if timed and source.form != "text" else "lines"
    order = section.choice("order", _ORDERS, default)
    if "order" in section and rules[0].sequence is not None:
        section.fail("order", "means nothing with `sequence`", "leave one of them out")
    return order == "time"


def _alike(events: list[Section], rules: list[Rule]) -> None:
    """Numbers order the events of an entity only if all of them have one."""
    if len({rule.sequence is None for rule in rules}) > 1:
        section = next(s for s, r in zip(events, rules, strict=True) if r.sequence is None)
        section.fail("", "has no `sequence`", "give one to every event, or to none")


def _check_fields(section: Section, rule: Rule, source: Source) -> None:
    """Where the fields of a row are known beforehand, no other is read."""
    known = ["file", *source.columns]
    if source.form == "text":
        known += source.line.groupindex if source.line is not None else [MESSAGE]
    elif not source.columns:
        return  # a header, an object or a schema says it
    groups = [group for _, pattern in rule.match for group in pattern.groupindex]
    for name in rule.needs:
        if name not in known:
            what = "a line" if source.form == "text" else "a row"
            section.fail(
                "",
                f"reads `{{{name}}}`, which {what} does not have",
                one_of(name, [*groups, *known]),
            )


def _recording(section: Section, plan: Plan, definition: Definition) -> Recording:
    section.only(RECORDING_KEYS, KEYS)
    hidden = HiddenSteps()
    if section.values.get("hidden") == "all":
        hidden = ALL_HIDDEN
    elif "hidden" in section:
        actions = section.texts("hidden")
        for name in actions:
            if name not in plan.parameters:
                section.fail(
                    "hidden",
                    f"names `{name}`, which is no action of {plan.machine}",
                    one_of(name, plan.parameters),
                )
        hidden = HiddenSteps(frozenset(actions))
    if "visible" in section:
        hidden = replace(hidden, visible=FrozenMap(_visible(section, plan)))
    end = any(rule.end for rule in plan.rules)
    sizes = section.section("sizes")
    numbered = {sort for rule in plan.rules for _, sort in rule.members}
    return Recording(
        hidden,
        section.flag("from_start", default=True),
        section.flag("end_marked", default=end),
        FrozenMap({n: sizes.number(n, 1) for n in sizes.values}),
        numbered=frozenset(
            k.__name__ for k in definition.entities if k.__name__.lower() in numbered
        ),
    )


def _visible(section: Section, plan: Plan) -> dict[str, frozenset[str] | None]:
    """The leaves whose changes are never hidden: a list of them, or a table of their values."""
    given = section.values["visible"]
    if isinstance(given, str | list):
        names: dict[str, object] = dict.fromkeys(section.texts("visible"), True)
    else:
        names = section.section("visible").values
    found: dict[str, frozenset[str] | None] = {}
    for name, values in names.items():
        kind = plan.leaves.get(name)
        if kind is None or kind.many:
            single = [leaf for leaf, k in plan.leaves.items() if not k.many]
            section.fail(
                "visible",
                f"names `{name}`, which is no variable of {plan.machine}",
                one_of(name, single),
                name,
            )
        if values is True:
            found[name] = None
            continue
        texts = section.section("visible").texts(name)
        for value in texts:
            if value not in kind.names:
                section.fail(
                    "visible", f"has `{value}`, which `{name}` cannot be", f"it is {kind}", name
                )
        found[name] = frozenset(texts)
    return found
