"""The rooms of a package lie one above the other: imports run down, no folder is too large to be read at a glance."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import pytest
from tests.house.test_layout import PACKAGES, ROOT, facts_of

pytestmark = pytest.mark.xdist_group("house")

# From the bottom to the top: a room imports those before it. A module beside the rooms has a dot before its name.
# What is not named lies on top, each by itself: it imports any room that is named, and none imports it.
ORDER = {
    "spec": (
        ".source .errors .entities .values .sorts .nodes .definition derived .scope terms declarations "
        ".machine .define .verdict .trace text grounding .interpreter .loading .refinement .known_bugs"
    ),
    "traces": (
        "events automaton engines .options readers mapping databases replay coverage inputs explain "
        "cross_entity report incremental pipeline .validate"
    ),
    "checker": (
        ".limits .processes .vacuity explicit symmetry .engines .goals .liveness .fair_runs .verdicts counterexample "
        "tla conformance .initial .coverage refinement .check .exercise symbolic .prove mutation "
        ".reached_edges sharded"
    ),
    "machines": "couchbase scylladb recorded yugabytedb systems documents refinements known_bugs",
}
# What runs nowhere: a type checker is told that a body writes the members of entities as terms, which know entities.
TYPES_ALONE = {("spec/entities.py", "terms")}
MOST = 17  # modules in a folder, `__init__` among them


def room_of(module: str, package: str) -> str:
    """The room that a module of a package lies in, or the module itself if it lies beside the rooms."""
    first = module.removeprefix(f"stagewright.{package}.").partition(".")[0]
    return first if (ROOT / package / first).is_dir() else f".{first}"


def imports_of(path: Path, package: str) -> set[str]:
    """The rooms of its own package that a file imports from."""
    names = facts_of(path).imports
    return {room_of(n, package) for n in names if n.startswith(f"stagewright.{package}.")}


def imports_for_types(path: Path, package: str) -> set[str]:
    """The rooms that a file imports from where a type checker alone looks."""
    tree = ast.parse(path.read_text("utf-8"))
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and _asks_for_types(n.test)]
    names = [n.module or "" for b in blocks for n in b.body if isinstance(n, ast.ImportFrom)]
    return {room_of(n, package) for n in names}


def _asks_for_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def upward(package: str) -> list[str]:
    """The imports of a package that run up."""
    order = ORDER[package].split()
    floors = {room: floor for floor, room in enumerate(order)}
    top = len(order)
    found: list[str] = []
    for path in sorted((ROOT / package).rglob("*.py")):
        if path == ROOT / package / "__init__.py":
            continue
        inner = path.relative_to(ROOT / package)
        here = f".{inner.stem}" if inner.parent == Path() else inner.parts[0]
        found += [
            f"{path.relative_to(ROOT)} imports {there}"
            for there in sorted(imports_of(path, package) - {here})
            if floors.get(there, top + 1) > floors.get(here, top)
            and (path.relative_to(ROOT).as_posix(), there) not in TYPES_ALONE
        ]
    return found


@pytest.mark.parametrize("package", ORDER)
def test_imports_between_rooms_run_down(package: str) -> None:
    assert upward(package) == []


@pytest.mark.parametrize(("file", "room"), sorted(TYPES_ALONE))
def test_an_import_for_types_runs_nowhere(file: str, room: str) -> None:
    path = ROOT / file
    package = file.partition("/")[0]
    lines = path.read_text("utf-8").count(f"from stagewright.{package}.{room}.")
    assert room in imports_for_types(path, package)
    assert lines == 1


@pytest.mark.parametrize("package", ORDER)
def test_every_room_that_is_named_is_there(package: str) -> None:
    for room in ORDER[package].split():
        name = f"{room[1:]}.py" if room.startswith(".") else f"{room}/__init__.py"
        assert (ROOT / package / name).is_file(), room


def test_no_folder_has_too_many_modules() -> None:
    files = [path for top in (*PACKAGES, "src", "tests") for path in (ROOT / top).rglob("*.py")]
    sizes = Counter(path.parent.relative_to(ROOT).as_posix() for path in files)
    large = {folder: size for folder, size in sizes.items() if size > MOST}
    assert large == {}
