"""What `show` says of a machine, as plain data in words: it needs no definition to be read, compared or printed."""

from __future__ import annotations

from dataclasses import dataclass

COMMITTED = "committed"  # what a variable is unless its definition says otherwise


@dataclass(frozen=True)
class EnumFacts:
    """An enum as the table it is: one row a member, one column an attribute."""

    name: str
    doc: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]  # a member's name, then its columns


@dataclass(frozen=True)
class VariableFacts:
    """A variable, its sort and its initial value in words."""

    name: str
    sort: str
    initial: str
    constant: bool
    kept: str  # what becomes of it in a running system, and whose it is
    doc: str


@dataclass(frozen=True)
class ActionFacts:
    """An action: `requirements` must hold, then `effects` happen at once."""

    name: str
    signature: str
    actor: str
    fairness: str
    budget: str
    doc: str
    requirements: tuple[str, ...]
    effects: tuple[str, ...]


@dataclass(frozen=True)
class PropertyFacts:
    """A promise, its kind and its condition in words."""

    name: str
    signature: str
    kind: str
    doc: str
    condition: str


@dataclass(frozen=True)
class MachineFacts:
    """A machine under one profile, in words."""

    name: str
    doc: str
    profile: str
    profiles: tuple[str, ...]
    entities: tuple[str, ...]
    enums: tuple[EnumFacts, ...]
    variables: tuple[VariableFacts, ...]
    budgets: tuple[tuple[str, str, str], ...]  # name, default, what it counts
    fairness: tuple[tuple[str, str], ...]  # those that are shared: name, and what they assume
    initially: tuple[str, ...]
    constraints: tuple[tuple[str, str], ...]  # name, condition
    deadlock_allowed: str  # why, if runs may end anywhere
    final: str
    assumptions: tuple[tuple[str, str, str], ...]  # name, of what, why
    actions: tuple[ActionFacts, ...]
    properties: tuple[PropertyFacts, ...]
    # What the default scope does not exercise, by reason: what becomes of it, names, why.
    unexercised: tuple[tuple[str, str, str], ...]
    known_violations: tuple[tuple[str, str], ...]  # of this profile, by reason: names, why
    # What parts promise and the system does not: name, kind, why.
    not_asked: tuple[tuple[str, str, str], ...]
