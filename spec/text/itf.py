"""Runs in the Informal Trace Format (ITF), which Apalache, Quint and their viewers read and write.

The format: https://apalache-mc.org/docs/adr/015adr-trace.html. As in Quint, each state names the
action that led to it (`mbt::actionTaken`) and the values of its parameters (`mbt::nondetPicks`). The
step that closes a loop leads to a state that stands earlier in the file: the file's "#meta" has it.
"""

from __future__ import annotations

from collections.abc import Mapping

from stagewright.spec.definition import Action, Definition
from stagewright.spec.errors import InputError
from stagewright.spec.nodes import Bound
from stagewright.spec.scope import BUDGET_PREFIX, Scope, scope_of
from stagewright.spec.sorts import IntSort, Sort
from stagewright.spec.text.itf_values import (
    Json,
    as_object,
    expect_list,
    expect_object,
    from_json,
    to_json,
    type_name,
)
from stagewright.spec.values import FrozenMap, State, Value
from stagewright.spec.verdict import Outcome, PropertyVerdict, Run, Step

ACTION = "mbt::actionTaken"
PICKS = "mbt::nondetPicks"
INITIAL_ACTION = "init"
FORMAT_PAGE = "https://apalache-mc.org/docs/adr/015adr-trace.html"

_LARGEST_BUDGET = 2**31


def to_itf(
    definition: Definition, verdict: PropertyVerdict, scope: Scope | None = None
) -> dict[str, Json]:
    """The verdict's run as an ITF document, ready for `json.dump`."""
    run = verdict.run if verdict.witness is None else verdict.witness
    if run is None:
        raise InputError(f"{verdict.name} has no run to write as ITF")
    sorts = _sorts(definition, run.states[0])
    states: list[Json] = [
        _state(definition, sorts, i, state, run.steps[i - 1] if i else None)
        for i, state in enumerate(run.states)
    ]
    document: dict[str, Json] = {
        "#meta": _meta(definition, verdict, run, sorts, scope),
        "vars": [*sorts, ACTION, PICKS],
        "states": states,
    }
    if run.loop is not None:
        document["loop"] = run.loop
    return document


def from_itf(definition: Definition, document: object) -> Run:
    """The run in an ITF document, in the definition's own values.

    Raises:
        InputError: the document is no ITF, or does not fit the definition; the text says where.
    """
    top = expect_object(document, "the ITF document")
    listed = expect_list(top.get("states"), "`states`")
    if not listed:
        raise InputError("`states` is empty", help="an ITF run has at least its initial state")
    bodies = [expect_object(s, f"states[{i}]") for i, s in enumerate(listed)]
    sorts = _sorts(definition, bodies[0])
    states = tuple(_read_state(sorts, body, f"states[{i}]") for i, body in enumerate(bodies))
    steps = tuple(
        _read_step(definition, body.get(ACTION), body.get(PICKS), f"states[{i}]")
        for i, body in enumerate(bodies)
        if i
    )
    loop = top.get("loop")
    if loop is None:
        return Run(states, steps)
    if isinstance(loop, bool) or not isinstance(loop, int) or not 0 <= loop < len(states):
        raise InputError(
            f"`loop` is {loop!r}", help=f"write a state's index, 0 to {len(states) - 1}"
        )
    meta = expect_object(top.get("#meta", {}), "`#meta`")
    closing = _read_step(definition, meta.get("loopAction"), meta.get("loopPicks"), "`#meta`")
    return Run(states, steps, loop, closing)


def verdict_from_itf(
    definition: Definition, document: object
) -> tuple[PropertyVerdict, Scope | None]:
    """The verdict, and the scope where the document has it, that `to_itf` wrote.

    Raises:
        InputError: as `from_itf`; or the document does not say which property it is about.
    """
    run = from_itf(definition, document)
    meta = expect_object(expect_object(document, "the ITF document").get("#meta", {}), "`#meta`")
    name = meta.get("property")
    if not isinstance(name, str):
        raise InputError(
            "the ITF document does not say which property it breaks",
            help='add "property": "<name>" to its "#meta"',
        )
    given = expect_object(meta.get("propertyArguments", {}), "`propertyArguments`")
    arguments: dict[str, Value] = {}
    for param in _property_params(definition, name):
        where = f"`propertyArguments.{param.name}`"
        arguments[param.name] = from_json(given.get(param.name), param.sort, where)
    outcome = Outcome.UNDECIDED if meta.get("status") == "unknown" else Outcome.VIOLATED
    method = str(meta.get("method", "another tool"))
    verdict = PropertyVerdict(name, outcome, method, run=run, arguments=FrozenMap(arguments))
    return verdict, _read_scope(definition, meta)


def _read_scope(definition: Definition, meta: dict[str, object]) -> Scope | None:
    if "sizes" not in meta:
        return None
    sizes = expect_object(meta["sizes"], "`sizes`")
    budgets = expect_object(meta.get("budgets", {}), "`budgets`")
    whole = {k: v for k, v in sizes.items() if isinstance(v, int)}
    limits = {k: v for k, v in budgets.items() if v is None or isinstance(v, int)}
    if len(whole) != len(sizes) or len(limits) != len(budgets):
        raise InputError("`sizes` and `budgets` must be whole numbers")
    return scope_of(definition, whole, limits)


def _sorts(definition: Definition, present: Mapping[str, object]) -> dict[str, Sort]:
    """The sort of each variable, with the budget counters that a bounded definition has besides."""
    sorts: dict[str, Sort] = {v.name: v.sort for v in definition.variables}
    for name in present:
        if name.startswith(BUDGET_PREFIX) and name not in sorts:
            sorts[name] = IntSort(0, _LARGEST_BUDGET)
    return sorts


def _state(
    definition: Definition, sorts: dict[str, Sort], index: int, state: State, step: Step | None
) -> dict[str, Json]:
    data: dict[str, Json] = {"#meta": {"index": index}}
    for name, sort in sorts.items():
        data[name] = to_json(state[name], sort)
    data[ACTION] = step.action if step else INITIAL_ACTION
    data[PICKS] = _picks(definition, step)
    return data


def _picks(definition: Definition, step: Step | None) -> dict[str, Json]:
    """Every parameter name of the machine: `Some` value for those of this step, else `None`."""
    names = {p.name: None for a in definition.actions for p in a.params}
    picks: dict[str, Json] = {name: {"tag": "None", "value": {"#tup": []}} for name in names}
    if step is not None:
        action = _action(definition, step.action, "a step of the run")
        for param in action.params:
            value = to_json(step.arguments[param.name], param.sort)
            picks[param.name] = {"tag": "Some", "value": value}
    return picks


def _meta(
    definition: Definition,
    verdict: PropertyVerdict,
    run: Run,
    sorts: dict[str, Sort],
    scope: Scope | None,
) -> dict[str, Json]:
    meta: dict[str, Json] = {
        "format": "ITF",
        "format-description": FORMAT_PAGE,
        "description": f"{verdict.name} of {definition.name}: a run found by {verdict.method}",
        "source": definition.name,
        "status": _status(verdict),
        "varTypes": {name: type_name(sort) for name, sort in sorts.items()},
        "method": verdict.method,
        "property": verdict.name,
        "propertyArguments": _property_arguments(definition, verdict),
    }
    if definition.profile:
        meta["profile"] = definition.profile
    if scope is not None:
        meta["sizes"] = {kind.__name__: n for kind, n in scope.sizes.items()}
        meta["budgets"] = dict(scope.budgets)
    if run.loop_step is not None:
        meta["loopAction"] = run.loop_step.action
        meta["loopPicks"] = _picks(definition, run.loop_step)
    return meta


def _property_arguments(definition: Definition, verdict: PropertyVerdict) -> dict[str, Json]:
    params = _property_params(definition, verdict.name)
    known = [p for p in params if p.name in verdict.arguments]  # a witness of several has none
    return {p.name: to_json(verdict.arguments[p.name], p.sort) for p in known}


def _property_params(definition: Definition, name: str) -> tuple[Bound, ...]:
    return next((p.params for p in definition.properties if p.name == name), ())


def _read_state(sorts: dict[str, Sort], body: dict[str, object], where: str) -> State:
    unknown = [n for n in body if n not in sorts and n[:1] != "#" and n not in (ACTION, PICKS)]
    if unknown:
        raise InputError(
            f"{where} has `{unknown[0]}`, which is no variable",
            help=f"the variables are: {', '.join(sorts)}",
        )
    missing = [n for n in sorts if n not in body]
    if missing:
        raise InputError(f"{where} lacks `{missing[0]}`", help="an ITF state gives every variable")
    return FrozenMap({n: from_json(body[n], s, f"{where}.{n}") for n, s in sorts.items()})


def _read_step(definition: Definition, action: object, picks: object, where: str) -> Step:
    if not isinstance(action, str):
        raise InputError(
            f"{where} does not say by which action it was reached",
            help=f"its `{ACTION}` must name an action; Quint writes it with --mbt",
        )
    found = _action(definition, action, where)
    given = expect_object(picks if picks is not None else {}, f"{where}.{PICKS}")
    arguments: dict[str, Value] = {}
    for param in found.params:
        at = f"{where}.{PICKS}.{param.name}"
        pick = as_object(given.get(param.name)) or {}
        if pick.get("tag") != "Some":
            raise InputError(f"{at} is missing", help=f"`{action}` needs a value for {param.name}")
        arguments[param.name] = from_json(pick.get("value"), param.sort, at)
    return Step(action, FrozenMap(arguments))


def _action(definition: Definition, name: str, where: str) -> Action:
    for action in definition.actions:
        if action.name == name:
            return action
    known = ", ".join(a.name for a in definition.actions)
    raise InputError(f"{where}: {definition.name} has no action `{name}`", help=f"it has: {known}")


def _status(verdict: PropertyVerdict) -> str:
    if verdict.witness is not None:
        return "witness"
    return "violation" if verdict.outcome is Outcome.VIOLATED else "unknown"
