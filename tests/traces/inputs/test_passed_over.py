"""What a folder has beside its traces is told in one line for each reason, however many files it is."""

from __future__ import annotations

from pathlib import Path

from stagewright.traces.inputs.discover import find_inputs

SHIPPED_LOG = Path(__file__).parents[3] / "traces/samples/scylla-coordinator-debug.log"


def test_files_beside_the_traces_are_counted_and_the_first_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(SHIPPED_LOG.read_bytes())
    for name in ("b.sqlite", "c", "d", "e", "secret"):
        (tmp_path / name).write_text("x")
    (tmp_path / "table.json").write_text('{"nodes": 3}')
    named = ", ".join(str(tmp_path / name) for name in ("b.sqlite", "c", "d"))
    other_names, other_content = find_inputs([tmp_path]).notes()
    assert other_names == (
        f"passed over 5 files that are not named like traces: {named} and 2 more; "
        "a trace with another name has to be named itself"
    )
    assert other_content == (
        f"passed over 1 file in no known format: {tmp_path}/table.json; "
        "--format or --mapping says how to read them"
    )
