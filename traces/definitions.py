"""Which definition judges the events of each machine, profile and definition that they name, or why none does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field, replace

from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError, StagewrightError
from stagewright.spec.ground import GroundModel
from stagewright.spec.lowering import ground
from stagewright.spec.scope import Scope
from stagewright.traces.automaton import of_model
from stagewright.traces.explain import Judge
from stagewright.traces.judge import MachineKey
from stagewright.traces.options import Options, Resolve
from stagewright.traces.readers import forms
from stagewright.traces.recording import Doubt, Recording


@dataclass
class Definitions:
    """What judges, as far as it was asked for; and what was asked for and cannot be judged.

    `of_logs` is what is known of recordings by form and machine. `damaged` are the forms of which a part is
    left out; with "" among them, it is not known of which.
    """

    resolve: Resolve
    options: Options
    of_logs: Mapping[tuple[str, str], Recording]
    damaged: Set[str] = frozenset()
    judges: dict[MachineKey, Judge] = field(default_factory=dict[MachineKey, Judge])
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
        for key in sorted(set(keys) - self.judges.keys() - self.refused.keys()):
            try:
                definition = self._definition(key)
            except StagewrightError as error:
                self.refused[key] = error
                continue
            self.judges[key] = self._judge(key, definition)
            found = True
        return found

    def doubt(self, damaged: Set[str]) -> None:
        """Take notice of the forms of which a part is left out."""
        self.damaged = damaged
        self.judges = {key: self._judge(key, j.definition) for key, j in self.judges.items()}

    def _definition(self, key: MachineKey) -> Definition:
        machine, profile, recorded = key
        of_log = (
            recorded,
            machine,
        ) in self.of_logs  # its reader knows of which machine a profile is
        definition = self.resolve(machine, profile if of_log else self.options.profile or profile)
        foreign = recorded in forms.NAMES  # a form where a fingerprint would be: not our recorder
        if not foreign and recorded not in ("", definition.fingerprint()):
            problem = (
                f"the traces of {machine or definition.name} were recorded under the definition "
                f"{recorded}; this one is {definition.fingerprint()}"
            )
            if not self.options.ignore_fingerprint:
                raise InputError(
                    problem,
                    help="take the version that they were recorded with, or --ignore-fingerprint",
                )
            self.notes.append(problem)
        return definition

    def _judge(self, key: MachineKey, definition: Definition) -> Judge:
        recording = self._recording(key)
        scope = recording.scope(self.options.scope(definition))
        known = definition.name, definition.fingerprint(), scope
        if known not in self._models:
            self._models[known] = ground(definition, scope)
        model = self._models[known]
        automaton = of_model(model, recording, max_states=self.options.max_states)
        return Judge(definition, scope, model, automaton)

    def _recording(self, key: MachineKey) -> Recording:
        machine, _, recorded = key
        recording = Recording(self.options.hidden)
        if recorded in forms.NAMES:
            known = self.of_logs.get((recorded, machine))
            recording = known or forms.recording_of(recorded, machine)
            if self.options.hidden.exist:  # what the user says goes before what the reader knows
                recording = replace(recording, hidden=self.options.hidden)
        return replace(recording, doubt=self._doubt(recorded))

    def _doubt(self, recorded: str) -> Doubt:
        form = forms.form_named(recorded) if recorded in forms.NAMES else None
        if not self.damaged or (form and form.apart):
            return Doubt.NOTHING
        if form is not None and form.log:
            return Doubt.ALL if self.damaged & {recorded, ""} else Doubt.NOTHING
        return Doubt.ENDS
