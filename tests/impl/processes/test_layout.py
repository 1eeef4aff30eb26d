"""The directory of a cluster: a node is claimed once, and by nobody who only looks."""

from __future__ import annotations

import os
from pathlib import Path
from threading import Event, Thread

import pytest

from stagewright.impl.node.messages import HostInfo
from stagewright.impl.node.port import Identity
from stagewright.impl.processes import layout as files
from stagewright.impl.processes.errors import ClusterError
from stagewright.impl.processes.layout import Layout, NodeFile
from stagewright.impl.processes.supervisor import Supervisor


def test_who_looks_whether_a_node_runs_does_not_keep_it_from_starting(tmp_path: Path) -> None:
    layout, stop = Layout(tmp_path), Event()
    layout.add_node(NodeFile(Identity(HostInfo("n1"))))

    def look() -> None:
        while not stop.is_set():
            Layout(tmp_path).running("n1")

    lookers = [Thread(target=look) for _ in range(3)]
    handle = layout.claim("n1")
    for looker in lookers:
        looker.start()
    try:
        for _ in range(50):
            os.close(handle)
            handle = layout.claim("n1")
        with pytest.raises(ClusterError, match="n1 runs already"):
            Layout(tmp_path).claim("n1")
    finally:
        stop.set()
        for looker in lookers:
            looker.join()
        os.close(handle)


@pytest.mark.parametrize("written", range(4))  # three files of nodes, then that of the cluster
def test_a_beginning_that_is_interrupted_is_begun_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: int
) -> None:
    left, write = [None] * written, files._write

    def interrupted(path: Path, content: object) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        write(path, content)

    supervisor = Supervisor(Layout(tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(files, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            supervisor.create(3)
    with pytest.raises(ClusterError, match="there is no cluster"):
        supervisor.layout.settings()
    assert supervisor.create(2) == supervisor.layout.names() == ["n1", "n2"]
    with pytest.raises(ClusterError, match="is not empty"):
        supervisor.create(2)
