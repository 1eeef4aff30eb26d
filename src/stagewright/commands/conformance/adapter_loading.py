"""Find the adapter of an implementation by what a user types: `module:factory` or `file.py:factory`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from stagewright.spec.errors import InputError, StagewrightError
from stagewright.spec.text.suggestions import did_you_mean

if TYPE_CHECKING:
    from stagewright.checker.conformance.adapter import AdapterFactory
    from stagewright.spec.definition import Definition
    from stagewright.spec.scope import Scope

RUNTIME = "runtime"  # the name of the shipped implementation


def adapter_factory(name: str, definition: Definition, scope: Scope) -> AdapterFactory:
    """What makes the adapter for each run.

    A factory, or an adapter class, is called without arguments; one that takes two gets the definition
    and the scope. `runtime` names the shipped runtime.

    Raises:
        InputError: nothing is found under that name, or it cannot be called so.
    """
    if name == RUNTIME:
        from stagewright.commands.conformance.runtime_adapter import runtime

        return runtime(definition, scope)
    place, _, wanted = name.rpartition(":")
    if not place or not wanted:
        raise InputError(
            f"--adapter {name}: this names no factory",
            help="write file.py:factory, module:factory, or `runtime`",
        )
    made = _member(_module(place), wanted, place)
    match _arguments_wanted(made):
        case 0:
            factory: AdapterFactory = made
            return factory
        case 2:
            return lambda: made(definition, scope)
        case _:
            raise InputError(
                f"--adapter {name}: `{wanted}` takes neither no argument nor two",
                help="a factory takes nothing, or the definition and the scope",
            )


def relative_to(file: str, name: str) -> str:
    """A name as `file` has it: a path in it starts where the file is."""
    place, colon, rest = name.partition(":")
    if not place.endswith(".py"):
        return name
    return f"{Path(file).resolve().parent / place}{colon}{rest}"


def _module(place: str) -> ModuleType:
    """Import a file or a module; what lies beside the file, or here, can be imported from it."""
    path = Path(place)
    beside = path.resolve().parent if place.endswith(".py") else Path.cwd()
    if str(beside) not in sys.path:
        sys.path.insert(0, str(beside))
    try:
        with redirect_stdout(sys.stderr):  # standard output is the command's own
            return _file(path) if place.endswith(".py") else importlib.import_module(place)
    except StagewrightError:
        raise
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{place} fails when it is imported: {type(error).__name__}: {error}", help="mend it"
        ) from error


def _file(path: Path) -> ModuleType:
    if not path.is_file():
        raise InputError(f"there is no file {path}", help="check the path")
    spec = importlib.util.spec_from_file_location(f"stagewright_adapter_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def _member(module: ModuleType, wanted: str, place: str) -> Callable[..., Any]:
    found = getattr(module, wanted, None)
    if callable(found):
        made: Callable[..., Any] = found
        return made
    known = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
    hint = did_you_mean(wanted, known)
    raise InputError(
        f"{place} has nothing to call named `{wanted}`",
        help=f"{hint}it has: {', '.join(known) or 'none'}",
    )


def _arguments_wanted(made: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(made).parameters.values()
    except ValueError:  # some of what is built in does not say
        return 0
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters)
