"""For chosen properties: one mutant, or one known bug, that each alone catches, where that is cheap to show.

That a property alone catches a mutant is shown where the mutant, searched to its end, breaks nothing else. So scopes
are taken one by one, the smallest first; at each, mutants are searched until one is caught by a chosen property and by
nothing at the same depth, which is then looked at without it. A property that has its mutant is not looked at again.
Lemmas are left out, as nobody relies on them: a mutant that one of them notices, too, is caught by the property alone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stagewright.checker.check import check
from stagewright.checker.limits import Limits
from stagewright.checker.mutation.changes.kinds import Kind
from stagewright.checker.mutation.changes.mutants import Mutant
from stagewright.checker.mutation.checkpoint import Checkpoint
from stagewright.checker.mutation.evaluation import Evaluation, Fate, evaluate
from stagewright.checker.mutation.original import Original
from stagewright.checker.mutation.report import Need
from stagewright.checker.mutation.run import Budget, OnEvaluated
from stagewright.checker.processes import in_processes, possible
from stagewright.checker.verdicts import IN_BOUNDS
from stagewright.spec.definition import NO_DEADLOCK, Definition, PropertyKind, Role
from stagewright.spec.known_bugs import KnownBug
from stagewright.spec.verdict import Outcome

_MUST_HAPPEN = (
    PropertyKind.ACCEPTS,
    PropertyKind.SOMETIMES,
    PropertyKind.SOMETIMES_STEP,
    PropertyKind.REACHABLE,
    PropertyKind.LEADS_TO,
    PropertyKind.EVENTUALLY,
)


@dataclass(frozen=True)
class Sought:
    """What was found for one property: what it alone catches, and at which scope; or what implies it."""

    need: Need
    example: str = ""  # the mutant's id, or `known bug T17`
    scope: str = ""
    implied_by: tuple[str, ...] = ()


def at_any_scope(definition: Definition) -> Definition:
    """The definition with every witness sought wherever it is searched, and not at a scope of its own.

    Where a small scope does not have it, the original does not keep it there, and it decides nothing.
    """
    return replace(definition, properties=tuple(replace(p, at=None) for p in definition.properties))


def lemmas_beside(definition: Definition, names: Sequence[str]) -> tuple[str, ...]:
    """What is stated to help proofs, and is not asked about: it is no other property that catches the same."""
    lemmas = (p.name for p in definition.properties if p.role is Role.LEMMA)
    return tuple(name for name in lemmas if name not in names)


def bugs_alone(
    definition: Definition, bugs: Sequence[KnownBug], names: Sequence[str], limits: Limits
) -> Mapping[str, Sought]:
    """By property, of those named: a known bug that it alone catches, where there is one.

    A bug counts if its machine, searched to its end, keeps everything else that the right machine keeps there, lemmas aside.
    """
    found: dict[str, Sought] = {}
    promised = (p for p in definition.properties if p.kind is not PropertyKind.RESTRICTED)
    ours = {p.name for p in promised} - set(lemmas_beside(definition, names))
    for bug in bugs:
        lacking = [n for n in names if n in bug.breaks and n not in found]
        if not lacking or bug.right_definition().fingerprint() != definition.fingerprint():
            continue
        wrong = bug.definition()
        broken = _broken(bug, wrong, {p.name for p in wrong.properties} & ours, limits)
        if broken is not None and len(broken) > 1:
            # Where the scope is small, the right machine may break some, too.
            also = _broken(bug, bug.right_definition(), broken, limits)
            broken = None if also is None else broken - also
        if broken is not None and len(broken) == 1 and broken <= set(lacking):
            (name,) = broken
            found[name] = Sought(Need.ALONE, f"known bug {bug.id}", str(bug.scope_in(wrong)))
    return found


def _broken(
    bug: KnownBug, definition: Definition, names: set[str], limits: Limits
) -> set[str] | None:
    """The properties that do not hold at the bug's scope; None if that is not known of all."""
    report = check(
        definition,
        bug.scope_in(definition),
        limits=limits,
        properties=names
        | {IN_BOUNDS}
        | ({NO_DEADLOCK} if definition.deadlock_allowed is None else set()),
        workers=1,
        coverage=False,
    )
    if any(v.outcome is Outcome.UNDECIDED for v in report.verdicts):
        return None
    return {v.name for v in report.verdicts if v.outcome is Outcome.VIOLATED}


def mutants_alone(
    definition: Definition,
    originals: Sequence[Original],
    mutants: Sequence[Mutant],
    names: Sequence[str],
    budget: Budget,
    *,
    workers: int = 1,
    checkpoints: Sequence[Checkpoint | None] = (),
    on_evaluated: OnEvaluated | None = None,
    on_found: Callable[[str, Sought], None] | None = None,
) -> Mapping[str, Sought]:
    """By property, of those named: a mutant that it alone catches, or why none is named.

    `originals`: in the order in which they are to be tried. `checkpoints`: one for each of them.
    """
    search = _Search(originals, mutants, list(names), budget, time.monotonic())
    order = _in_order(definition, mutants, names)
    for at in range(len(originals)):
        kept = checkpoints[at] if checkpoints else None
        agenda = _Agenda(search, at, order, {} if kept is None else kept.known)
        parallel = workers > 1 and possible()
        if parallel:
            died = Evaluation(Fate.UNDECIDED, note="its process died")
            reached = in_processes(
                search.evaluated, agenda, workers, over=search.is_over, died=died
            )
        else:
            reached = ((task, search.evaluated(task)) for task in agenda)
        for task, evaluation in reached:
            index, without = search.of(task)
            if not without:
                if kept is not None:
                    kept.keep(index, evaluation)
                if on_evaluated is not None:
                    on_evaluated(index, evaluation)
            if (found := agenda.learn(task, evaluation)) and on_found is not None:
                on_found(found, search.found[found])
        search.complete += agenda.is_done
        if not search.lacking or search.is_over():
            break
    return search.result()


def _in_order(definition: Definition, mutants: Sequence[Mutant], names: Sequence[str]) -> list[int]:
    """Those first that may be caught: what is asked of steps that must happen, tightening alone breaks, as a rule.

    Survivors cost the most, so mutants for which the definition has a reason come last.
    """
    kinds = {p.kind for p in definition.properties if p.name in names}
    must, must_not = bool(kinds & set(_MUST_HAPPEN)), bool(kinds - set(_MUST_HAPPEN))

    def rank(index: int) -> tuple[bool, bool]:
        mutant = mutants[index]
        less = mutant.kind in {Kind.DISABLE, Kind.TIGHTEN}
        apt = mutant.kind is Kind.REPLACE or (must if less else must_not)
        return bool(mutant.reasons), not apt

    return sorted(range(len(mutants)), key=rank)


@dataclass(eq=False)
class _Search:
    """What is looked for, and what is known by now. A task is a mutant, and perhaps a property to be left out."""

    originals: Sequence[Original]
    mutants: Sequence[Mutant]
    names: Sequence[str]
    budget: Budget
    started: float
    found: dict[str, Sought] = field(default_factory=dict[str, Sought])
    caught: set[str] = field(default_factory=set[str])  # of some mutant, among the first
    undecided: bool = False
    complete: int = 0  # scopes at which every mutant was looked at
    at: int = 0  # the scope under way

    @property
    def lacking(self) -> list[str]:
        """The properties that have no mutant yet."""
        return [name for name in self.names if name not in self.found]

    def is_over(self) -> bool:
        limit = self.budget.seconds
        return limit is not None and time.monotonic() - self.started >= limit

    def task(self, index: int, without: str = "") -> int:
        """The number by which other processes know what to do."""
        number = self.names.index(without) + 1 if without else 0
        return (self.at * len(self.mutants) + index) * (len(self.names) + 1) + number

    def of(self, task: int) -> tuple[int, str]:
        """The mutant's index, and the property that is left out."""
        rest, number = divmod(task, len(self.names) + 1)
        return rest % len(self.mutants), self.names[number - 1] if number else ""

    def evaluated(self, task: int) -> Evaluation:
        """Also called in other processes, which have this object since they were forked."""
        index, without = self.of(task)
        original = self.originals[task // (len(self.names) + 1) // len(self.mutants)]
        if without:
            original = replace(original, unasked=(*original.unasked, without))
        limits = Limits(states=self.budget.states, seconds=self.budget.each)
        try:
            return evaluate(self.mutants[index], [original], limits)
        except MemoryError:
            return Evaluation(Fate.UNDECIDED, note="memory ran out")

    def result(self) -> Mapping[str, Sought]:
        """What is said of each property; that there is no such mutant only if all were looked at everywhere."""
        whole = self.complete == len(self.originals) and not self.undecided
        none = {
            name: Sought(
                (Need.SHARED if name in self.caught else Need.NOTHING) if whole else Need.UNDECIDED
            )
            for name in self.names
        }
        return {**none, **self.found}


class _Agenda:
    """The tasks at one scope, given out one by one: what was caught by one property alone is due at once."""

    def __init__(
        self, search: _Search, at: int, order: Sequence[int], known: Mapping[int, Evaluation]
    ) -> None:
        search.at = at
        self._search = search
        self._due: deque[int] = deque()
        self._waiting = deque(index for index in order if index not in known)
        for index in order:
            if index in known:
                self.learn(search.task(index), known[index])

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do."""
        return not (self._waiting or self._due)

    def __iter__(self) -> Iterator[int]:
        return self

    def __next__(self) -> int:
        search = self._search
        while self._due and search.lacking and not search.is_over():
            task = self._due.popleft()
            if search.of(task)[1] in search.lacking:
                return task
        if self._waiting and search.lacking and not search.is_over():
            return search.task(self._waiting.popleft())
        raise StopIteration

    def learn(self, task: int, evaluation: Evaluation) -> str:
        """Take up what became of a task; the property that has its mutant now, if one has."""
        search = self._search
        index, without = search.of(task)
        search.undecided |= evaluation.fate is Fate.UNDECIDED
        if without:
            if evaluation.fate is Fate.SURVIVED and without in search.lacking:
                scope = str(search.originals[search.at].scope)
                search.found[without] = Sought(Need.ALONE, search.mutants[index].id, scope)
                return without
            return ""
        search.caught.update(evaluation.by)
        if len(evaluation.by) == 1 and evaluation.states and evaluation.by[0] in search.lacking:
            self._due.append(search.task(index, evaluation.by[0]))
        return ""
