"""Reads runs in the Informal Trace Format (ITF): of Apalache, of Quint, and of `check --out`.

A file is one run, and the run is one entity, named by the file. Each state is an event; Quint and we say which
action led to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from stagewright.spec.errors import InputError
from stagewright.spec.scope import MAX_SIZE
from stagewright.spec.text.itf import ACTION, PICKS
from stagewright.spec.trace import Event
from stagewright.spec.values import FrozenMap
from stagewright.traces.events.observability import Recording
from stagewright.traces.readers.generic.itf_values import WrongValueError, leaves_of, picks_of
from stagewright.traces.readers.located_json import line_of, load_located
from stagewright.traces.readers.protocol import Interpreted, Part, Tally
from stagewright.traces.readers.text_lines import ENDINGS, beginning, lines_of

ENDING = ".itf.json"

_PROBE_BYTES = 1 << 20
_FIRST_KEYS = rb'\A\s*\{\s*"(#meta|params|vars|states|loop)"\s*:'
_MACHINE = re.compile(r"[A-Za-z_]\w*")  # else it is a file: `MC.tla`, `spec.qnt`


class RunEvent(NamedTuple):
    """An event of a run, and at which sizes the run was found, if its file says it."""

    event: Event
    sizes: FrozenMap[str, int]


def check(path: Path) -> None:
    """Raise an `InputError` if the file does not begin as a run does."""
    if not re.search(_FIRST_KEYS, beginning(path, _PROBE_BYTES)):
        raise InputError(
            f"{path} does not look like a run in ITF",
            help='it is an object with "vars" and "states"; is the --format right?',
        )


def parts(path: Path) -> list[tuple[int, int]]:
    """The whole file: it is one document."""
    return [(0, path.stat().st_size)]


def extract(part: Part, tally: Tally) -> list[RunEvent]:
    """The states of a run. A file that is no run at all is refused on the line where that shows."""
    data = b"".join(lines.data for lines in lines_of(part, 1 << 62))
    rows = data.splitlines()
    tally.lines += len(rows)
    tally.blank += sum(not row.strip() for row in rows)
    tally.other += len(rows) - tally.blank
    refused: dict[int, str] = {}
    found: list[RunEvent] = []
    try:
        document = load_located(data.decode())
        found = _run(Path(part.path), document, refused)
    except json.JSONDecodeError as error:
        refused[error.lineno] = f"not JSON: {error.msg} at column {error.colno}"
    except UnicodeDecodeError as error:
        refused[data.count(b"\n", 0, error.start) + 1] = "not UTF-8 text"
    except (ValueError, WrongValueError) as error:
        refused[1] = str(error)
    good_lines = {one.event.line for one in found}
    for line, reason in refused.items():
        if line not in good_lines:  # a line with a good state has an event
            tally.other -= 1
            tally.refuse(min(line, len(rows)), reason)
    return found


def interpret(files: Sequence[Sequence[tuple[int, RunEvent]]], profile: str = "") -> Interpreted:
    """The events of all runs; each run is one by itself."""
    del profile
    result = Interpreted()
    sizes: dict[str, set[FrozenMap[str, int]]] = {}
    for file in files:
        for part, (event, size) in file:
            result.events.append((part, event))
            sizes.setdefault(event.machine, set()).add(size)
    for machine, found in sizes.items():
        one = next(iter(found)) if len(found) == 1 else FrozenMap({})
        # A run has every state from the first on; it may stop anywhere.
        result.recordings[machine] = Recording(end_marked=False, sizes=one)
        if len(found) > 1:
            texts = sorted(", ".join(f"{n}={c}" for n, c in s.items()) or "unknown" for s in found)
            result.notes.append(
                f"runs of {machine} were found at different sizes: {'; '.join(texts)}; give those of one size"
            )
    return result


def _run(path: Path, document: Any, refused: dict[int, str]) -> list[RunEvent]:
    if not isinstance(document, dict) or not isinstance(document.get("states"), list):
        raise WrongValueError("no run in ITF: there is no list `states`")
    about = document.get("#meta")
    meta: dict[str, Any] = about if isinstance(about, dict) else {}
    compressed = path.suffix in ENDINGS
    name = (path.stem if compressed else path.name).removesuffix(ENDING)
    trace = "" if path.parent == Path() else str(path.parent)
    source, profile = str(meta.get("source", "")), str(meta.get("profile", ""))
    machine = source if _MACHINE.fullmatch(source) else ""
    steps = _states(document, meta)
    if not steps:
        raise WrongValueError("`states` is empty: a run has at least its first state")
    found: list[RunEvent] = []
    for number, (line, body, action, picks) in enumerate(steps):
        try:
            observed, parameters = _observed(body), picks_of(picks) if action else {}
        except WrongValueError as error:
            refused.setdefault(line, f"state {number}: {error}")
            continue
        event = Event(
            trace=trace,
            machine=machine,
            profile=profile,
            definition="",
            entity=name,
            sequence=number,
            action=action,
            parameters=parameters,
            observed=observed,
            line=line,
        )
        found.append(RunEvent(event, _sizes(meta)))
    return found


def _states(
    document: dict[str, Any], meta: Mapping[str, Any]
) -> list[tuple[int, object, str | None, object]]:
    """The line, the variables, the action and its picks of each state; a loop's first state once more."""
    states: list[object] = document["states"]
    steps = [
        (line_of(body), body, _action(body) if number else None, _field(body, PICKS))
        for number, body in enumerate(states)
    ]
    loop = document.get("loop")
    if isinstance(loop, int) and not isinstance(loop, bool) and 0 <= loop < len(states):
        action = meta.get("loopAction")
        closing = action if isinstance(action, str) else None
        steps.append((steps[-1][0], states[loop], closing, meta.get("loopPicks")))
    return steps


def _action(body: object) -> str | None:
    action = _field(body, ACTION)
    return action if isinstance(action, str) and action else None


def _field(body: object, name: str) -> object:
    return cast("dict[str, object]", body).get(name) if isinstance(body, dict) else None


def _observed(body: object) -> dict[str, object]:
    """The variables of a state, by leaf; a module's name before one of them is left out."""
    if not isinstance(body, dict):
        raise WrongValueError("it is no object")
    return dict(
        leaf
        for name, value in cast("dict[str, object]", body).items()
        if not name.startswith(("#", "mbt::"))
        for leaf in leaves_of(name.rpartition("::")[2], value)
    )


def _sizes(meta: Mapping[str, Any]) -> FrozenMap[str, int]:
    """How many of each entity the run was found with, if its file says it."""
    sizes = meta.get("sizes")
    if not isinstance(sizes, dict):
        return FrozenMap({})
    given = cast("dict[str, object]", sizes)
    return FrozenMap(
        {
            name: count
            for name, count in given.items()
            if type(count) is int and 0 < count <= MAX_SIZE
        }
    )
