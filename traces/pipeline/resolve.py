"""Which definition evaluates the events of each machine, profile and definition that they name, or why none does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError, StagewrightError
from stagewright.spec.grounding.ground import GroundModel
from stagewright.spec.grounding.lowering import ground
from stagewright.spec.scope import Scope
from stagewright.spec.text.visible import one_line
from stagewright.traces.automaton.evaluator import Evaluator
from stagewright.traces.automaton.nfa import of_model
from stagewright.traces.events.observability import Doubt, Recording
from stagewright.traces.explain.panel import (
    Panel,
    candidate_names,
    candidates_of,
    check_candidate_names,
    hidden_of,
)
from stagewright.traces.options import Options, Resolve
from stagewright.traces.readers import formats
from stagewright.traces.replay.exact_verdicts import MachineKey


@dataclass
class Definitions:
    """What evaluates, as far as it was asked for; and what was asked for and cannot be evaluated.

    `of_logs` is what is known of recordings by form and machine. `damaged` are the forms of which a part is
    left out; with "" among them, it is not known of which.
    """

    resolve: Resolve
    options: Options
    of_logs: Mapping[tuple[str, str], Recording]
    damaged: Set[str] = frozenset()
    panels: dict[MachineKey, Panel] = field(default_factory=dict[MachineKey, Panel])
    refused: dict[MachineKey, StagewrightError] = field(
        default_factory=dict[MachineKey, StagewrightError]
    )
    notes: list[str] = field(default_factory=list[str])
    _models: dict[tuple[str, str, Scope], GroundModel] = field(
        default_factory=dict[tuple[str, str, Scope], GroundModel]
    )

    def ask(self, keys: Iterable[MachineKey]) -> bool:
        """Look for definitions of machines not asked for yet; whether any was found.

        Raises:
            StagewrightError: a definition cannot be lowered at its scope.
        """
        found = False
        named = {*keys, *self.panels, *self.refused}
        for key in sorted(named - self.panels.keys() - self.refused.keys()):
            try:
                definitions = self._definitions(key, named)
            except StagewrightError as error:
                self.refused[key] = error
                continue
            self.panels[key] = self._panel(key, definitions)
            found = True
        return found

    def doubt(self, damaged: Set[str]) -> None:
        """Take notice of the forms of which a part is left out."""
        self.damaged = damaged
        for key, panel in self.panels.items():
            members = [evaluator.definition for evaluator in panel.members]
            named = {name: members[number] for name, number in panel.candidates.items()}
            self.panels[key] = self._panel(key, named or {"": members[0]})

    def check_candidates(self) -> None:
        """Raise an `InputError` if a profile that was asked for is one of no machine."""
        check_candidate_names(self.panels, self.options)

    def _definitions(self, key: MachineKey, named: Set[MachineKey]) -> dict[str, Definition]:
        """The definition of a machine, or those of the candidates by name."""
        machine, profile, recorded = key
        if names := candidate_names(key, self.options):
            found = candidates_of(key, names, self.resolve, self.options)
        else:  # a log's reader knows of which machine a profile is
            of_log = (recorded, machine) in self.of_logs
            asked = profile if of_log else self.options.profile or profile
            found = {"": self.resolve(machine, asked)}
        self._check_version(key, list(found.values()), named)
        return found

    def _check_version(
        self, key: MachineKey, definitions: Sequence[Definition], named: Set[MachineKey]
    ) -> None:
        machine, profile, recorded = key
        foreign = formats.is_form(recorded)  # a form where a fingerprint would be: not our recorder
        own = list(dict.fromkeys(definition.fingerprint() for definition in definitions))
        if foreign or recorded in ("", *own):
            return
        this = f"this one is {own[0]}" if len(own) == 1 else f"the candidates are {', '.join(own)}"
        problem = (
            f"the traces of {machine or definitions[0].name}{_with(profile)} were recorded under the "
            f"definition {one_line(recorded)}; {this}"
        )
        if not self.options.ignore_fingerprint:
            raise InputError(
                problem,
                help=_of_another_profile(key, named)
                or "take the version that they were recorded with, or --ignore-fingerprint",
            )
        self.notes.append(problem)

    def _panel(self, key: MachineKey, named: Mapping[str, Definition]) -> Panel:
        distinct = {definition.fingerprint(): definition for definition in named.values()}
        own, definitions = list(distinct), list(distinct.values())
        compared = bool(candidate_names(key, self.options))
        return Panel(
            tuple(self._evaluate(key, d, definitions) for d in definitions),
            {n: own.index(d.fingerprint()) for n, d in named.items()} if compared else {},
        )

    def _evaluate(
        self, key: MachineKey, definition: Definition, candidates: Sequence[Definition]
    ) -> Evaluator:
        recording = self._recording(key, definition, candidates)
        scope = recording.scope(self.options.scope(definition))
        known = definition.name, definition.fingerprint(), scope
        if known not in self._models:
            self._models[known] = ground(definition, scope, bounded=False, wide=True)
        model = self._models[known]
        automaton = of_model(model, recording, max_states=self.options.max_states)
        return Evaluator(definition, scope, model, automaton)

    def _recording(
        self, key: MachineKey, definition: Definition, candidates: Sequence[Definition]
    ) -> Recording:
        machine, _, recorded = key
        hidden = hidden_of(self.options.hidden, definition, candidates)
        recording = Recording(hidden)
        if formats.is_form(recorded):
            known = self.of_logs.get((recorded, machine))
            recording = known or formats.recording_of(recorded, machine)
            if self.options.hidden.exist:  # what the user says goes before what the reader knows
                recording = replace(recording, hidden=hidden)
        return replace(recording, doubt=self._doubt(recorded))

    def _doubt(self, recorded: str) -> Doubt:
        form = formats.form_named(recorded) if formats.is_form(recorded) else None
        if not self.damaged or (form and form.apart):
            return Doubt.NOTHING
        if form is not None and form.log:
            return Doubt.ALL if self.damaged & {recorded, ""} else Doubt.NOTHING
        return Doubt.ENDS


def _with(profile: str) -> str:
    return f" with the profile `{one_line(profile)}`" if profile else ""


def _of_another_profile(key: MachineKey, named: Set[MachineKey]) -> str:
    """What other profiles the same definition is said to have: then it is a profile that is wrong."""
    machine, profile, recorded = key
    others = sorted({p for m, p, d in named if (m, d) == (machine, recorded) and p != profile})
    text = " or ".join(f"`{one_line(other)}`" if other else "no profile" for other in others)
    return f"other events of this definition have {text}: mend the profile" if text else ""
