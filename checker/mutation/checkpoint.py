"""A directory of what became of mutants: a run that is cut off goes on from there.

Each line is one mutant of one definition at its scopes: a changed definition, other scopes or another version of
Stagewright begin anew beside it. What is undecided is not kept, since the next run may have more time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import stagewright
from stagewright.checker.mutation.changes.mutants import Mutant
from stagewright.checker.mutation.evaluation import Evaluation, Fate
from stagewright.spec.definition import Definition
from stagewright.spec.scope import Scope

_RESULTS = "mutants.jsonl"
_Name = tuple[str, int]  # a mutant's id, and how many mutants before it have the same


class Checkpoint:
    """The evaluations of some mutants in a directory, which may hold those of other definitions as well."""

    def __init__(
        self,
        directory: Path,
        definition: Definition,
        scopes: Sequence[Scope],
        mutants: Sequence[Mutant],
    ) -> None:
        asked = (stagewright.__version__, definition.fingerprint(), *sorted(map(str, scopes)))
        self._file = directory / _RESULTS
        self._key = sha256("\n".join(asked).encode()).hexdigest()[:16]
        self._names = list(_named(mutants))
        self.known = self._read()

    def keep(self, index: int, evaluation: Evaluation) -> None:
        """Write what became of one mutant, unless that is open."""
        if evaluation.fate is Fate.UNDECIDED:
            return
        name, number = self._names[index]
        self._file.parent.mkdir(parents=True, exist_ok=True)
        fields = {**asdict(evaluation), "fate": evaluation.fate.value}
        line = {"of": self._key, "mutant": name, "number": number, "evaluation": fields}
        with self._file.open("a", encoding="utf-8") as sink:
            sink.write(json.dumps(line, ensure_ascii=False) + "\n")

    def _read(self) -> Mapping[int, Evaluation]:
        """By the mutants' indices; the line at which a run was cut off is ended, so that another can follow."""
        if not self._file.exists():
            return {}
        text = self._file.read_text(encoding="utf-8", errors="replace")
        if text and not text.endswith("\n"):
            with self._file.open("a", encoding="utf-8") as sink:
                sink.write("\n")
        indices = {name: index for index, name in enumerate(self._names)}
        found: dict[int, Evaluation] = {}
        for line in text.splitlines():
            kept = _parsed(line)
            if kept.get("of") == self._key:
                index = indices.get((kept["mutant"], kept["number"]))
                if index is not None:
                    found[index] = _evaluation(kept["evaluation"])
        return found


def _named(mutants: Sequence[Mutant]) -> Iterator[_Name]:
    before: Counter[str] = Counter()
    for mutant in mutants:
        yield mutant.id, before[mutant.id]
        before[mutant.id] += 1


def _parsed(line: str) -> dict[str, Any]:
    """What a line holds; nothing of one that is cut off."""
    try:
        found = json.loads(line)
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _evaluation(fields: Mapping[str, Any]) -> Evaluation:
    lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
    return Evaluation(**{**fields, **lists, "fate": Fate(fields["fate"])})
