"""Starts, kills and stops the processes of a cluster with an indexed table, and says how they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from stagewright.impl.indexes.messages import Build
from stagewright.impl.indexes.port import Settings
from stagewright.impl.indexes.processes.client import IndexClient
from stagewright.impl.indexes.processes.layout import MASTER, REAL, IndexLayout, TableFile
from stagewright.impl.indexes.processes.wire import AskServer, Leads, outer_codec
from stagewright.impl.indexes.schema import table_tablet
from stagewright.impl.indexes.transactions import ADDRESS as RECORDS
from stagewright.impl.processes.asking import Conversation
from stagewright.impl.processes.children import Children
from stagewright.impl.processes.errors import ClusterError, WireError

PATIENCE = 120.0  # seconds for processes to start
MASTERS = 2
ANSWER = 10.0  # seconds for a process to answer


@dataclass(frozen=True)
class ProcessReport:
    """A process: its number if it lives, and what it leads if it answers."""

    name: str
    process: int | None
    leads: tuple[str, ...] | None


@dataclass(frozen=True)
class Report:
    """How a cluster is."""

    processes: tuple[ProcessReport, ...]
    builds: tuple[Build, ...] | None  # None: no master answers

    @property
    def is_well(self) -> bool:
        """Whether all processes run and answer, and one of them is the master leader."""
        leads = [place for p in self.processes for place in p.leads or ()]
        return all(p.leads is not None for p in self.processes) and MASTER in leads


class IndexSupervisor:
    """Acts on the cluster of a directory; `report` is called with what goes on."""

    def __init__(
        self,
        layout: IndexLayout,
        report: Callable[[str], None] = lambda _: None,
        patience: float = PATIENCE,
        program: Sequence[str] = ("-m", "stagewright.impl.indexes.processes.program"),
    ) -> None:
        """`program` is what Python runs as a process."""
        self.layout = layout
        self._children = Children(layout.layout, report, patience, program)

    def create(
        self, servers: int, settings: Settings = REAL, masters: int = MASTERS
    ) -> tuple[str, ...]:
        """Begin a cluster of so many tablet servers and masters; the names. Nothing is started yet."""
        file = TableFile(
            tuple(f"n{i + 1}" for i in range(servers)),
            tuple(f"m{i + 1}" for i in range(masters)),
            settings,
        )
        self.layout.create(file)
        return (*file.servers, *file.masters)

    @property
    def names(self) -> tuple[str, ...]:
        """Of all processes."""
        file = self.layout.file()
        return (*file.servers, *file.masters)

    def start(self, names: Iterable[str] | None = None) -> list[str]:
        """Start processes that do not run, all of them unless names are given; wait until the table is served."""
        chosen = self.names if names is None else tuple(names)
        for name in chosen:
            self._refuse_unknown(name)
        missing = [n for n in chosen if self.running(n) is None]
        for name in missing:
            self._spawn(name)
        for name in chosen:
            self._children.wait(f"{name} to answer", partial(self._answers, name), missing)
        self._children.wait("the table to be served", self._is_served, missing)
        return missing

    def _answers(self, name: str) -> bool:
        return self.leads(name) is not None

    def _is_served(self) -> bool:
        led = {place for name in self.names for place in self.leads(name) or ()}
        tablets = map(table_tablet, range(self.layout.file().settings.tablets))
        split = [p for p in self.layout.places() if p.startswith("table/")]
        return {MASTER, RECORDS, *tablets, *split} <= led

    def _spawn(self, name: str) -> None:
        (self.layout.node(name) / "address").unlink(missing_ok=True)
        self._children.spawn(name)

    def kill(self, name: str) -> int:
        """End a process without warning (SIGKILL); its number."""
        self._refuse_unknown(name)
        return self._children.kill(name)

    def stop(self, names: Iterable[str] | None = None) -> list[str]:
        """Let processes, or all, end what they do and stop; those that did not run are passed over."""
        chosen = self.names if names is None else tuple(names)
        for name in chosen:
            self._refuse_unknown(name)
        return self._children.stop(chosen)

    def running(self, name: str) -> int | None:
        """The number of a process, if it lives."""
        return self._children.running(name)

    def _refuse_unknown(self, name: str) -> None:
        if name not in self.names:
            raise ClusterError(
                f"there is no process {name}", help=f"known: {', '.join(self.names)}"
            )

    # -- how it is ---------------------------------------------------------------------------------------------

    def client(self, seconds: float = 30.0) -> IndexClient:
        """A client of the servers that run whenever it looks for one."""
        layout, file = self.layout, self.layout.file()

        def addresses() -> list[str]:
            living = [n for n in file.servers if layout.layout.running(n) is not None]
            return [a for n in living if (a := layout.address(n))]

        return IndexClient(addresses, layout.layout.secret(), file.settings.tablets, seconds)

    def leads(self, name: str) -> tuple[str, ...] | None:
        """What a process leads; None: it does not answer."""
        address = self.layout.address(name)
        if not address or self.running(name) is None:
            return None
        try:
            secret = self.layout.layout.secret()
            conversation = Conversation(address, secret, ANSWER, outer_codec())
            try:
                reply = conversation.ask(AskServer(1), ANSWER)
            finally:
                conversation.close()
        except (OSError, WireError):
            return None
        return reply.places if isinstance(reply, Leads) else None

    def status(self) -> Report:
        """How the cluster is."""
        processes = tuple(ProcessReport(n, self.running(n), self.leads(n)) for n in self.names)
        client = self.client(ANSWER)
        try:
            return Report(processes, client.builds())
        except ClusterError:
            return Report(processes, None)
        finally:
            client.close()
