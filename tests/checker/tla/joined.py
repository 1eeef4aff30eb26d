"""Many exported modules in one, so that one TLC explores them all: `which` says whose state it is."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace

from tests.checker.tla.tlc import Tlc

from stagewright.checker.tla import TlaModule, tla_module
from stagewright.spec.definition import Definition
from stagewright.spec.scope import Scope

NAME = "Joined"


@dataclass(frozen=True)
class Found:
    """What TLC found of one module: its states, and its invariants that fail somewhere."""

    distinct: int
    broken: frozenset[str]


@dataclass(frozen=True)
class _Part:
    """One module with its number, variables, constants and invariants, as its own text has them."""

    number: int
    exported: TlaModule

    @property
    def instance(self) -> str:
        return f"M{self.number}"

    @property
    def variables(self) -> list[str]:
        (listed,) = re.findall(
            r"^vars == <<(.*?)>>", self.exported.module, re.DOTALL | re.MULTILINE
        )
        return [name.strip() for name in listed.split(",")]

    @property
    def constants(self) -> dict[str, str]:
        """The entity sorts, the sizes of ordered ones, and members with names; NONE is one for all."""
        found = dict(re.findall(r"^  (\w+) = (.*)$", self.exported.config, re.MULTILINE))
        found.pop("NONE", None)
        return found

    @property
    def invariants(self) -> list[str]:
        """All but those about steps that change nothing, which say ENABLED: that has no meaning here."""
        _, _, after = self.exported.config.partition("INVARIANTS\n")
        listed = re.match(r"(?:  \w+\n)*", after)
        assert listed is not None
        return [name for name in listed.group().split() if not name.endswith("_standing")]


def explore(tlc: Tlc, machines: list[tuple[Definition, Scope]]) -> list[Found]:
    """What TLC finds of each machine."""
    parts = [
        _Part(number, tla_module(replace(definition, name=f"Random{number}"), scope))
        for number, (definition, scope) in enumerate(machines)
    ]
    for part in parts:
        tlc.write(part.exported)
    tlc.write(TlaModule(NAME, _module(parts), _config(parts)))
    run = tlc.run(NAME, "-dump", str(tlc.directory / NAME))
    assert run.broken == (), run.text
    dump = (tlc.directory / f"{NAME}.dump").read_text(encoding="utf-8")
    states = Counter(re.findall(r"^/\\ which = (\d+)$", dump, re.MULTILINE))
    broken = set(re.findall(r'<<"broken", (\d+), "(\w+)">>', run.text))
    return [
        Found(states[str(p.number)], frozenset(n for i, n in broken if i == str(p.number)))
        for p in parts
    ]


def _module(parts: list[_Part]) -> str:
    variables = list(dict.fromkeys(v for part in parts for v in part.variables))
    constants = [f"{kind}_{part.number}" for part in parts for kind in part.constants]
    lines = [
        f"---- MODULE {NAME} ----",
        "EXTENDS TLC",
        f"CONSTANTS {', '.join(['NONE', *constants])}",
        f"VARIABLES {', '.join(['which', *variables])}",
        *(f"{part.instance} == {_instance(part)}" for part in parts),
        *("Init ==", *(f"  \\/ {_first(part, variables)}" for part in parts)),
        *("Next ==", *(f"  \\/ {_step(part, variables)}" for part in parts)),
        *("Told ==", *(f"  /\\ {_text(part)}" for part in parts)),
        "====",
    ]
    return "\n".join(lines) + "\n"


def _instance(part: _Part) -> str:
    given = ", ".join(f"{kind} <- {kind}_{part.number}" for kind in part.constants)
    return f"INSTANCE Random{part.number}{f' WITH {given}' if given else ''}"


def _first(part: _Part, variables: list[str]) -> str:
    idle = [f"{v} = 0" for v in variables if v not in part.variables]
    return " /\\ ".join([f"which = {part.number}", f"{part.instance}!Init", *idle])


def _step(part: _Part, variables: list[str]) -> str:
    idle = ["which", *(v for v in variables if v not in part.variables)]
    kept = f"UNCHANGED <<{', '.join(idle)}>>"
    return f"which = {part.number} /\\ {part.instance}!Next /\\ {kept}"


def _text(part: _Part) -> str:
    each = [
        f'({part.instance}!{name} \\/ PrintT(<<"broken", {part.number}, "{name}">>))'
        for name in part.invariants
    ]
    sign = " /\\ "
    return f"(which = {part.number} => {sign.join(each)})"


def _config(parts: list[_Part]) -> str:
    given = [f"{k}_{p.number} = {members}" for p in parts for k, members in p.constants.items()]
    constants = "\n  ".join(["NONE = NONE", *given])
    return f"INIT Init\nNEXT Next\nCONSTANTS\n  {constants}\nINVARIANT Told\n"
