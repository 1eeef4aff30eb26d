"""What an answer rests on, as SMT-LIB scripts that any other solver can check again."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from stagewright.checker.symbolic.claims import Claim
from stagewright.checker.symbolic.unrolling import Unrolling
from stagewright.checker.symbolic.z3_terms import Term, smtlib
from stagewright.spec.errors import InputError
from stagewright.spec.text.counting import counted


@dataclass(frozen=True)
class Certificate:
    """The solver's answers about one claim.

    `depths`: no real run breaks the claim at these depths. `broken_at`: one does at this depth. `no_run_of`:
    no run has so many steps. `k`: its induction step, with `hypotheses` assumed before the end and `lemmas`
    everywhere; unsatisfiable if `inductive`, else satisfiable.
    """

    claim: Claim
    depths: range
    broken_at: int | None = None
    no_run_of: int | None = None
    k: int | None = None
    inductive: bool = False
    hypotheses: tuple[Claim, ...] = ()
    lemmas: tuple[Claim, ...] = ()
    simple: bool = False


@dataclass(frozen=True)
class Script:
    """One verification condition: its file's name, and the text that asks for it."""

    name: str
    status: str  # what a solver should answer: sat or unsat
    text: str


def scripts(certificate: Certificate, unrolling: Unrolling) -> Iterator[Script]:
    """The verification conditions of one certificate."""
    claim, slug = certificate.claim, _slug(certificate.claim.name)
    for depth in certificate.depths:
        what = f"no run of {counted(depth, 'step')} from an initial state breaks `{claim.name}` at its end"
        formulas = [*_start(unrolling, depth), _broken(unrolling, claim, depth)]
        yield _script(unrolling, f"{slug}.base-{depth}", "unsat", what, formulas)
    if certificate.broken_at is not None:
        depth = certificate.broken_at
        what = f"some run of {counted(depth, 'step')} from an initial state breaks `{claim.name}` at its end"
        formulas = [*_start(unrolling, depth), _broken(unrolling, claim, depth)]
        yield _script(unrolling, f"{slug}.broken-{depth}", "sat", what, formulas)
    if certificate.no_run_of is not None:
        depth = certificate.no_run_of
        what = f"no run from an initial state has {counted(depth, 'step')}"
        yield _script(unrolling, f"{slug}.no-run-{depth}", "unsat", what, _start(unrolling, depth))
    if certificate.k is not None:
        yield _step_script(certificate, unrolling, certificate.k)


def _step_script(certificate: Certificate, unrolling: Unrolling, k: int) -> Script:
    claim = certificate.claim
    formulas = [unrolling.any_state(t) for t in range(k + 1)]
    formulas += [unrolling.step(t) for t in range(k)]
    formulas += [unrolling.holds(c, t) for c in certificate.hypotheses for t in range(k)]
    formulas += [unrolling.holds(c, t) for c in certificate.lemmas for t in range(k + 1)]
    if certificate.simple:
        formulas += [unrolling.differ(a, b) for b in range(k) for a in range(b)]
    formulas.append(_broken(unrolling, claim, k))
    assumed = ", ".join(f"`{c.name}`" for c in certificate.hypotheses) or "nothing"
    known = ", ".join(f"`{c.name}`" for c in certificate.lemmas) or "nothing"
    what = (
        f"induction step of `{claim.name}` with k = {k}\n"
        f"assumed before the end: {assumed}\nproved before: {known}"
    )
    status = "unsat" if certificate.inductive else "sat"
    return _script(unrolling, f"{_slug(claim.name)}.step-{k}", status, what, formulas)


def _start(unrolling: Unrolling, depth: int) -> list[Term]:
    """Runs of so many steps from an initial state."""
    steps = [unrolling.step(t) for t in range(depth)]
    return [unrolling.initial(), unrolling.any_state(0), *steps]


def _broken(unrolling: Unrolling, claim: Claim, end: int) -> Term:
    return unrolling.terms.not_(unrolling.holds(claim, end))


def _script(
    unrolling: Unrolling, name: str, status: str, what: str, formulas: list[Term]
) -> Script:
    model = unrolling.model
    place = f"{model.definition.name} at scope {model.scope}"
    text = smtlib(unrolling.terms, formulas, status, [place, what, f"expected: {status}"])
    return Script(f"{name}.smt2", status, text)


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", name)


def make_directory(directory: Path) -> None:
    """Make sure that files can be written there, before the work is done that they are to hold.

    Raises:
        InputError: they cannot.
    """
    with _refusing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass


def write_scripts(found: Iterable[Script], directory: Path) -> list[Path]:
    """Write every script, each complete or not at all.

    Raises:
        InputError: the directory cannot be written to.
    """
    written: list[Path] = []
    make_directory(directory)
    with _refusing(directory):
        for script in found:
            target = directory / script.name
            partial = target.with_suffix(".partial")
            partial.write_text(script.text, encoding="utf-8")
            written.append(partial.replace(target))
    return written


@contextmanager
def _refusing(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{directory}: cannot write SMT-LIB files here: {error.strerror}",
            help="name a directory that can be created or written to",
        ) from error
