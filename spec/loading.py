"""Find a machine by what a user types: a shipped name, a file with an optional class, or a module."""

from __future__ import annotations

import importlib
import importlib.util
import linecache
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from stagewright.spec.declarations.import_failures import import_failure
from stagewright.spec.define import define
from stagewright.spec.definition import Definition
from stagewright.spec.errors import InputError, StagewrightError, UnknownNameError, did_you_mean
from stagewright.spec.machine import Machine

IN_A_FOLDER = "name a file in it: `path/to/machine.py`, maybe with `:Class`"


def load(name: str, profile: str = "", shipped: Mapping[str, str] | None = None) -> Definition:
    """The definition of the machine that `name` names, under a profile (by default its newest).

    Raises:
        StagewrightError: nothing is found under that name, or its definition is wrong.
    """
    machine = find(name, shipped or {})
    with redirect_stdout(sys.stderr):  # a body that prints does so while it is defined
        return define(machine, profile)


def find(name: str, shipped: Mapping[str, str]) -> type[Machine]:
    """The machine class behind `tablet`, `my/file.py`, `my/file.py:Counter` or `package.module:Counter`.

    `shipped` maps short names to `module:Class`.
    """
    return find_in_module(name, shipped)[0]


def find_in_module(name: str, shipped: Mapping[str, str]) -> tuple[type[Machine], ModuleType]:
    """The same, with the module that was named or found: it may declare more than the machine."""
    if name in shipped:
        module_name, _, class_name = shipped[name].partition(":")
        module = importlib.import_module(module_name)
        return _class_in(module, class_name, name), module
    place, _, class_name = name.partition(":")
    if place.endswith(".py"):
        module = _file(Path(place))
        return _class_in(module, class_name, place), module
    if class_name and place:
        module = _module(place)
        return _class_in(module, class_name, place), module
    if name and Path(name).is_dir():
        raise InputError(f"{name} is a folder", help=IN_A_FOLDER)
    hint = did_you_mean(name, shipped)
    raise UnknownNameError(
        f"there is no machine `{name}`",
        help=f"{hint}`stagewright list` names the {len(shipped)} shipped ones; "
        "or name a file: `path/to/machine.py:Class`",
    )


def module_of(name: str) -> ModuleType:
    """The module of `my/file.py`, `my/file.py:Counter` or `package.module:Counter`.

    Raises:
        StagewrightError: there is none, or it fails when it is imported.
    """
    place, _, _ = name.partition(":")
    return _file(Path(place)) if place.endswith(".py") else _module(place)


def machines_in(module: ModuleType) -> dict[str, type[Machine]]:
    """The machines that a module itself defines, by name in their order."""
    return {n: c for n, c in _machines(module).items() if c.__module__ == module.__name__}


def _machines(module: ModuleType) -> dict[str, type[Machine]]:
    return {
        n: c
        for n, c in vars(module).items()
        if isinstance(c, type) and issubclass(c, Machine) and c is not Machine
    }


def _module(place: str) -> ModuleType:
    if place.startswith("."):
        raise InputError(f"`{place}` is a relative name", help="name a file or a module")
    try:
        with redirect_stdout(sys.stderr):  # standard output belongs to the program that loads it
            return importlib.import_module(place)
    except StagewrightError:
        raise
    except (ImportError, SystemExit) as error:
        if Path(place).is_dir():
            raise InputError(f"{place} is a folder", help=IN_A_FOLDER) from error
        raise InputError(
            f"cannot import `{place}`: {error}", help="name a file or a module"
        ) from None
    except Exception as error:
        raise import_failure(place, "", error) from error


class _AsWritten(SourceFileLoader):
    """Compiles a file as it is now: cached bytecode of an edit within the same second would be taken for it.

    Its lines are kept as they were compiled: what another file of that name had, or what an edit has made of it since,
    would put errors and counterexamples at wrong lines.
    """

    def get_code(self, fullname: str) -> CodeType:
        """The code of the file's text."""
        data = self.get_data(self.path)
        code = self.source_to_code(data, self.get_filename(fullname))
        lines = importlib.util.decode_source(data).splitlines(keepends=True)
        for name in (self.path, str(Path(self.path).absolute())):
            linecache.cache[name] = (len(data), None, lines, name)
        return code


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError(f"there is no file {path}", help="check the path")
    beside = str(path.resolve().parent)
    if beside not in sys.path:
        # At the end: what lies beside the file hides nothing that is installed.
        sys.path.append(beside)
    # A module name of its own, so that a user's `tablet.py` cannot shadow anything.
    name = f"stagewright_user_{abs(hash(str(path.resolve())))}"
    spec = importlib.util.spec_from_file_location(name, path, loader=_AsWritten(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with redirect_stdout(sys.stderr):  # standard output belongs to the program that loads it
            spec.loader.exec_module(module)
    except StagewrightError:
        raise
    except SyntaxError as error:
        line = "" if error.lineno is None else f":{error.lineno}"
        raise InputError(f"{path}{line}: {error.msg}", help="mend the file") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a Python text file", help="save it as UTF-8") from None
    except (Exception, SystemExit) as error:
        raise import_failure(str(path), str(path), error) from error
    return module


def _class_in(module: ModuleType, class_name: str, place: str) -> type[Machine]:
    machines = _machines(module)
    if class_name:
        if class_name in machines:
            return machines[class_name]
        hint = did_you_mean(class_name, machines)
        raise UnknownNameError(
            f"{place} has no machine `{class_name}`",
            help=f"{hint}it has: {', '.join(machines) or 'none'}",
        )
    own = list(machines_in(module).values())
    if len(own) == 1:
        return own[0]
    if not own:
        raise InputError(
            f"{place} defines no machine", help="derive a class from stagewright.spec.Machine"
        )
    names = ", ".join(c.__name__ for c in own)
    raise InputError(
        f"{place} defines several machines: {names}", help=f"write {place}:{own[-1].__name__}"
    )
