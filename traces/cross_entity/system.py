"""From systems and the machines that were recorded to the properties that their traces can evaluate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from stagewright.spec.define import define
from stagewright.spec.definition import Definition, Property, PropertyKind
from stagewright.spec.errors import InputError
from stagewright.spec.grounding.ground import GroundNode
from stagewright.spec.grounding.lowering import Lowering
from stagewright.spec.machine import Machine, profile_names
from stagewright.spec.scope import Scope
from stagewright.spec.values import FrozenMap
from stagewright.traces.automaton.evaluator import Evaluator
from stagewright.traces.automaton.step_code import Instruction, instructions_of
from stagewright.traces.cross_entity.families import Family, families_of
from stagewright.traces.cross_entity.numbered import incomparable
from stagewright.traces.cross_entity.reduce import AtomNode, NotTracedError, Reduction
from stagewright.traces.replay.exact_verdicts import MachineKey
from stagewright.traces.replay.related.classes import Related, View
from stagewright.traces.replay.related.formula import Among, Formula, Made, is_local, weight


@dataclass(frozen=True)
class Unevaluated:
    """An invariant that the traces cannot evaluate, with what they lack."""

    system: str
    name: str
    reason: str


@dataclass(frozen=True)
class Together:
    """What is to be evaluated of several entities at once.

    `undecided` are the properties that read what was recorded, but whose values cannot be compared.
    """

    properties: tuple[Related, ...] = ()
    views: Mapping[MachineKey, View] = field(default_factory=dict[MachineKey, View])
    unevaluated: tuple[Unevaluated, ...] = ()
    undecided: tuple[tuple[Related, str], ...] = ()  # with the reason
    foreign: tuple[str, ...] = ()  # systems that have no recorded machine as a part

    def asked(self) -> dict[MachineKey, str]:
        """By machine, what stands for all that is asked of its entities."""
        return {key: view.fingerprint() for key, view in self.views.items()}

    @property
    def any_asked(self) -> bool:
        """Whether any property was asked for."""
        return bool(self.properties or self.unevaluated or self.undecided)

    def check(self, evaluators: Mapping[MachineKey, Evaluator]) -> None:
        """Refuse systems that have nothing to do with the traces.

        Raises:
            InputError: no part of a system was recorded.
        """
        if self.foreign:
            recorded = sorted({evaluator.definition.name for evaluator in evaluators.values()})
            raise InputError(
                f"the traces are of {', '.join(recorded) or 'no machine'}: "
                f"{self.foreign[0]} has no part of them",
                help="name a system that has a recorded machine as a part(...) or many(...)",
            )


def together(
    systems: Sequence[type[Machine]], evaluators: Mapping[MachineKey, Evaluator], profile: str = ""
) -> Together:
    """The invariants of systems that traces of these machines can evaluate.

    Raises:
        InputError: the parts of a system were recorded in ways that do not go together.
    """
    by_name: dict[str, list[MachineKey]] = {}
    for key, evaluator in evaluators.items():
        by_name.setdefault(evaluator.definition.name, []).append(key)
    atoms: dict[str, dict[AtomNode, tuple[int, type[Machine]]]] = {}  # number, and whose
    found: list[tuple[Related, list[list[AtomNode]]]] = []
    unevaluated: list[Unevaluated] = []
    undecided: list[tuple[Related, str]] = []
    foreign: list[str] = []
    own_of: dict[tuple[type[Machine], MachineKey], Evaluator] = {}
    for system in systems:
        families = families_of(system, by_name)
        if not families:
            foreign.append(system.__name__)
            continue
        own = {
            (f.machine, key): _own(f, evaluators[key], system)
            for f in families
            for key in by_name[f.machine]
        }
        parts = list(own.values())
        definition = define(system, profile or _profile(system, parts))
        scope = _scope(definition, parts)
        variables = [_variables([own[f.machine, k] for k in by_name[f.machine]]) for f in families]
        doubled = {f.machine for f in families if sum(g.machine == f.machine for g in families) > 1}
        for prop in definition.properties:
            of_part = any(prop.name.startswith(f.prefix) for f in families)
            if prop.kind is not PropertyKind.INVARIANT or of_part:
                continue  # a part's own promises are kept by its runs, and traces are evaluated as such
            try:
                related, nodes = _related(prop, system, families, variables, scope, doubled)
            except NotTracedError as error:
                unevaluated.append(Unevaluated(system.__name__, prop.name, str(error)))
                continue
            of_parts = {key for machine, _ in related.families for key in by_name[machine]}
            recordings = [evaluators[key].automaton.recording for key in of_parts]
            why = incomparable((n for of_family in nodes for n in of_family), recordings)
            if why and not related.local:
                undecided.append((related, why))
                continue
            found.append((related, nodes))
            for (machine, _), of_family in zip(related.families, nodes, strict=True):
                numbers = atoms.setdefault(machine, {})
                for node in of_family:
                    numbers.setdefault(node, (len(numbers), system))
        own_of |= {(system, key): part for (_, key), part in own.items()}
    views = {
        key: _view(
            evaluators[key], [(own_of[whose, key], n) for n, (_, whose) in atoms[name].items()]
        )
        for name, keys in by_name.items()
        if name in atoms
        for key in keys
    }
    properties = tuple(_numbered(r, nodes, atoms, by_name, views) for r, nodes in found)
    return Together(properties, views, tuple(unevaluated), tuple(undecided), tuple(foreign))


def _variables(evaluators: Sequence[Evaluator]) -> frozenset[str]:
    """The variables that all of them have."""
    return frozenset.intersection(
        *(frozenset(v.name for v in e.definition.variables) for e in evaluators)
    )


def _own(family: Family, evaluator: Evaluator, system: type[Machine]) -> Evaluator:
    """What evaluates the traces, with the classes of the system's own part: a file may be loaded twice.

    Raises:
        InputError: the system's part is another machine than the one of the traces.
    """
    definition = define(family.kind, evaluator.definition.profile)
    if definition == evaluator.definition:
        return evaluator
    if definition.fingerprint() != evaluator.definition.fingerprint():
        raise InputError(
            f"`{family.name}` of {system.__name__} is not the {family.machine} that checks the traces",
            help="name the same version of it with --machine",
        )
    sizes = _scope(definition, [evaluator]).sizes
    return replace(evaluator, definition=definition, scope=Scope(sizes, evaluator.scope.budgets))


def _profile(system: type[Machine], parts: Sequence[Evaluator]) -> str:
    """The profile of the traces, if the system knows it."""
    known = profile_names(system)
    recorded = sorted({p.definition.profile for p in parts} & set(known))
    if len(recorded) > 1:
        raise InputError(
            f"the traces of the parts of {system.__name__} are of the profiles {', '.join(recorded)}",
            help="say with --profile which one is to check them together",
        )
    return recorded[0] if recorded else ""


def _scope(definition: Definition, parts: Sequence[Evaluator]) -> Scope:
    """The sizes of the parts' scopes, by name: what their states speak of is of these."""
    sizes = {kind.__name__: kind.default_scope for kind in definition.entities}
    known: dict[str, int] = {}
    for part in parts:
        for kind, size in part.scope.sizes.items():
            if known.setdefault(kind.__name__, size) != size:
                raise InputError(
                    f"the recorded machines differ in how many {kind.__name__} there are",
                    help=f"say it for all: --size {kind.__name__}=N",
                )
    sizes |= known
    return Scope(
        FrozenMap({kind: sizes[kind.__name__] for kind in definition.entities}),
        FrozenMap({b.name: None for b in definition.budgets}),
    )


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


def _view(evaluator: Evaluator, atoms: Sequence[tuple[Evaluator, AtomNode]]) -> View:
    """The atoms as a program over the states that `evaluator` finds; each is lowered by its own system's part."""
    lowerings: dict[int, Lowering] = {}
    nodes: list[tuple[int, GroundNode]] = []
    for part, atom in atoms:
        lowering = lowerings.setdefault(
            id(part), Lowering(part.definition, part.scope, bounded=False)
        )
        expressions = lowering.expressions
        node = expressions.scalar(atom.node, expressions.constants(dict(atom.values)))
        nodes.append((id(part), node))
    first: dict[int, int] = {}
    instructions: list[Instruction] = []
    for whose, lowering in lowerings.items():
        first[whose] = begin = len(instructions)
        instructions += [
            (name, tuple(begin + a for a in args), value, table)
            for name, args, value, table in instructions_of(lowering.builder.nodes)
        ]
    recording = evaluator.automaton.recording
    return View(
        evaluator.definition.name,
        tuple(instructions),
        tuple(first[whose] + node.id for whose, node in nodes),
        tuple((node.low, node.high) for _, node in nodes),
        recording.from_start,
        recording.end_marked,
    )


def _numbered(
    related: Related,
    nodes: Sequence[Sequence[AtomNode]],
    atoms: Mapping[str, Mapping[AtomNode, tuple[int, type[Machine]]]],
    by_name: Mapping[str, Sequence[MachineKey]],
    views: Mapping[MachineKey, View],
) -> Related:
    families: list[tuple[str, tuple[int, ...]]] = []
    ranges: list[tuple[tuple[int, int], ...]] = []
    for (machine, _), of_family in zip(related.families, nodes, strict=True):
        chosen = tuple(atoms[machine][node][0] for node in of_family)
        families.append((machine, chosen))
        seen = [views[key].ranges for key in by_name[machine]]
        ranges.append(
            tuple((min(r[a][0] for r in seen), max(r[a][1] for r in seen)) for a in chosen)
        )
    return replace(related, families=tuple(families), ranges=tuple(ranges))
