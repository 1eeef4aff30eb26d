"""Who evaluates the traces of one machine that events name: its definition, or a candidate for each profile asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError
from stagewright.traces.automaton.evaluator import Evaluator
from stagewright.traces.automaton.product_automaton import Candidates, Source
from stagewright.traces.events.observability import HiddenSteps, Recording
from stagewright.traces.options import ANY_PROFILE, Options, Resolve
from stagewright.traces.readers import formats
from stagewright.traces.replay.exact_verdicts import MachineKey

Recordings = Mapping[tuple[str, str], Recording]  # form, machine


@dataclass(frozen=True)
class Panel:
    """The evaluators of one machine, profile and definition that events name.

    One; or the candidates, by the profiles that were asked for: several names may mean one definition.
    """

    members: tuple[Evaluator, ...]
    candidates: Mapping[str, int] = field(default_factory=dict[str, int])  # member by name

    def __str__(self) -> str:
        """What evaluates, or may: names, profiles and scopes."""
        first = self.members[0]
        one = all(m.definition.name == first.definition.name for m in self.members)
        if not one or any(m.scope != first.scope for m in self.members):
            return " or ".join(map(str, self.members))
        profiles = [m.definition.profile for m in self.members]
        *others, last = profiles
        return first.of_profile(f"{', '.join(others)} or {last}" if others else last)

    @property
    def source(self) -> Source:
        """What replays the traces."""
        automata = tuple(evaluator.automaton for evaluator in self.members)
        return Candidates(automata) if self.candidates else automata[0]

    def name(self, member: int) -> str:
        """What a candidate was asked for as."""
        return " / ".join(name for name, number in self.candidates.items() if number == member)


def candidate_names(key: MachineKey, options: Options) -> tuple[str, ...]:
    """The profiles that are compared for a machine, by name; none where one is to evaluate."""
    if ANY_PROFILE in options.candidates:
        return tuple(profiles_of(key, options)) or ("",)
    return options.candidates


def check_candidate_names(keys: Iterable[MachineKey], options: Options) -> None:
    """Raise an `InputError` if a profile that was asked for is one of none of the machines."""
    known = dict.fromkeys(name for key in keys for name in profiles_of(key, options))
    own = all(formats.profile_named(recorded) is None for *_, recorded in keys)
    wrong = [n for n in options.candidates if n not in known and n != ANY_PROFILE]
    if wrong and known and own:
        raise InputError(
            f"none of the machines has a profile `{wrong[0]}`",
            help=f"known: {', '.join(known)}; or --profile {ANY_PROFILE} for all of them",
        )


def profiles_of(key: MachineKey, options: Options) -> Sequence[str]:
    machine, _, recorded = key
    releases = formats.releases_of(recorded)
    return options.profiles_of(machine) if releases is None else releases


def candidates_of(
    key: MachineKey, names: Sequence[str], resolve: Resolve, options: Options
) -> dict[str, Definition]:
    """The definition that each candidate has for a machine, if it has one.

    Raises:
        StagewrightError: there is no such machine, or it has none of the profiles.
    """
    machine, profile, recorded = key
    named = formats.profile_named(recorded)
    if named is not None:  # the reader knows which profile of a machine a release has
        return {name: resolve(machine, named(machine, name)) for name in names}
    known = options.profiles_of(machine)
    if not known:
        definition = resolve(machine, "")
        return dict.fromkeys(names, definition)
    if found := {name: resolve(machine, name) for name in names if name in known}:
        return found
    if formats.is_form(recorded):
        return {profile: resolve(machine, profile)}  # as its reader has found out
    raise InputError(
        f"{machine} has none of the profiles {', '.join(names)}",
        help=f"name one of its own too: {', '.join(known)}",
    )


def hidden_of(
    hidden: HiddenSteps, definition: Definition, candidates: Sequence[Definition]
) -> HiddenSteps:
    """The hidden steps without those that only other candidates have."""
    if hidden.actions is None:
        return hidden
    own = {action.name for action in definition.actions}
    others = {action.name for one in candidates for action in one.actions} - own
    return replace(hidden, actions=hidden.actions - others)
