"""Prints a machine: its states, actions and properties; or what it has that another one, or another profile, has not."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.console.machine_flags import add_machine
from stagewright.commands.facts.kept import keep_facts, kept_facts

if TYPE_CHECKING:
    from stagewright.commands.facts.facts import MachineFacts
    from stagewright.spec.definition import Definition

_EXAMPLE = """\
examples:
  stagewright show tablet-migration --profile seed
  stagewright show tablet-migration --compare seed                    # what changed since that profile
  stagewright show my/machine.py:New --compare my/machine.py:Old
  stagewright show my/machine.py:Counter --to markdown"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright show``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n\n{parser.epilog or ''}"
    add_machine(parser)
    parser.add_argument("--profile", default="", help="the version to show (default: the newest)")
    parser.add_argument(
        "--compare",
        metavar="OTHER",
        help="print what changed since OTHER, another profile or another machine, as + and - lines",
    )
    parser.add_argument(
        "--to",
        choices=("text", "markdown", "mermaid", "json"),
        default="text",
        help="the format; mermaid is a state diagram of the main variable (default: text)",
    )
    parser.add_argument("--json", action="store_true", help="the same as --to json")


def execute(args: argparse.Namespace) -> int:
    """Print the machine, or how it differs from another one or another profile."""
    form = "json" if args.json else args.to
    if args.compare is not None:
        _print_differences(args.machine, args.profile, args.compare, form)
    elif form == "mermaid":
        from stagewright.commands.console.machine_flags import machine_from
        from stagewright.commands.pages.reached_diagram import reached_diagram
        from stagewright.commands.pages.state_diagram import render_diagram

        definition = machine_from(args.machine, args.profile)
        print(render_diagram(reached_diagram(definition, progress=sys.stderr)), end="")
    else:
        _print_machine(_kept_or_made(args.machine, args.profile), form)
    return ExitCode.HOLDS


def _print_machine(facts: MachineFacts, form: str) -> None:
    match form:
        case "json":
            print(json.dumps(asdict(facts), indent=2, ensure_ascii=False))
        case "markdown":
            from stagewright.commands.pages.text import markdown_machine

            print(markdown_machine(facts), end="")
        case _:
            from stagewright.commands.console.output import console
            from stagewright.commands.pages.text import render_machine

            console().print(render_machine(facts))


def _print_differences(name: str, profile: str, other: str, form: str) -> None:
    from stagewright.commands.console.machine_flags import machine_from
    from stagewright.commands.pages.compare import differences

    older = _machine_named(other)
    new = machine_from(name, profile)
    old = machine_from(older, "") if older else machine_from(name, other)
    lines = differences(_facts(older or name, old), _facts(name, new))
    if not lines and not _same_meaning(old, new):
        lines = ["~ they differ in a way that these words do not show"]
    names = (old.name, new.name) if older else (old.profile, new.profile)
    match form:
        case "json":
            compared = {"from": names[0], "to": names[1], "differences": lines}
            print(json.dumps(compared, indent=2, ensure_ascii=False))
        case "markdown":
            print("\n".join(["```diff", *lines, "```"]))
        case "text":
            from stagewright.commands.console.output import console
            from stagewright.commands.pages.text import render_differences

            console().print(render_differences(*names, lines), soft_wrap=True)
        case _:
            from stagewright.spec.errors import InputError

            raise InputError(
                "a difference has no state diagram", help="choose --to text, markdown or json"
            )


def _machine_named(other: str) -> str:
    """The machine that --compare names; empty: it names a profile."""
    from stagewright.machines import SHIPPED

    return other if other in SHIPPED or ":" in other or other.endswith(".py") else ""


def _same_meaning(old: Definition, new: Definition) -> bool:
    return old.fingerprint() == replace(new, name=old.name, profile=old.profile).fingerprint()


def _kept_or_made(name: str, profile: str) -> MachineFacts:
    facts = kept_facts(name, profile)
    if facts is None:
        from stagewright.commands.console.machine_flags import machine_from

        facts = _facts(name, machine_from(name, profile))
        keep_facts(name, profile, facts)
    return facts


def _facts(name: str, definition: Definition) -> MachineFacts:
    from stagewright.commands.facts.of_definition import facts_of
    from stagewright.machines import SHIPPED
    from stagewright.spec.loading import find
    from stagewright.spec.machine import profile_names

    return facts_of(definition, tuple(profile_names(find(name, SHIPPED))))
