"""From systems and the machines that were recorded to the properties that their traces can judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from stagewright.spec.define import define
from stagewright.spec.definition import Definition, Property, PropertyKind
from stagewright.spec.entities import Entity
from stagewright.spec.errors import InputError
from stagewright.spec.lowering import Lowering
from stagewright.spec.machine import Machine, profile_names
from stagewright.spec.scope import Scope
from stagewright.spec.values import FrozenMap
from stagewright.traces.explain import Judge
from stagewright.traces.judge import MachineKey
from stagewright.traces.stepcode import instructions_of
from stagewright.traces.together.families import Family, families_of
from stagewright.traces.together.formula import Among, Formula, Made, is_local, weight
from stagewright.traces.together.reduce import AtomNode, NotTracedError, Reduction
from stagewright.traces.together.views import Related, View


@dataclass(frozen=True)
class Unjudged:
    """An invariant that the traces cannot judge, with what they lack."""

    system: str
    name: str
    reason: str


@dataclass(frozen=True)
class Together:
    """What is to be judged of several entities at once."""

    properties: tuple[Related, ...] = ()
    views: Mapping[MachineKey, View] = field(default_factory=dict[MachineKey, View])
    unjudged: tuple[Unjudged, ...] = ()
    foreign: tuple[str, ...] = ()  # systems that have no recorded machine as a part

    def check(self, judges: Mapping[MachineKey, Judge]) -> None:
        """Refuse systems that have nothing to do with the traces.

        Raises:
            InputError: no part of a system was recorded.
        """
        if self.foreign:
            recorded = sorted({judge.definition.name for judge in judges.values()})
            raise InputError(
                f"the traces are of {', '.join(recorded) or 'no machine'}: "
                f"{self.foreign[0]} has no part of them",
                help="name a system that has a recorded machine as a part(...) or many(...)",
            )


def together(
    systems: Sequence[type[Machine]], judges: Mapping[MachineKey, Judge], profile: str = ""
) -> Together:
    """The invariants of systems that traces of these machines can judge.

    Raises:
        InputError: the parts of a system were recorded in ways that do not go together.
    """
    by_name: dict[str, list[MachineKey]] = {}
    for key, judge in judges.items():
        by_name.setdefault(judge.definition.name, []).append(key)
    atoms: dict[str, dict[AtomNode, int]] = {}
    found: list[tuple[Related, list[list[AtomNode]]]] = []
    unjudged: list[Unjudged] = []
    foreign: list[str] = []
    for system in systems:
        families = families_of(system, by_name)
        if not families:
            foreign.append(system.__name__)
            continue
        parts = [judges[key] for f in families for key in by_name[f.machine]]
        definition = define(system, profile or _profile(system, parts))
        scope = _scope(definition, parts)
        variables = [
            frozenset.intersection(
                *(frozenset(v.name for v in judges[k].definition.variables) for k in by_name[f.machine])
            )
            for f in families
        ]
        doubled = {f.machine for f in families if sum(g.machine == f.machine for g in families) > 1}
        for prop in definition.properties:
            if prop.kind is not PropertyKind.INVARIANT:
                continue
            try:
                related, nodes = _related(prop, system, families, variables, scope, doubled)
            except NotTracedError as error:
                unjudged.append(Unjudged(system.__name__, prop.name, str(error)))
                continue
            found.append((related, nodes))
            for (machine, _), of_family in zip(related.families, nodes, strict=True):
                numbers = atoms.setdefault(machine, {})
                for node in of_family:
                    numbers.setdefault(node, len(numbers))
    views = {
        key: _view(judges[key], list(atoms[name]))
        for name, keys in by_name.items()
        if name in atoms
        for key in keys
    }
    properties = tuple(_numbered(r, nodes, atoms, by_name, views) for r, nodes in found)
    return Together(properties, views, tuple(unjudged), tuple(foreign))


def _profile(system: type[Machine], parts: Sequence[Judge]) -> str:
    """The profile of the traces, if the system knows it."""
    known = profile_names(system)
    recorded = sorted({p.definition.profile for p in parts} & set(known))
    if len(recorded) > 1:
        raise InputError(
            f"the traces of the parts of {system.__name__} are of the profiles {', '.join(recorded)}",
            help="say with --profile which one is to judge them together",
        )
    return recorded[0] if recorded else ""


def _scope(definition: Definition, parts: Sequence[Judge]) -> Scope:
    """The sizes of the parts' scopes: what their states name is of these."""
    sizes: dict[type[Entity], int] = {k: k.default_scope for k in definition.entities}
    for part in parts:
        for kind, size in part.scope.sizes.items():
            if any(kind in p.scope.sizes and p.scope.sizes[kind] != size for p in parts):
                raise InputError(
                    f"the recorded machines differ in how many {kind.__name__} there are",
                    help=f"say it for all: --size {kind.__name__}=N",
                )
            sizes[kind] = size
    return Scope(FrozenMap(sizes), FrozenMap({b.name: None for b in definition.budgets}))


def _related(
    prop: Property,
    system: type[Machine],
    families: Sequence[Family],
    variables: Sequence[frozenset[str]],
    scope: Scope,
    doubled: set[str],
) -> tuple[Related, list[list[AtomNode]]]:
    reduction = Reduction(families, variables, scope)
    formula = reduction.formula(prop)
    used = sorted(_families_in(formula))
    if not used:
        raise NotTracedError("reads nothing that was recorded")
    for number in used:
        machine = families[number].machine
        if machine in doubled:
            names = [f"`{f.name}`" for f in families if f.machine == machine]
            raise NotTracedError(
                f"speaks of {' or '.join(names)}: traces of {machine} do not say of which they are"
            )
    place = {number: i for i, number in enumerate(used)}
    nodes = [list(reduction.atoms[number]) for number in used]
    related = Related(
        system.__name__,
        prop.name,
        prop.doc,
        is_local(formula),
        _moved(formula, place),
        weight(formula),
        tuple((families[number].machine, ()) for number in used),
        (),
    )
    return related, nodes


def _families_in(formula: Formula) -> set[int]:
    match formula:
        case Among(_, _, family, body):
            return {family} | _families_in(body)
        case Made(_, args):
            return {f for a in args for f in _families_in(a)}
        case _:
            return set()


def _moved(formula: Formula, place: Mapping[int, int]) -> Formula:
    match formula:
        case Among(_, _, family, body):
            return replace(formula, family=place[family], body=_moved(body, place))
        case Made(_, args):
            return replace(formula, args=tuple(_moved(a, place) for a in args))
        case _:
            return formula


def _view(judge: Judge, atoms: Sequence[AtomNode]) -> View:
    lowering = Lowering(judge.definition, judge.scope)
    expressions = lowering.expressions
    nodes = [
        expressions.scalar(atom.node, expressions.constants(dict(atom.values))) for atom in atoms
    ]
    recording = judge.automaton.recording
    return View(
        judge.definition.name,
        instructions_of(lowering.builder.nodes),
        tuple(node.id for node in nodes),
        tuple((node.low, node.high) for node in nodes),
        recording.from_start,
        recording.end_marked,
    )


def _numbered(
    related: Related,
    nodes: Sequence[Sequence[AtomNode]],
    atoms: Mapping[str, Mapping[AtomNode, int]],
    by_name: Mapping[str, Sequence[MachineKey]],
    views: Mapping[MachineKey, View],
) -> Related:
    families: list[tuple[str, tuple[int, ...]]] = []
    ranges: list[tuple[tuple[int, int], ...]] = []
    for (machine, _), of_family in zip(related.families, nodes, strict=True):
        chosen = tuple(atoms[machine][node] for node in of_family)
        families.append((machine, chosen))
        seen = [views[key].ranges for key in by_name[machine]]
        ranges.append(tuple((min(r[a][0] for r in seen), max(r[a][1] for r in seen)) for a in chosen))
    return replace(related, families=tuple(families), ranges=tuple(ranges))


