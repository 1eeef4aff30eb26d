"""What judges the traces of each machine that events name: its definition, or a candidate for each profile asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.spec.lowering import ground
from stagewright.traces.automaton import of_model
from stagewright.traces.blocks import Stream
from stagewright.traces.candidates import Candidates, Source
from stagewright.traces.explain import Judge
from stagewright.traces.judge import MachineKey
from stagewright.traces.options import ANY_PROFILE, Options, Resolve
from stagewright.traces.readers import forms
from stagewright.traces.recording import HiddenSteps, Recording

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


def panels_of(
    streams: Iterable[Stream], resolve: Resolve, options: Options, of_logs: Recordings
) -> tuple[dict[MachineKey, Panel], list[str]]:
    """What judges each machine, profile and definition that the events name; and what is to be noted.

    Raises:
        StagewrightError: there is no such machine or profile, or it is not the one that was recorded.
    """
    keys = sorted({stream[1:] for stream in streams})
    names = _candidates(keys, options)
    panels: dict[MachineKey, Panel] = {}
    notes: list[str] = []
    for key in keys:
        machine, profile, recorded = key
        if names:
            found = _definitions(key, names, resolve, options)
        else:
            of_log = (
                recorded,
                machine,
            ) in of_logs  # its reader knows which machine a profile is of
            found = {"": resolve(machine, profile if of_log else options.profile or profile)}
        distinct = {definition.fingerprint(): definition for definition in found.values()}
        own, definitions = list(distinct), list(distinct.values())
        notes += _other_version(key, definitions, options)
        panels[key] = Panel(
            tuple(_judge(key, d, definitions, options, of_logs) for d in definitions),
            {n: own.index(d.fingerprint()) for n, d in found.items()} if names else {},
        )
    return panels, notes


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
    key: MachineKey, names: Sequence[str], resolve: Resolve, options: Options
) -> dict[str, Definition]:
    """The definition that each candidate has for a machine, if it has one."""
    machine, profile, recorded = key
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


def _judge(
    key: MachineKey,
    definition: Definition,
    candidates: Sequence[Definition],
    options: Options,
    of_logs: Recordings,
) -> Judge:
    machine, _, recorded = key
    hidden = _hidden(options.hidden, definition, candidates)
    recording = Recording(hidden)
    if recorded in forms.NAMES:
        known = of_logs.get((recorded, machine))
        recording = known or forms.recording_of(recorded, machine)
        if options.hidden.exist:  # what the user says goes before what the reader knows
            recording = replace(recording, hidden=hidden)
    scope = recording.scope(options.scope(definition))
    model = ground(definition, scope)
    automaton = of_model(model, recording, max_states=options.max_states)
    return Judge(definition, scope, model, automaton)


def _hidden(
    hidden: HiddenSteps, definition: Definition, candidates: Sequence[Definition]
) -> HiddenSteps:
    """The hidden steps without those that only other candidates have."""
    if hidden.actions is None:
        return hidden
    own = {action.name for action in definition.actions}
    others = {action.name for one in candidates for action in one.actions} - own
    return replace(hidden, actions=hidden.actions - others)
