"""What is done to a cluster, in words: `join n4; write 10000; decommission n1; replace n2 by n5`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stagewright.spec.errors import InputError
from stagewright.spec.text.suggestions import did_you_mean

FORMS = {
    "join": "join NODE",
    "decommission": "decommission NODE",
    "replace": "replace NODE by NODE",
    "remove": "remove NODE",
    "rebuild": "rebuild NODE",
    "cleanup": "cleanup",
    "generation": "generation",
    "write": "write NUMBER",
    "kill": "kill NODE",
    "isolate": "isolate NODE",
    "restart": "restart NODE",
    "wait": "wait MILLISECONDS",
}
MOST = 1_000_000
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,30}")


@dataclass(frozen=True)
class Operation:
    """One part of a script: its verb, its node, and the node that comes in its place or a number."""

    verb: str
    node: str = ""
    by: str = ""
    number: int = 0

    def __str__(self) -> str:
        words = [self.verb, self.node]
        words += ["by", self.by] if self.by else []
        words += [str(self.number)] if self.verb in ("write", "wait") else []
        return " ".join(filter(None, words))


def parse_script(text: str) -> tuple[Operation, ...]:
    """The operations that a text lists, with semicolons between.

    Raises:
        InputError: one of them is none.
    """
    parts = [part.split() for part in text.split(";") if part.strip()]
    return tuple(_parse(words) for words in parts)


def _parse(words: list[str]) -> Operation:
    verb, rest = words[0], words[1:]
    form = FORMS.get(verb)
    if form is None:
        raise InputError(
            f"--script: there is nothing called `{verb}`",
            help=f"{did_you_mean(verb, list(FORMS))}known: {'; '.join(FORMS.values())}",
        )
    match rest:
        case [] if form == verb:
            return Operation(verb)
        case [node] if form == f"{verb} NODE" and _NAME.fullmatch(node):
            return Operation(verb, node)
        case [node, "by", by] if verb == "replace" and _NAME.fullmatch(by):
            return Operation(verb, node, by)
        case [number] if verb in ("write", "wait") and number.isdecimal() and int(number) <= MOST:
            return Operation(verb, number=int(number))
        case _:
            raise InputError(f"--script: `{' '.join(words)}`", help=f"write `{form}`")
