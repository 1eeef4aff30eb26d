"""Files of a violation: its last events as ITF, and as a pytest that replays them against the definition."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from pprint import pformat

from stagewright.spec.definition import Definition
from stagewright.spec.sorts import IntSort
from stagewright.spec.text.itf import ACTION, PICKS, to_itf
from stagewright.spec.text.itf_values import Json, expect_list, expect_object, to_json
from stagewright.spec.text.visible import one_line
from stagewright.spec.trace import observation
from stagewright.spec.verdict import Outcome, PropertyVerdict
from stagewright.traces.events.format_event import label
from stagewright.traces.events.observability import NOTHING_HIDDEN, HiddenSteps
from stagewright.traces.explain.replay_window import Seen, ViolationWindow
from stagewright.traces.report.results import EntityReport, TraceReport

FOLDER = "violations"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9]+")
_OURS = re.compile(r"\d{3,}-.*\.itf\.json|test_\d{3,}_\w*\.py")
_WIDTH = 96  # columns of what is written as Python


def violation_files(report: TraceReport, folder: Path, command: str) -> dict[str, str]:
    """The text of each file by its name in `folder`; `command` is what finds the violations again.

    The first violation has number 1; the numbers are those of the other reports.
    """
    found: dict[str, str] = {}
    for number, entity in enumerate(report.entities, 1):
        if entity.explanation is not None and (window := entity.explanation.window) is not None:
            itf, test = file_names(number, entity)
            found[itf] = json.dumps(as_itf(entity, window), indent=2, ensure_ascii=False) + "\n"
            found[test] = as_test(entity, window, folder, command)
    return found


def file_names(number: int, entity: EntityReport) -> tuple[str, str]:
    """The names of an entity's ITF file and test."""
    name = _NOT_IN_NAMES.sub("_", str(entity.key)).strip("_")[:60] or "entity"
    return f"{number:03}-{name.replace('_', '-')}.itf.json", f"test_{number:03}_{name}.py"


def stale_files(folder: Path) -> list[Path]:
    """What an earlier report left in the folder."""
    there = folder.iterdir() if folder.is_dir() else iter(())
    return [path for path in there if _OURS.fullmatch(path.name)]


def as_itf(entity: EntityReport, window: ViolationWindow) -> dict[str, Json]:
    """A legal run up to the violation, and last the state that was observed after it, which no step leads to."""
    explanation = entity.explanation
    assert explanation is not None
    reason = "; ".join(name for name, _ in explanation.failed) or entity.cause.value
    verdict = PropertyVerdict(reason, Outcome.VIOLATED, "trace validation", run=window.run)
    document = to_itf(window.definition, verdict, window.scope)
    meta = expect_object(document["#meta"], "#meta")
    where = None if entity.where is None else str(entity.where)
    bad = window.events[-1]
    refused: dict[str, Json] = {
        "sequence": bad.sequence,
        "event": label(bad.symbol),
        "place": where,
        "failed": [name for name, _ in explanation.failed],
        "expected": dict(explanation.expected),
        "observed": dict(explanation.observed),
    }
    text = f"{entity.key}: {entity.cause.value}; all states but the last are a legal run"
    meta |= {"description": text, "trace": str(entity.key), "refused": refused}
    states = expect_list(document["states"], "states")
    for state, sequence in zip(states, window.marks, strict=True):
        expect_object(expect_object(state, "state")["#meta"], "#meta")["event"] = sequence
    states.append(_observed(window, expect_object(states[-1], "state")))
    return document


def _observed(window: ViolationWindow, like: dict[str, object]) -> dict[str, Json]:
    """The state after the violation as far as it was observed; all else is as it was before."""
    bad = window.events[-1]
    data: dict[str, Json] = {
        "#meta": {"index": len(window.run.states), "event": bad.sequence, "legal": False}
    }
    sorts = {v.name: v.sort for v in window.definition.variables}
    for name, value in window.observed.items():
        data[name] = to_json(value, sorts.get(name, IntSort(0, 2**31)))
    data[ACTION] = bad.action or "unknown"
    names = expect_object(like[PICKS], PICKS)
    data[PICKS] = {name: _pick(bad.parameters, name) for name in names}
    return data


def _pick(given: Mapping[str, object], name: str) -> Json:
    """A parameter's value as ITF writes it; none if the event does not say it."""
    match given.get(name):
        case None:
            return {"tag": "None", "value": {"#tup": []}}
        case bool() | str() as value:
            return {"tag": "Some", "value": value}
        case value:
            return {"tag": "Some", "value": {"#bigint": str(value)}}


def as_test(entity: EntityReport, window: ViolationWindow, folder: Path, command: str) -> str:
    """The text of a pytest that fails as long as the definition refuses what was recorded."""
    definition, bad = window.definition, window.events[-1]
    profile = f" ({definition.profile})" if definition.profile else ""
    machine = machine_name(definition, folder)
    explanation = entity.explanation
    assert explanation is not None
    refusing = [name for name, _ in explanation.failed]
    refusing += [
        f"{name} is {value}, not {expected}"
        for (name, value), (_, expected) in zip(
            explanation.observed, explanation.expected, strict=True
        )
    ]
    lines = [
        *_docstring(
            f"Event {bad.sequence} of {entity.key}: {entity.cause.value}.",
            f"{definition.name}{profile} refuses {label(bad.symbol)}: {'; '.join(refusing)}."
            if refusing
            else f"{definition.name}{profile} refuses {label(bad.symbol)}.",
            f"Recorded in {entity.where}, found by:" if entity.where else "Found by:",
            f"    {command}",
            "The test passes once the definition allows the events, or the events are what it allows.",
            f"It was made from the definition with fingerprint {definition.fingerprint()}.",
        ),
        "",
        *(["from pathlib import Path", ""] if "HERE" in machine else []),
        "from stagewright.spec.loading import load",
    ]
    hidden = _hidden(window.hidden)
    if hidden:
        needed = [name for name in ("HiddenSteps", "hidden_but") if f"{name}(" in hidden]
        lines.append(f"from stagewright.traces.events.observability import {', '.join(needed)}")
    lines += [
        "from stagewright.traces.explain.replay_window import Seen, Window",
        "",
        *(["HERE = Path(__file__).parent"] if "HERE" in machine else []),
        "WINDOW = Window(",
        f"    load({machine}, {definition.profile!r}),",
        f"    sizes={ {kind.__name__: n for kind, n in window.scope.sizes.items()}!r},",
        f"    budgets={dict(window.scope.budgets)!r},",
        *([f"    hidden={hidden},"] if hidden else []),
        *([] if window.from_start else ["    from_start=False,"]),
        ")",
        *_states(window),
        "EVENTS = [",
        *(f"    {_event(event)}," for event in window.events),
        "]",
        "",
        "",
        f"def test_the_definition_explains_event_{bad.sequence}() -> None:",
        "    WINDOW.replay(STATES, EVENTS)",
    ]
    return "\n".join(lines) + "\n"


def machine_name(definition: Definition, folder: Path) -> str:
    """What `load` finds a definition by, as an expression: its module if it is shipped, else its file."""
    import stagewright

    package = Path(stagewright.__file__ or "").resolve().parent
    file = Path(definition.file).resolve()
    shipped = (package / "machines").resolve()
    if file.is_relative_to(shipped):
        module = ".".join(file.relative_to(shipped).with_suffix("").parts)
        return repr(f"stagewright.machines.{module}:{definition.name}")
    near = Path(os.path.relpath(file, folder.resolve())).as_posix()
    return f"str(HERE / {near!r}) + {':' + definition.name!r}"


def _docstring(*sentences: str) -> list[str]:
    """A docstring whose text, which a trace may have written, cannot end it."""
    parts = [s.replace("\\", "\\\\").replace('"', '\\"') for s in map(one_line, sentences)]
    first, *rest = parts
    lines = [f'"""{first}', ""]
    for sentence in rest:
        lines += [sentence, ""] if sentence.startswith("    ") else [sentence]
        if sentence.endswith("by:"):
            lines.append("")
    return [*lines, '"""']


def _states(window: ViolationWindow) -> Iterator[str]:
    if window.states is None:
        yield "# None: the events begin where a run of the definition may."
        yield "STATES = None"
        return
    yield "# Where the entity may have been before these events."
    yield "STATES = ["
    for state in window.states:
        shown = pformat(observation(state), width=_WIDTH, compact=True, sort_dicts=False)
        yield from (f"    {line}" for line in (shown + ",").split("\n"))
    yield "]"


def _event(event: Seen) -> str:
    parts = [str(event.sequence)]
    if event.action is not None:
        parts.append(repr(event.action))
    if event.parameters:
        parts.append(f"parameters={dict(event.parameters)!r}")
    if event.observed:
        parts.append(f"observed={dict(event.observed)!r}")
    if event.end:
        parts.append("end=True")
    return f"Seen({', '.join(parts)})"


def _hidden(hidden: HiddenSteps) -> str:
    """The hidden steps as an expression; empty if there are none."""
    if hidden == NOTHING_HIDDEN:
        return ""
    actions = None if hidden.actions is None else _frozen(hidden.actions)
    if not hidden.visible:
        return f"HiddenSteps({actions})"
    visible = {
        name: None if values is None else _frozen(values) for name, values in hidden.visible.items()
    }
    inner = ", ".join(f"{name!r}: {values}" for name, values in visible.items())
    if actions is None:
        return f"hidden_but({{{inner}}})"
    return f"HiddenSteps({actions}, hidden_but({{{inner}}}).visible)"


def _frozen(values: Set[object]) -> str:
    return f"frozenset({sorted(values, key=repr)!r})"
