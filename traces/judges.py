"""What judges the traces of each machine that events name: its definition, or a candidate for each profile asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace

from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError, StagewrightError
from stagewright.spec.ground import GroundModel
from stagewright.spec.lowering import ground
from stagewright.spec.scope import Scope
from stagewright.traces.automaton import of_model
from stagewright.traces.candidates import Candidates, Source
from stagewright.traces.explain import Judge
from stagewright.traces.judge import MachineKey
from stagewright.traces.options import ANY_PROFILE, Options, Resolve
from stagewright.traces.readers import forms
from stagewright.traces.recording import Doubt, HiddenSteps, Recording

Recordings = Mapping[tuple[str, str], Recording]  # form, machine


@dataclass(frozen=True)
class Panel:
    """The judges of one machine, profile and definition that events name.

    One; or the candidates, by the profiles that were asked for: several names may mean one definition.
    """

    members: tuple[Judge, ...]
    candidates: Mapping[str, int] = field(default_factory=dict[str, int])  # member by name

    @property
    def source(self) -> Source:
        """What replays the traces."""
        automata = tuple(judge.automaton for judge in self.members)
        return Candidates(automata) if self.candidates else automata[0]

    def name(self, member: int) -> str:
        """What a candidate was asked for as."""
        return " / ".join(name for name, number in self.candidates.items() if number == member)


@dataclass
class Definitions:
    """What judges, as far as it was asked for; and what was asked for and cannot be judged.

    `of_logs` is what is known of recordings by form and machine. `damaged` are the forms of which a part is
    left out; with "" among them, it is not known of which.
    """

    resolve: Resolve
    options: Options
    of_logs: Recordings
    damaged: Set[str] = frozenset()
    panels: dict[MachineKey, Panel] = field(default_factory=dict[MachineKey, Panel])
    refused: dict[MachineKey, StagewrightError] = field(
        default_factory=dict[MachineKey, StagewrightError]
    )
    notes: list[str] = field(default_factory=list[str])
    _names: tuple[str, ...] = ()  # of the profiles to compare
    _models: dict[tuple[str, str, Scope], GroundModel] = field(
        default_factory=dict[tuple[str, str, Scope], GroundModel]
    )

    def ask(self, keys: Iterable[MachineKey]) -> bool:
        """Look for definitions of machines not asked for yet; whether any was found.

        Raises:
            StagewrightError: a definition cannot be lowered at its scope; no machine has a profile asked for.
        """
        asked = set(keys) - self.panels.keys() - self.refused.keys()
        if not asked:
            return False
        names = _candidates(sorted({*asked, *self.panels}), self.options)
        if names != self._names:  # another machine has other profiles to compare
            asked |= self.panels.keys()
            self._names, self.panels, self.notes = names, {}, []
        for key in sorted(asked):
            try:
                found = _definitions(key, names, self.resolve, self.options, self.of_logs)
                distinct = {definition.fingerprint(): definition for definition in found.values()}
                self.notes += _other_version(key, list(distinct.values()), self.options)
            except StagewrightError as error:
                self.refused[key] = error
                continue
            own = list(distinct)
            self.panels[key] = Panel(
                self._judges(key, list(distinct.values())),
                {n: own.index(d.fingerprint()) for n, d in found.items()} if names else {},
            )
        return not asked.isdisjoint(self.panels)

    def doubt(self, damaged: Set[str]) -> None:
        """Take notice of the forms of which a part is left out."""
        self.damaged = damaged
        for key, panel in self.panels.items():
            judges = self._judges(key, [judge.definition for judge in panel.members])
            self.panels[key] = replace(panel, members=judges)

    def _judges(self, key: MachineKey, candidates: Sequence[Definition]) -> tuple[Judge, ...]:
        return tuple(self._judge(key, definition, candidates) for definition in candidates)

    def _judge(
        self, key: MachineKey, definition: Definition, candidates: Sequence[Definition]
    ) -> Judge:
        machine, _, recorded = key
        hidden = _hidden(self.options.hidden, definition, candidates)
        recording = Recording(hidden)
        if recorded in forms.NAMES:
            known = self.of_logs.get((recorded, machine))
            recording = known or forms.recording_of(recorded, machine)
            if self.options.hidden.exist:  # what the user says goes before what the reader knows
                recording = replace(recording, hidden=hidden)
        recording = replace(recording, doubt=_doubt(recorded, self.damaged))
        scope = recording.scope(self.options.scope(definition))
        what = definition.name, definition.fingerprint(), scope
        if what not in self._models:
            self._models[what] = ground(definition, scope)
        model = self._models[what]
        automaton = of_model(model, recording, max_states=self.options.max_states)
        return Judge(definition, scope, model, automaton)


def _doubt(recorded: str, damaged: Set[str]) -> Doubt:
    form = forms.form_named(recorded) if recorded in forms.NAMES else None
    if not damaged or (form and form.apart):
        return Doubt.NOTHING
    if form is not None and form.log:
        return Doubt.ALL if damaged & {recorded, ""} else Doubt.NOTHING
    return Doubt.ENDS


def _candidates(keys: Sequence[MachineKey], options: Options) -> tuple[str, ...]:
    """The profiles to compare, by name; none unless there are several."""
    known = dict.fromkeys(name for key in keys for name in _profiles(key, options))
    if ANY_PROFILE in options.candidates:
        return tuple(known) or ("",)
    has_own = all(forms.profile_named(recorded) is None for *_, recorded in keys)
    wrong = [name for name in options.candidates if name not in known]
    if wrong and keys and has_own:
        raise InputError(
            f"none of the machines has a profile `{wrong[0]}`",
            help=f"known: {', '.join(known) or 'none'}; or --profile {ANY_PROFILE} for all of them",
        )
    return options.candidates


def _profiles(key: MachineKey, options: Options) -> Sequence[str]:
    machine, _, recorded = key
    releases = forms.releases_of(recorded)
    return options.profiles_of(machine) if releases is None else releases


def _definitions(
    key: MachineKey,
    names: Sequence[str],
    resolve: Resolve,
    options: Options,
    of_logs: Recordings,
) -> dict[str, Definition]:
    """The definition that each candidate has for a machine, if it has one; without candidates, the one."""
    machine, profile, recorded = key
    if not names:
        of_log = (recorded, machine) in of_logs  # its reader knows which machine a profile is of
        return {"": resolve(machine, profile if of_log else options.profile or profile)}
    named = forms.profile_named(recorded)
    if named is not None:  # the reader knows which profile of a machine a release has
        return {name: resolve(machine, named(machine, name)) for name in names}
    known = options.profiles_of(machine)
    if not known:
        definition = resolve(machine, "")
        return dict.fromkeys(names, definition)
    if found := {name: resolve(machine, name) for name in names if name in known}:
        return found
    if recorded in forms.NAMES:
        return {profile: resolve(machine, profile)}  # as its reader has found out
    raise InputError(
        f"{machine} has none of the profiles {', '.join(names)}",
        help=f"name one of its own too: {', '.join(known)}",
    )


def _other_version(
    key: MachineKey, definitions: Sequence[Definition], options: Options
) -> list[str]:
    machine, _, recorded = key
    foreign = recorded in forms.NAMES  # a form where a fingerprint would be: not our recorder
    own = [definition.fingerprint() for definition in definitions]
    if foreign or recorded in ("", *own):
        return []
    this = f"this one is {own[0]}" if len(own) == 1 else f"the candidates are {', '.join(own)}"
    problem = (
        f"the traces of {machine or definitions[0].name} were recorded under the definition "
        f"{recorded}; {this}"
    )
    if not options.ignore_fingerprint:
        raise InputError(
            problem,
            help="take the version that they were recorded with, or --ignore-fingerprint",
        )
    return [problem]


def _hidden(
    hidden: HiddenSteps, definition: Definition, candidates: Sequence[Definition]
) -> HiddenSteps:
    """The hidden steps without those that only other candidates have."""
    if hidden.actions is None:
        return hidden
    own = {action.name for action in definition.actions}
    others = {action.name for one in candidates for action in one.actions} - own
    return replace(hidden, actions=hidden.actions - others)
