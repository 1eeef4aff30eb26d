"""The arguments by which every command names a machine, a version of it and how large to make it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stagewright.spec.definition import Definition
    from stagewright.spec.scope import Scope

UNBOUNDED = "any"
MOST_DIGITS = 9
MOST_WORKERS = 1024


def add_machine(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Declare the argument MACHINE."""
    parser.add_argument(
        "machine",
        nargs="?" if optional else None,
        help="a shipped name, path/to/file.py, path/to/file.py:Class or module:Class",
    )


def add_sizes(parser: argparse.ArgumentParser) -> None:
    """Declare --size."""
    parser.add_argument(
        "--size",
        action="append",
        default=[],
        metavar="SORT=N",
        help="how many members an entity has",
    )


def add_scope(parser: argparse.ArgumentParser) -> None:
    """Declare --size and --budget."""
    add_sizes(parser)
    parser.add_argument(
        "--budget",
        action="append",
        default=[],
        metavar="NAME=N",
        help="how often a budget may be spent; 0: never, `any`: without bound",
    )


def machine_from(name: str, profile: str) -> Definition:
    """The definition that MACHINE and --profile name.

    Raises:
        StagewrightError: nothing is found under that name, or its definition is wrong.
    """
    from stagewright.machines import SHIPPED
    from stagewright.spec.loading import load

    return load(name, profile, SHIPPED)


def scope_from(definition: Definition, sizes: Sequence[str], budgets: Sequence[str]) -> Scope:
    """The scope that --size and --budget describe.

    Raises:
        InputError: an entry is not NAME=N, or names something twice.
        ScopeError: the definition has no such entity or budget, or the number does not fit.
    """
    from stagewright.spec.scope import scope_of

    wanted = numbers_from("--size", sizes, unbounded=False)
    return scope_of(
        definition,
        {name: n for name, n in wanted.items() if n is not None},
        numbers_from("--budget", budgets, unbounded=True),
    )


def positive(text: str) -> int:
    """An argument that must be a whole number of at least 1."""
    return _at_least(1, text)


def workers(text: str) -> int:
    """An argument that must be a number of threads that a process may have."""
    value = positive(text)
    if value > MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"{value} is more than {MOST_WORKERS}")
    return value


def count(text: str) -> int:
    """An argument that must be a whole number of at least 0."""
    return _at_least(0, text)


def seconds(text: str) -> float:
    """An argument that must be a number of seconds above 0."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


def _at_least(least: int, text: str) -> int:
    if not (text.isascii() and text.isdigit()) or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
    return int(text)


def numbers_from(flag: str, entries: Sequence[str], *, unbounded: bool) -> Mapping[str, int | None]:
    """What the entries of a flag say, each NAME=N; where `unbounded`, N may be `any`, which is None here.

    Raises:
        InputError: an entry is not NAME=N, or names something twice.
    """
    from stagewright.spec.errors import InputError

    found: dict[str, int | None] = {}
    for entry in entries:
        name, equals, text = entry.partition("=")
        if name in found:
            raise InputError(f"{flag} {entry}: `{name}` is given twice", help="give it once")
        whole = text.removeprefix("-")
        if unbounded and text == UNBOUNDED:
            found[name] = None
        elif name and equals and whole.isascii() and whole.isdigit() and len(whole) <= MOST_DIGITS:
            found[name] = int(text)
        else:
            or_any = f" or {flag} crashes={UNBOUNDED}" if unbounded else ""
            example = "crashes=1" if unbounded else "node=3"
            raise InputError(
                f"{flag} {entry}: this is not NAME=N",
                help=f"write for example {flag} {example}{or_any}",
            )
    return found


def warn_of_empty_promises(definition: Definition, asked: Collection[str]) -> None:
    """Say of a machine that promises nothing, or what nothing can break, that the ticks beside it mean little.

    `asked`: the properties that are to be decided; none for all.
    """
    from stagewright.spec.derived.tautologies import tautologies_in

    for prop in tautologies_in(definition):
        if not asked or prop.name in asked:
            place = f"\n{prop.where.excerpt()}" if prop.where is not None else ""
            print(
                f"warning: `{prop.name}` is true whatever the variables are: their bounds say as much{place}\n"
                "  help: say what a step could break; that values stay in their bounds is checked of every machine",
                file=sys.stderr,
            )
    if not definition.properties and not asked:
        print(
            f"warning: {definition.name} has no property: only what must hold of every machine is checked\n"
            f"  --> {definition.file}\n"
            "  help: write an `@invariant`, or another property, for what must never go wrong",
            file=sys.stderr,
        )
