"""Writes the pages of machines: what a definition says, and what its older versions leave open."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from stagewright.commands.console.exit_codes import ExitCode
from stagewright.commands.console.machine_flags import seconds

if TYPE_CHECKING:
    from stagewright.commands.pages.machine_page import Page

_EXAMPLE = """\
examples:
  stagewright docs
  stagewright docs tablet tablet-migration --out pages
  stagewright docs --no-runs

Each machine has a page: its diagram, the tables of its states, its steps and properties, how its versions differ,
and the known bugs found in it. Each older version is checked, and the shortest run that violates a property is
written beside the page. All known bugs are searched for and listed, on a page for each folder of machines. Each design document
has a page with its sections, the properties that state them, and what shows that those are needed. This is how
`docs/machines` in the repository is generated."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``stagewright docs``."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = f"{_EXAMPLE}\n\n{parser.epilog or ''}"
    parser.add_argument("machine", nargs="*", help="shipped names (default: all)")
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("docs"),
        metavar="DIR",
        help="write the pages there (default: docs)",
    )
    parser.add_argument(
        "--mutants",
        type=Path,
        metavar="DIR",
        help="what `mutate --all --alone --out DIR` wrote, or `mutate MACHINE --property NAME --out DIR/MACHINE`, for all "
        "machines or some: merged into mutants.json beside the pages of documents",
    )
    parser.add_argument(
        "--no-runs",
        action="store_true",
        help="do not check the older versions, which takes the longest",
    )
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=120.0,
        metavar="S",
        help="stop after S seconds for each version that is checked (default: 120)",
    )


def execute(args: argparse.Namespace) -> int:
    """Write the pages."""
    from stagewright.commands.console.output import check_directory
    from stagewright.commands.pages.known_bugs import known_bugs_pages
    from stagewright.commands.pages.machine_page import index_of, page_of
    from stagewright.commands.pages.relations import made_of, seen_as
    from stagewright.commands.pages.runs import write_runs
    from stagewright.machines import REFINEMENTS, SHIPPED
    from stagewright.machines.known_bugs import KNOWN_BUGS, NOT_FOUND
    from stagewright.spec.loading import find

    check_directory("--out", args.out)
    names = args.machine or list(SHIPPED)
    for name in names:
        find(name, SHIPPED)  # all names are known, or nothing is written
    directory: Path = args.out / "machines"
    pages: list[Page] = []
    for name in names:
        page = page_of(name, SHIPPED, KNOWN_BUGS)
        pages.append(page)
        _write_page(page, directory)
        if not args.no_runs:
            for file in write_runs(name, SHIPPED, directory / name, args.timeout):
                print(f"written: {file}", file=sys.stderr)
    if not args.machine:
        refined, parts = seen_as(SHIPPED, REFINEMENTS), made_of(SHIPPED)
        _write(directory / "README.md", index_of(pages, NOT_FOUND, refined, parts))
        _write_documents(args.out, args.mutants)
    if not args.machine and not args.no_runs:
        called = {where: name for name, where in SHIPPED.items()}
        found = known_bugs_pages(KNOWN_BUGS, NOT_FOUND, called, args.timeout)
        for name, text in found.items():
            _write(args.out / "known-bugs" / name, text)
    return ExitCode.HOLDS


def _write_documents(out: Path, mutants: Path | None) -> None:
    """A page a design document, from what is known of mutants."""
    from stagewright.commands.pages.documents import DocumentPages, kept_from, measured_in
    from stagewright.machines import SHIPPED
    from stagewright.machines.documents import DOCUMENTS
    from stagewright.machines.known_bugs import KNOWN_BUGS

    directory = out / "documents"
    file = directory / "mutants.json"
    if mutants is not None:
        kept = kept_from(mutants, SHIPPED, measured_in(file))
        _write(file, json.dumps(kept, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
    pages = DocumentPages(SHIPPED, KNOWN_BUGS, measured_in(file), out / "machines")
    for document in DOCUMENTS:
        _write(directory / f"{document.id}.md", pages.page_of(document))


def _write_page(page: Page, directory: Path) -> None:
    from stagewright.commands.pages.dot import diagram_dot
    from stagewright.commands.pages.graphviz import svg_of

    _write(directory / f"{page.name}.md", page.markdown)
    if page.diagram is not None:
        _write(directory / f"{page.name}.svg", svg_of(diagram_dot(page.diagram)))


def _write(file: Path, text: str) -> None:
    from stagewright.checker.counterexample.files import write_whole

    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, text)
    print(f"written: {file}", file=sys.stderr)
