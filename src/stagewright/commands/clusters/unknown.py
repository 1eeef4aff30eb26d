"""What a shell says of a line that is none of its commands: how those of that name are written, or which one is meant."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from stagewright.spec.errors import InputError, did_you_mean

_FORM = re.compile(r"^  (?=\S)(.+?)(?:\s{2,}.*)?$")


def unknown_command(words: Sequence[str], commands: str) -> InputError:
    """The error for a line.

    Args:
        words: of the line.
        commands: the shell's help: one command a line, indented by two spaces, then what it does.
    """
    forms = [found[1] for line in commands.splitlines() if (found := _FORM.match(line))]
    alike = [form for form in forms if words[0] in {one.split()[0] for one in form.split(", ")}]
    if not alike and (within := [form for form in forms if words[0] in form.split()]):
        return InputError(
            f"no such command: {shlex.join(words)}",
            help=f"did you mean `{within[0]}`? `help` lists all commands",
        )
    if not alike:
        verbs = [one.split()[0] for form in forms for one in form.split(", ")]
        return InputError(
            f"no such command: {shlex.join(words)}",
            help=f"{did_you_mean(words[0], verbs)}`help` lists all commands",
        )
    return InputError(
        f"not a form of `{words[0]}`: {shlex.join(words)}",
        help="\n".join(f"write it as: {form}" for form in alike) + "\n`help` lists all commands",
    )
