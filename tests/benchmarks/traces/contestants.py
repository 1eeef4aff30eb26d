"""The contestants, each a command: `python -m tests.benchmarks.traces.contestants NAME FOLDER` prints what it found.

All read the same Parquet files of generated events. What each does is said where it is defined.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stagewright.traces.options import Options

COLUMNS = (
    "trace",
    "machine",
    "profile",
    "definition",
    "entity",
    "seq",
    "action",
    "params",
    "observed",
    "end",
)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def _report(report: Any) -> dict[str, object]:
    """What a validation found, against what was generated."""
    return {
        "events": report.totals.events,
        "verdicts": {v.value: n for v, n in report.verdicts.items() if n and v.value != "ok"},
        "found": {str(e.key): e.verdict.value for e in report.entities},
        "duplicates": report.totals.duplicates,
        "broken": sum(p.broken for p in report.together.properties) if report.together else None,
        "broken_tables": sorted(_broken(report)),
        "plan": list(report.plan),
    }


def _broken(report: Any) -> set[str]:
    """The tables, by trace, whose tablets break the property over several of them."""
    return {one.group for one in report.together.broken} if report.together else set()


def _options() -> Options:
    from tests.benchmarks.traces.table import GROUP, Table

    from stagewright.traces.options import Options

    return Options(together=(Table,), group=GROUP)


def embedded(folder: Path) -> dict[str, object]:
    """The validation in this process, in as many threads as there are cores."""
    from stagewright.traces.engines.engine import usable_cores

    return _embedded(folder, usable_cores(), _options())


def one_thread(folder: Path) -> dict[str, object]:
    """The same in one thread, each entity by itself: what peers do that have one thread and know of no groups."""
    import pyarrow as pa

    from stagewright.traces.options import Options

    pa.set_cpu_count(1)
    return _embedded(folder, 1, Options())


def _embedded(folder: Path, threads: int, options: Options) -> dict[str, object]:
    from tests.benchmarks.traces.generate import machine

    from stagewright.traces.engines.engine import Embedded
    from stagewright.traces.validate import validate

    return _report(validate(_files(folder), machine(), options, engine=Embedded(threads)))


def spark(folder: Path) -> dict[str, object]:
    """The validation on a local Spark."""
    from tests.benchmarks.traces.generate import machine

    from stagewright.traces.engines.spark_session import local_session
    from stagewright.traces.validate import validate

    session = local_session("benchmark")
    try:
        return _report(validate(_files(folder), machine(), _options(), spark=session))
    finally:
        _end(session)


def _end(session: Any) -> None:
    """Stop Spark and wait for its Java, so that what it took is counted."""
    gateway = session.sparkContext._gateway
    session.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()


def spark_sort(folder: Path) -> dict[str, object]:
    """Spark brings each entity's events together and sorts them: the least that any plan with a shuffle does."""
    from stagewright.traces.engines.spark_session import local_session

    # Java does this work: it may optimise its code.
    session = local_session("benchmark", settings={"spark.driver.extraJavaOptions": "-Xss4m"})
    try:
        events = session.read.parquet(*(str(f) for f in _files(folder))).select(*COLUMNS)
        cores = session.sparkContext.defaultParallelism
        gathered = events.repartition(4 * cores, "entity").sortWithinPartitions("entity", "seq")
        gathered.write.format("noop").mode("overwrite").save()
        return {"events": events.count()}
    finally:
        _end(session)


def arrow_scan(folder: Path) -> dict[str, object]:
    """PyArrow decodes the same columns, batch by batch, in as many threads as there are cores."""
    import pyarrow.dataset as ds

    events = 0
    for batch in ds.dataset(_files(folder)).to_batches(columns=list(COLUMNS)):
        events += batch.num_rows
    return {"events": events}


def arrow_dictionaries(folder: Path) -> dict[str, object]:
    """The same, but texts stay dictionaries, as the validation reads them."""
    import pyarrow.parquet as pq

    texts = [name for name in COLUMNS if name not in ("seq", "end")]
    events = 0
    for path in _files(folder):
        file = pq.ParquetFile(path, read_dictionary=texts)
        for batch in file.iter_batches(1 << 20, columns=list(COLUMNS)):
            events += batch.num_rows
    return {"events": events}


def duckdb(folder: Path) -> dict[str, object]:
    """DuckDB compares each event with the one before it in the entity's order: `lag` in SQL."""
    db: Any = import_module("duckdb")

    query = """
        select count(*) filter (where seq <> coalesce(before, -1) + 1), count(*) from (
            select seq, lag(seq) over w as before, lag(observed) over w as was, observed, action, params
            from read_parquet(?) window w as (partition by trace, entity order by seq))
    """
    found = db.execute(query, [[str(f) for f in _files(folder)]]).fetchone()
    assert found is not None
    return {"events": found[1]}


def transitions(folder: Path) -> dict[str, object]:
    """The plain `transitions` library takes each entity's steps through the stages, one trigger an event."""
    import pyarrow.parquet as pq
    from transitions import Machine

    stages: dict[tuple[str, str], str] = {}
    entities: dict[str, Any] = {}
    events, rows = 0, []
    for path in _files(folder):
        table = pq.read_table(path, columns=["entity", "seq", "action", "observed"]).to_pylist()
        rows += [(r["entity"], r["action"], json.loads(r["observed"]).get("stage")) for r in table]
    last: dict[str, str] = {}
    for entity, action, stage in rows:
        if action is not None and entity in last and stage is not None:
            stages.setdefault((action, last[entity]), stage)
        if stage is not None:
            last[entity] = stage
    states = sorted({s for (_, a), b in stages.items() for s in (a, b)})
    moves = [[action, source, target] for (action, source), target in stages.items()]
    machine = Machine(
        states=states, transitions=moves, initial="none", auto_transitions=False, model=None
    )

    class Tablet:
        """One entity."""

    for entity, action, _ in rows:
        one: Any = entities.get(entity)
        if one is None:
            one = entities[entity] = Tablet()
            machine.add_model(one)
        if action is not None:
            with contextlib.suppress(Exception):  # a spoilt event: the library's only answer
                one.trigger(action)
        events += 1
    return {"events": events}


def pm4py(folder: Path) -> dict[str, object]:
    """pm4py replays the traces as tokens on a Petri net that it has discovered from them."""
    import pyarrow.parquet as pq

    pd: Any = import_module("pandas")  # a peer's, not in every environment
    pm: Any = import_module("pm4py")
    table = pd.concat(
        [pq.read_table(f, columns=["entity", "seq", "action"]).to_pandas() for f in _files(folder)]
    ).dropna()
    table["time"] = pd.to_datetime(table["seq"], unit="s")
    log = pm.format_dataframe(table, case_id="entity", activity_key="action", timestamp_key="time")
    net, start, end = pm.discover_petri_net_inductive(log)
    pm.conformance_diagnostics_token_based_replay(log, net, start, end)
    return {"events": len(table)}


CONTESTANTS: dict[str, Callable[[Path], dict[str, object]]] = {
    one.__name__: one
    for one in (
        embedded,
        one_thread,
        spark,
        spark_sort,
        arrow_scan,
        arrow_dictionaries,
        duckdb,
        transitions,
        pm4py,
    )
}


if __name__ == "__main__":
    print(json.dumps(CONTESTANTS[sys.argv[1]](Path(sys.argv[2]))))
