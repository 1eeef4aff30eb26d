"""The embedded engine: documents and views in a folder, from the first line to the last crash."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from stagewright.commands import run_command_line
from stagewright.impl.storage.folders import sync_folder
from stagewright.impl.view_engine import View, ViewEngine, ViewEngineError, doc, emit, item, meta_id
from stagewright.impl.view_engine.design import catalog as catalog_module
from stagewright.impl.view_engine.design.declared_text import parse_declared
from stagewright.impl.view_engine.design.design import DesignDocument
from stagewright.impl.view_engine.file.disk import RealDisk
from stagewright.impl.view_engine.tree.check import check_file

BY_CITY = View(emit([doc.country, doc.city], doc.people), "_sum")


def names_of(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "@indexes" / "default").iterdir())


def test_ten_lines_make_a_persistent_index(tmp_path: Path) -> None:
    with ViewEngine(tmp_path / "data") as engine:
        engine.put("oslo", {"country": "NO", "city": "Oslo", "people": 700_000})
        engine.put_many({"bergen": {"country": "NO", "city": "Bergen", "people": 290_000}})
        engine.put("rome", {"country": "IT", "city": "Rome", "people": 2_800_000})
        engine.define("places", {"by_city": BY_CITY})
        [total] = engine.query("places", "by_city")
        assert total.value == 3_790_000
        engine.delete("rome")
        found = engine.query("places", "by_city", group_level=1)
        assert [(row.key, row.value) for row in found] == [(["NO"], 990_000)]
    with ViewEngine(tmp_path / "data") as engine:  # the index is still there
        assert engine.group("places").pending_changes() == 0
        rows = engine.query("places", "by_city", reduce=False, stale="ok", descending=True)
        assert [(row.id, row.key[1]) for row in rows] == [("oslo", "Oslo"), ("bergen", "Bergen")]
        assert engine.get("oslo")["people"] == 700_000
        assert engine.get("rome") is None


def test_equal_definitions_share_one_file_and_the_last_user_deletes_it(tmp_path: Path) -> None:
    with ViewEngine(tmp_path) as engine:
        engine.define("a", {"x": BY_CITY, "y": View(emit(doc.city))})
        engine.define("b", {"y": View(emit(doc.city)), "x": View(*vars(BY_CITY).values())})
        assert engine.group("a") is engine.group("b")
        assert len(names_of(tmp_path)) == 1
        engine.drop("a")
        assert len(names_of(tmp_path)) == 1
        engine.define("b", {"x": View(emit(doc.country))})
        engine.query("b", "x")
        assert len(names_of(tmp_path)) == 1
        engine.drop("b")
        assert names_of(tmp_path) == []
        with pytest.raises(ViewEngineError, match="there is no design document b; there are none"):
            engine.query("b", "x")


def test_views_with_equal_map_functions_share_a_tree() -> None:
    design = DesignDocument("d", {"sum": BY_CITY, "count": View(BY_CITY.map, "_count")})
    assert len(design.shapes) == 1
    assert [r.name for r in design.shapes[0].reducers] == ["_count", "_sum"]
    other = DesignDocument("other", {"count": View(BY_CITY.map, "_count"), "sum": BY_CITY})
    assert other.signature == design.signature
    assert DesignDocument("d", {"sum": BY_CITY}).signature != design.signature


def test_query_goes_on_with_the_old_index_while_the_definition_changes(tmp_path: Path) -> None:
    with ViewEngine(tmp_path) as engine:
        engine.put_many((f"d{n}", {"n": n}) for n in range(2000))
        engine.define("d", {"v": View(emit(doc.n))})
        rows = engine.stream("d", "v")
        assert next(rows).key == 0
        engine.define("d", {"v": View(emit([doc.n], 1), "_count")})
        assert engine.query("d", "v").rows[0].value == 2000
        assert [row.key for row in rows] == list(range(1, 2000))
        assert len(names_of(tmp_path)) == 1


@pytest.mark.parametrize("step", range(6))
def test_crash_at_any_step_of_a_change_leaves_no_unused_file_and_loses_none(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = {"v": View(emit(doc.n))}, {"v": View(emit([doc.n]))}
    with ViewEngine(tmp_path) as engine:
        engine.put_many({"a": {"n": 1}})
        engine.define("d", old)
        engine.query("d", "v")
    steps = iter(range(100))

    class CrashError(BaseException):
        pass

    def crashing(work: Any) -> Any:
        def run(*arguments: Any, **named: Any) -> Any:
            if next(steps) == step:
                raise CrashError
            return work(*arguments, **named)

        return run

    with ViewEngine(tmp_path) as engine, monkeypatch.context() as patch:
        for name in ("replace", "unlink"):
            patch.setattr(Path, name, crashing(getattr(Path, name)))
        for name in ("fsync", "open"):
            patch.setattr(os, name, crashing(getattr(os, name)))
        patch.setattr(catalog_module, "sync_folder", crashing(sync_folder))
        try:
            engine.define("d", new)
            engine.query("d", "v")
        except CrashError:
            pass
    with ViewEngine(tmp_path) as engine:
        key = engine.query("d", "v").rows[0].key
        assert key in (1, [1])
        assert len(names_of(tmp_path)) == 1


def test_python_functions_are_defined_again_after_opening(tmp_path: Path) -> None:
    views = {
        "v": View(lambda d, m: [(d["n"] * 2, m["id"])], lambda keys, values, again: len(values))
    }
    with ViewEngine(tmp_path) as engine:
        engine.put("a", {"n": 4})
        engine.define("d", views)
        assert engine.query("d", "v", reduce=False).rows[0][:2] == (8, "a")
        assert engine.query("d", "v").rows[0].value == 1
    with ViewEngine(tmp_path) as engine:
        assert engine.designs() == {"d": ["v"]}
        with pytest.raises(ViewEngineError, match="define it again"):
            engine.query("d", "v")
        engine.define("d", views)
        assert engine.group("d").pending_changes() == 0


def test_folder_serves_one_process(tmp_path: Path) -> None:
    with ViewEngine(tmp_path), pytest.raises(ViewEngineError, match="open in another process"):
        ViewEngine(tmp_path)


def test_readers_and_writers_work_at_the_same_time(tmp_path: Path) -> None:
    failures: list[BaseException] = []
    with ViewEngine(tmp_path, partitions=4) as engine:
        engine.define("d", {"v": View(emit(doc.n, doc.n), "_count")})
        done = threading.Event()

        def write() -> None:
            for n in range(30):
                engine.put_many((f"d{n}-{i}", {"n": n}) for i in range(10))
            done.set()

        def read() -> None:
            seen = 0
            try:
                while not done.is_set():
                    rows = engine.query("d", "v").rows
                    count = rows[0].value if rows else 0
                    assert count >= seen
                    seen = count
            except BaseException as error:  # noqa: BLE001 - fails the test
                failures.append(error)

        threads = [threading.Thread(target=work) for work in (write, read, read)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert engine.query("d", "v").rows[0].value == 300


_NURSERY = """
import os, sys
from stagewright.impl.view_engine import ViewEngine, View, doc, emit

def write(folder, rounds):
    with ViewEngine(folder, partitions=4) as engine:
        engine.define("d", {"v": View(emit([doc.n], doc.n), "_sum")})
        n = engine.query("d", "v", reduce=False).total_rows
        for number in range(rounds):
            engine.put_many((f"d{n + i}", {"n": n + i}) for i in range(50))
            n += 50
            engine.query("d", "v")
            print(n, flush=True)
            if number % 3 == 1:
                engine.compact("d")

write(sys.argv[2], 4)  # loads and compiles what all children use
for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        print(os.getpid(), flush=True)
        write(sys.argv[1], 10**9)
    os.waitpid(child, 0)
    print("dead", flush=True)
"""


@pytest.mark.timeout(3600)  # two hundred kills pass the usual limit on a machine that is busy
@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.thorough)])
def test_killed_process_loses_nothing_that_it_answered(tmp_path: Path, kills: int) -> None:
    """Killed at any moment of writing, updating and compacting; opened again by the next one and by us."""
    chosen = random.Random(kills)
    folder = tmp_path / "killed"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-P", "-c", _NURSERY, str(folder), str(tmp_path / "warm")]
    answered = 0
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
    ) as nursery:
        assert nursery.stdin is not None
        assert nursery.stdout is not None
        assert [int(nursery.stdout.readline()) for _ in range(4)] == [50, 100, 150, 200]
        for number in range(kills):
            print(file=nursery.stdin, flush=True)
            child = int(nursery.stdout.readline())
            for _ in range(chosen.randrange(4)):
                answered = int(nursery.stdout.readline())
            time.sleep(chosen.random() * 0.05)
            os.kill(child, signal.SIGKILL)
            while (line := nursery.stdout.readline().strip()) != "dead":
                answered = int(line)
            if number % 10 < 8:  # else the next process finds what this one left
                answered = _right_after_a_kill(folder, answered)
        nursery.stdin.close()
        assert nursery.wait(60) == 0


def _right_after_a_kill(folder: Path, answered: int) -> int:
    """How many documents there are: all that a query had answered about, and the index has them."""
    with ViewEngine(folder, partitions=4) as engine:
        if not engine.designs():  # killed before it had defined anything
            assert answered == 0
            return 0
        assert len(engine.query("d", "v", reduce=False, stale="ok").rows) >= answered
        count = len(engine.query("d", "v", reduce=False))
        assert count == engine.documents.count() >= answered
        assert sum(row.value for row in engine.query("d", "v")) == sum(range(count))
        [index] = (folder / "@indexes" / "default").iterdir()
        disk = RealDisk(index, read_only=True)
        assert check_file(disk).problems == []
        disk.close()
    return count


def test_declared_maps_read_as_text_and_as_python_are_one() -> None:
    made = emit(
        [doc.a.b, item["x y"], meta_id, -1], None, where=[doc.t == "u", doc.v != 2], each=doc.list
    )
    text = 'emit([doc.a.b, item["x y"], meta_id, -1], null, where=[doc.t == "u", doc.v != 2], each=doc.list)'
    assert parse_declared(text).definition() == made.definition()
    stored = json.loads(json.dumps(View(made, "_count").definition()))
    assert View.of_definition(stored).definition() == stored
    for wrong in (
        "emit(",
        "doc.a",
        "emit(__import__('os'))",
        "emit(doc.a, wher=1)",
        "emit(doc.a < 3)",
    ):
        with pytest.raises(ValueError, match=r"emit|doc"):
            parse_declared(wrong)


def test_command_loads_defines_and_queries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, lines = str(tmp_path / "shop"), tmp_path / "orders.jsonl"
    lines.write_text(
        "".join(f'{{"no": {n}, "city": "{"AB"[n % 2]}", "price": {n}}}\n' for n in range(10))
    )

    def run(*words: str) -> str:
        assert run_command_line(["view", *words]) == 0
        return capsys.readouterr().out

    assert run("load", folder, str(lines), "--id", "no", "--partitions", "8") == "10 documents\n"
    run("define", folder, "sales", "total", "emit([doc.city], doc.price)", "--reduce", "_sum")
    assert run("list", folder) == "sales: total (10 changes not indexed yet)\n"
    found = run("query", folder, "sales", "total", "--group")
    assert [json.loads(line) for line in found.splitlines()] == [
        {"key": ["A"], "value": 20},
        {"key": ["B"], "value": 25},
    ]
    found = run("query", folder, "sales", "total", "--no-reduce", "--key", '["B"]', "--limit", "1")
    assert json.loads(found) == {"id": "1", "key": ["B"], "value": 1}
    assert run("list", folder) == "sales: total (current)\n"
    assert run("delete", folder, "1", "none", "1") == "1 document deleted\n"
    with ViewEngine(folder) as engine:  # watching needs nobody's leave
        engine.define("young", {"v": View(emit(doc.no))})
        engine.group("sales").set_partition_states(passive=[0])
        found = run("watch", folder, "--once", "--json")
    states = [json.loads(line) for line in found.splitlines()]
    assert [(s["designs"], s["number"]) for s in states] == [(["sales"], 1), (["young"], 0)]
    assert (states[0]["indexed"], states[0]["changes"], states[0]["size"] > 0) == (10, 11, True)
    assert states[0]["partitions"] == {"active": 7, "passive": 1, "in cleanup": 0, "unindexable": 0}
    found = run("watch", folder, "--once")
    assert "sales (total): 10 of 11 changes indexed; 7 active, 1 passive; file 1: " in found
    assert "young (v): no index yet, 11 changes" in found
    run("drop", folder, "young")
    assert run("compact", folder, "sales").startswith("sales: ")
    assert run("drop", folder, "sales") == "sales is deleted\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["query", "{}/none", "d", "v"], "holds no documents"),
        (["query", "{}/data", "d", "v"], "there is no design document d"),
        (["load", "{}/data", "{}/bad.jsonl"], "line 2: no object with a member 'id'"),
        (["load", "{}/data", "{}/none.jsonl"], "No such file"),
        (["watch", "{}/none", "--once"], "holds no documents"),
        (["define", "{}/data", "d", "v", "emit(3 + 4)"], "'3 + 4'"),
        (["define", "{}/data", "d", "v", "emit(doc.a)", "--reduce", "_mean"], "no builtin reduce"),
        (["load", "{}/data", "{}/binary"], "binary is not UTF-8 text with a JSON object a line"),
        (["load", "{}/data", "{}/none"], "none: No such file or directory"),
        (["load", "{}/data", "{}"], ": Is a directory"),
    ],
)
def test_command_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    ViewEngine(tmp_path / "data").close()
    (tmp_path / "bad.jsonl").write_text('{"id": 1}\n{"no": 2}\n')
    (tmp_path / "binary").write_bytes(b"\x80\x00\x83")
    assert run_command_line(["view", *(word.replace("{}", str(tmp_path)) for word in words)]) == 2
    assert said in capsys.readouterr().err


def test_example_of_the_documentation_says_what_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[4] / "docs" / "view-engine.md").read_text("utf-8")
    example = page.split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "view-engine.md", "exec"), {})  # noqa: S102 - our own page
    said = [line.split("  # ")[1] for line in example.splitlines() if "print" in line]
    assert capsys.readouterr().out.splitlines() == said
