"""The repository has the shape that it promises: folders, links, imports, sizes."""

import ast
import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from stagewright.machines import SHIPPED

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("spec", "machines", "checker", "impl", "traces")
MAY_IMPORT = {
    "spec": {"spec"},
    "machines": {"machines", "spec"},
    "checker": {"checker", "spec"},
    "impl": {"impl", "machines", "spec"},
    "traces": {"traces", "spec"},
    "traces/databases": {"traces", "machines", "spec"},  # readers of what databases write
}
LONGEST_MODULE = 500  # lines
LONGEST_DEFINITION = (
    1_600  # a machine is one class, at most its record, its promises and its steps apart
)
LONGEST_FUNCTION = 70  # lines
LONGEST_LOOP = 105  # lines of a compiled loop, which would pass a dozen arrays to each of its parts
pytestmark = pytest.mark.xdist_group("house")  # in one process a file is parsed once

NAMELESS = {"util", "utils", "helper", "helpers", "misc", "common"}


def modules_of(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    assert found
    return found


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Facts:
    """What the tests of the house ask of a file; its tree is not kept, for thousands take their time."""

    documented: bool
    lines: int
    imports: tuple[str, ...]
    relative: tuple[int, ...]  # lines with relative imports
    too_long: tuple[str, ...]  # functions


@cache
def facts_of(path: Path) -> Facts:
    """A file, parsed once for all that look at it."""
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    return Facts(
        documented=bool(ast.get_docstring(tree)),
        lines=len(text.splitlines()),
        imports=tuple(imported_names(nodes)),
        relative=tuple(n.lineno for n in nodes if isinstance(n, ast.ImportFrom) and n.level),
        too_long=tuple(
            n.name
            for n in nodes
            if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
            and (n.end_lineno or n.lineno) - n.lineno >= longest(n)
        ),
    )


def imported_names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every module that a file may import: also inside functions, and by `import_module`."""
    for node in nodes:
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module="stagewright", names=names):
                yield from (f"stagewright.{alias.name}" for alias in names)
            case ast.ImportFrom(level=0, module=str(module)):
                yield module
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module"),
                args=[ast.Constant(value=str(module)), *_],
            ):
                yield module
            case _:
                pass


def folder_of(path: Path) -> str:
    """The folder of the repository, or room of one, whose imports are limited."""
    room = "/".join(path.relative_to(ROOT).parts[:2])
    return room if room in MAY_IMPORT else room.partition("/")[0]


def forbidden_imports(folder: str, imports: Iterable[str]) -> list[str]:
    """The imports of a file in `folder` that the direction of imports forbids.

    What knows machines is found by its name alone: nothing else of `traces` imports `traces/databases`.
    """
    fenced = {*PACKAGES, "commands", "__main__"}
    forbidden: list[str] = []
    for name in imports:
        top, _, rest = name.partition(".")
        inner = rest.partition(".")[0]
        if top in PACKAGES:
            forbidden.append(f"{name} (write stagewright.{name})")
        elif (top == "stagewright" and inner in fenced - MAY_IMPORT[folder]) or (
            folder == "traces" and rest.startswith("traces.databases")
        ):
            forbidden.append(name)
    return forbidden


@pytest.mark.parametrize("folder", PACKAGES)
def test_package_is_a_link_to_a_folder_of_the_repository(folder: str) -> None:
    link = ROOT / "src" / "stagewright" / folder
    assert link.is_symlink()
    assert str(link.readlink()) == f"../../{folder}"
    assert (link / "__init__.py").is_file()
    assert (link / "py.typed").is_file()


def test_top_level_folders_are_exactly_these() -> None:
    """Only what is part of the project counts: a user's reports may lie beside it."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    folders = {name.partition("/")[0] for name in listed.stdout.splitlines() if "/" in name}
    visible = {name for name in folders if not name.startswith(".")}
    assert visible - {"examples"} == {*PACKAGES, "docs", "src", "tests"}


@pytest.mark.parametrize("script", ["run", ".ci/run"])
def test_script_can_be_executed(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK)


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_run_one_way(package: str) -> None:
    forbidden = {
        named(path): forbidden_imports(folder_of(path), facts_of(path).imports)
        for path in modules_of(package)
    }
    assert {name: found for name, found in forbidden.items() if found} == {}


@pytest.mark.parametrize(
    ("folder", "source"),
    [
        ("spec", "import stagewright.machines"),
        ("spec", "from stagewright import checker"),
        ("checker", "def f():\n    from stagewright.impl.node import Node"),
        ("traces", "import importlib\nimportlib.import_module('stagewright.checker')"),
        ("impl", "import stagewright.commands.checking.check"),
        ("impl", "from machines import tablet"),
        ("traces", "import stagewright.machines.recorded"),
        ("traces", "from stagewright.traces.databases import names"),
        ("traces/databases", "from stagewright.checker import check"),
    ],
)
def test_forbidden_import_is_found(folder: str, source: str) -> None:
    imports = imported_names(ast.walk(ast.parse(source)))
    assert len(forbidden_imports(folder, imports)) == 1


def longest(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    loop = any(isinstance(d, ast.Name) and d.id == "compiled" for d in function.decorator_list)
    return LONGEST_LOOP if loop else LONGEST_FUNCTION


def faults_of(path: Path) -> list[str]:
    """What a reader stumbles over in a file, in words."""
    facts = facts_of(path)
    machine = path.is_relative_to(ROOT / "machines")
    most = LONGEST_DEFINITION if machine else LONGEST_MODULE
    found = [] if facts.documented else ["it does not say in one sentence what it is"]
    found += [f"it has more than {most} lines"] if facts.lines > most else []
    found += ["its name does not say what it holds"] if path.stem in NAMELESS else []
    found += [f"line {line}: imports are absolute" for line in facts.relative]
    return found + [f"{name} has too many lines" for name in facts.too_long]


@pytest.mark.parametrize("folder", [*PACKAGES, "src", "tests"])
def test_modules_are_tidy(folder: str) -> None:
    faults = {named(path): faults_of(path) for path in modules_of(folder)}
    assert {name: found for name, found in faults.items() if found} == {}


def test_the_script_is_tidy() -> None:
    assert faults_of(ROOT / "run") == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("x = 1\n", "one sentence"),
        ('"""It."""\n' + "\n" * LONGEST_MODULE, "more than 500 lines"),
        ('"""It."""\nfrom . import x\n', "line 2: imports are absolute"),
        ('"""It."""\ndef f():\n' + "    x = 1\n" * LONGEST_FUNCTION, "f has too many lines"),
    ],
)
def test_what_is_untidy_is_found(source: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "it.py").write_text(source)
    [found] = faults_of(tmp_path / "it.py")
    assert fault in found


def test_a_machine_is_in_the_module_of_its_name() -> None:
    """What the executable system records is several machines a file, by what is recorded."""
    elsewhere = [
        name
        for name, place in SHIPPED.items()
        if not name.startswith("recorded-")
        and place.partition(":")[0].rpartition(".")[2] != name.replace("-", "_")
    ]
    assert elsewhere == []
