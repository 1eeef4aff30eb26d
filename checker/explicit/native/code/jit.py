"""From LLVM's text to callable functions of this process, with the object code cached on disk.

The only place that knows `llvmlite`. A cache that cannot be read or written costs time, never a result.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import mmap
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

_GOOD = 1  # common parts are shared already: more costs compile time and gains nothing
_QUICK = 0  # a tenth of the compile time, for code that runs half as fast
_CACHE_VARIABLE = "STAGEWRIGHT_CACHE"  # a folder; empty: no cache
_LARGEST_CACHE = 256 << 20


class Module:
    """Compiled functions, alive as long as this object is."""

    def __init__(self, text: str, *, quick: bool = False) -> None:
        """`quick`: be ready soon, with code that is about half as fast."""
        import llvmlite.binding as llvm

        optimisation = _QUICK if quick else _GOOD
        key = _key(text, optimisation)
        code = _cached(key)
        if code is None:
            code = _compiled(text, _target_machine(optimisation))
            _keep(key, code)
        self._engine: Any = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _new_machine(_GOOD))
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function that is not local begins."""
        found: int = self._engine.get_function_address(name)
        assert found, name
        return found

    def function(self, name: str, arguments: int) -> Callable[..., int]:
        """A function of so many 64-bit numbers or addresses that returns a 64-bit number.

        Python's other threads run while it does.
        """
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * arguments)
        return kind(self.address(name))


@cache
def available() -> bool:
    """Whether code can be compiled for this machine, and memory be reserved as it needs it."""
    if not hasattr(mmap, "MAP_PRIVATE"):
        return False
    try:
        _target_machine(_GOOD)
    except Exception:  # noqa: BLE001 - no llvmlite, or none for this processor: the NumPy engine serves
        return False
    return True


@cache
def _target_machine(optimisation: int) -> Any:
    return _new_machine(optimisation)


def _new_machine(optimisation: int) -> Any:
    """What code is made for; an execution engine takes it for its own and frees it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=optimisation,
        jit=True,
    )


@cache
def _fingerprint() -> str:
    """What, besides the text and its optimisation, decides the code."""
    import llvmlite
    import llvmlite.binding as llvm

    cpu = (llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten())
    return repr((llvmlite.__version__, llvm.llvm_version_info, *cpu))


def _key(text: str, optimisation: int) -> str:
    return hashlib.sha256(f"{_fingerprint()} {optimisation}\n{text}".encode()).hexdigest()


def _compiled(text: str, machine: Any) -> bytes:
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(text)
    module.triple = llvm.get_process_triple()
    module.data_layout = str(machine.target_data)
    module.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    inline = llvm.create_new_module_pass_manager()
    inline.add_always_inliner_pass()
    inline.run(module, builder)
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
    code: bytes = machine.emit_object(module)
    return code


def cache_folder() -> Path | None:
    """Where object code is kept; None if it is not to be kept."""
    chosen = os.environ.get(_CACHE_VARIABLE)
    if chosen is not None:
        return Path(chosen) if chosen else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "stagewright" / "native"
    except RuntimeError:  # a user without a home, as containers have them
        return None


def is_kept(text: str) -> bool:
    """Whether good code of this text is at hand."""
    folder = cache_folder()
    try:
        return folder is not None and (folder / _key(text, _GOOD)).exists()
    except OSError:
        return False


def _cached(key: str) -> bytes | None:
    folder = cache_folder()
    if folder is None:
        return None
    try:
        sealed = (folder / key).read_bytes()
    except OSError:
        return None
    seal, code = sealed[:32], sealed[32:]
    if hashlib.sha256(code).digest() != seal:  # a torn file is no code
        return None
    with contextlib.suppress(OSError):  # a cache may be another user's, or read-only
        os.utime(folder / key)
    return code


def _keep(key: str, code: bytes) -> None:
    folder = cache_folder()
    if folder is None:
        return
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            Path(name).replace(folder / key)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        _tidy(folder)


@cache  # once a process: looking at many files takes long
def _tidy(folder: Path) -> None:
    """Remove what was used longest ago once the cache grows large."""
    files = [(p.stat(), p) for p in folder.iterdir()]
    size = sum(s.st_size for s, _ in files)
    for status, path in sorted(files, key=lambda f: f[0].st_mtime):
        if size <= _LARGEST_CACHE:
            break
        path.unlink(missing_ok=True)
        size -= status.st_size
