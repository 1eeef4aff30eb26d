"""A file with the content of another one is named and not read, where reading it would tell everything twice."""

import gzip
from pathlib import Path

from tests.models.lease import LeaseTable

from stagewright.spec.define import define
from stagewright.spec.trace import TraceVerdict
from stagewright.traces.engines.engine import Embedded
from stagewright.traces.inputs.discover import find_inputs
from stagewright.traces.inputs.duplicates import copies_among
from stagewright.traces.options import Options
from stagewright.traces.report.results import TraceReport
from stagewright.traces.validate import validate

MAPPING = r"""machine = "LeaseTable"
entity = "{lease}"
time = "{when}"

[source]
form = "text"
line = '^(?P<when>\S+) (?P<lease>\w) (?P<message>.*)$'

[[event]]
match = '^(?P<what>acquire|expire|go_silent)$'
action = "{what}"
"""
LOG = "2025-03-01T10:00:01Z a acquire\n2025-03-01T10:00:02Z a go_silent\n2025-03-01T10:00:03Z a expire\n"
SCYLLA = "INFO  2024-09-27 10:00:00,000 [shard 0:main] raft_topology - refreshed\n"


def evaluated(folder: Path, mapping: str = MAPPING) -> TraceReport:
    (folder / "m.toml").write_text(mapping)
    options = Options(mapping=folder / "m.toml")
    return validate([folder / "logs"], define(LeaseTable), options, engine=Embedded(1))


def folder_with(folder: Path, **files: bytes) -> Path:
    (folder / "logs").mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / "logs" / name.replace("_", ".")).write_bytes(content)
    return folder


def test_a_copy_of_a_mapped_log_is_not_read_again(tmp_path: Path) -> None:
    report = evaluated(folder_with(tmp_path, a_log=LOG.encode(), b_log=LOG.encode()))
    assert report.verdicts[TraceVerdict.OK] == 1
    assert (report.exit_code, report.totals.lines, report.totals.with_events) == (0, 3, 3)
    logs = tmp_path / "logs"
    assert report.notes == (f"passed over {logs}/b.log: it has the content of {logs}/a.log",)
    assert report.files == (f"{logs}/a.log",)


def test_a_file_whose_name_means_something_is_no_copy(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, a_log=LOG.encode(), b_log=LOG.encode())
    report = evaluated(folder, MAPPING.replace('"{lease}"', '"{file}/{lease}"'))
    assert report.verdicts[TraceVerdict.OK] == 2
    assert report.notes == ()


def test_a_compressed_copy_is_known_by_what_it_holds(tmp_path: Path) -> None:
    packed = gzip.compress(LOG.encode())
    other = gzip.compress(LOG.replace(":03Z", ":04Z").encode())
    folder_with(tmp_path, a_log=LOG.encode(), a_log_gz=packed, c_log_gz=other)
    names = [tmp_path / "logs" / n for n in ("a.log", "a.log.gz", "c.log.gz")]
    assert copies_among(names) == {names[1]: names[0]}
    names[2].write_bytes(packed[:-4])
    assert copies_among(names) == {names[1]: names[0]}


def test_logs_are_read_once_and_dumps_whenever_they_were_made(tmp_path: Path) -> None:
    folder_with(tmp_path, node1_log=SCYLLA.encode(), node2_log=SCYLLA.encode())
    found = find_inputs([tmp_path])
    assert [f.path.name for f in found.files] == ["node1.log"]
    assert [(one.name, first.name) for one, first in found.copies] == [("node2.log", "node1.log")]
    dump = b'{"node_state": "normal", "host_id": "a"}\n'
    folder_with(tmp_path / "logs", one_json=dump, two_json=dump)
    dumps = find_inputs([tmp_path / "logs" / "logs"])
    assert {f.form for f in dumps.files} == {"scylla-tables"}
    assert len(dumps.files) == 2
