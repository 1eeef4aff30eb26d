"""How traces are to be evaluated, and by which definitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stagewright.spec.definition import Definition
from stagewright.spec.machine import Machine
from stagewright.spec.scope import Scope, scope_of
from stagewright.traces.automaton.nfa import MAX_STATES
from stagewright.traces.events.observability import NOTHING_HIDDEN, HiddenSteps

# Finds the definition of a machine that events name, under a profile (empty: its newest).
Resolve = Callable[[str, str], Definition]
Progress = Callable[[str], None]

ANY_PROFILE = "any"  # among candidates: all profiles of the machine


def unbounded_scope(definition: Definition) -> Scope:
    """The default scope of a definition, with budgets without bound: they limit checks, not production."""
    return scope_of(definition, {}, {budget.name: None for budget in definition.budgets})


def no_profiles(machine: str) -> Sequence[str]:
    """That no machine has profiles."""
    del machine
    return ()


@dataclass(frozen=True)
class Options:
    """How traces are to be evaluated.

    `scope`: how large one entity's machine is; by default as its definition says, and without budgets.
    `profile` overrides what the events say. `candidates`: profiles of which it is not known which recorded the
    traces: an entity is refused only if all of them refuse it; `profiles_of` says which ones a machine has,
    oldest first. `machine`: of a log, which may be of several machines, this one alone
    is evaluated. `hidden`: steps that the recorder left out, whatever the reader of its form knows of them.
    `ignore_fingerprint`: evaluate events that were recorded under another version of their definition all the same.
    `mapping`: the mapping file that says how to read all files; `mappings_beside`: what the same rows are of
    other machines.
    `together`: systems whose invariants are evaluated over the traces of their parts; `group`: a pattern, and what
    names of one group have in common where it matches (empty: all entities of a trace are one group).
    `skip_damaged`: leave out what cannot be read, and evaluate the rest.
    """

    scope: Callable[[Definition], Scope] = unbounded_scope
    profile: str = ""
    candidates: tuple[str, ...] = ()
    profiles_of: Callable[[str], Sequence[str]] = no_profiles
    machine: str = ""
    form: str = "auto"
    hidden: HiddenSteps = NOTHING_HIDDEN
    ignore_fingerprint: bool = False
    max_states: int = MAX_STATES
    mapping: Path | None = None
    mappings_beside: tuple[Path, ...] = ()
    together: tuple[type[Machine], ...] = ()
    group: str = ""
    skip_damaged: bool = False
