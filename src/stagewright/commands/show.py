"""Prints a machine: its states, actions and properties; or what two of its profiles differ in."""

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
  stagewright show tablet-migration --profile seed --compare scylla-2026.2
  stagewright show my/machine.py:Counter --to markdown"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright show``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n\n{parser.epilog or ''}"
    add_machine(parser)
    parser.add_argument("--profile", default="", help="the version to show (default: the newest)")
    parser.add_argument(
        "--compare", metavar="PROFILE", help="print how another profile differs, as + and - lines"
    )
    parser.add_argument(
        "--to",
        choices=("text", "markdown", "mermaid", "json"),
        default="text",
        help="the format; mermaid is a state diagram of the main variable (default: text)",
    )
    parser.add_argument("--json", action="store_true", help="the same as --to json")


def execute(args: argparse.Namespace) -> int:
    """Print the machine, or the difference of two of its profiles."""
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

    old, new = machine_from(name, profile), machine_from(name, other)
    lines = differences(_facts(name, old), _facts(name, new))
    if not lines and old.profile != new.profile and not _same_meaning(old, new):
        lines = ["~ they differ in a way that these words do not show"]
    match form:
        case "json":
            compared = {"from": old.profile, "to": new.profile, "differences": lines}
            print(json.dumps(compared, indent=2, ensure_ascii=False))
        case "markdown":
            print("\n".join(["```diff", *lines, "```"]))
        case "text":
            from stagewright.commands.console.output import console
            from stagewright.commands.pages.text import render_differences

            console().print(render_differences(old.profile, new.profile, lines), soft_wrap=True)
        case _:
            from stagewright.spec.errors import InputError

            raise InputError(
                "a difference has no state diagram", help="choose --to text, markdown or json"
            )


def _same_meaning(old: Definition, new: Definition) -> bool:
    return old.fingerprint() == replace(new, profile=old.profile).fingerprint()


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
