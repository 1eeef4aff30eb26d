"""What a process may do; the processes do no I/O of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from stagewright.impl.indexes.bulk.work import Work
from stagewright.impl.indexes.defects import Defects
from stagewright.impl.indexes.messages import Message
from stagewright.impl.indexes.records.notes import Note
from stagewright.impl.storage.port import RowStore


@dataclass(frozen=True)
class Settings:
    """Sizes and times, in milliseconds; named as YugabyteDB's flags where it has them."""

    tablets: int = 3
    batch: int = 4  # backfill_index_write_batch_size
    chunk_rows: int = 8  # of a chunk, at most
    rows_per_second: int = 0  # backfill_index_rate_rows_per_sec, of a tablet; 0: no bound
    slots: int = 2  # num_concurrent_backfills_allowed, of a server
    retry: int = 50
    chunk_timeout: int = 4_000  # index_backfill_rpc_timeout_ms
    chunk_retries: int = 150  # index_backfill_rpc_max_retries
    wait_for_old: int = 300  # index_backfill_wait_for_old_txns_ms
    user_enforced: bool = False  # transactions have no intents and no record; a write is one row's
    rpc_timeout: int = 250  # after it, a write of theirs that was planned is refused
    upper_bound: int = 300  # index_backfill_upperbound_for_user_enforced_txn_duration_ms
    transaction_timeout: int = 3_000
    history: int = 3_000  # timestamp_history_retention_interval_sec, of indexes
    compaction: int = 250  # how often delete markers are reclaimed
    bulk: int = (
        10_000  # rows of a tablet, or entries of a batch, from which on a builder handles them
    )
    builder_share: int = 100  # percent of its time that a builder works while clients are served
    split_rows: int = 0  # of a tablet, from which on it is to split by itself; 0: never
    resend: int = 150  # a client's question that is not answered
    lag: int = 20  # of a tablet that has an older schema than a client, before it is asked again
    patience: int = 1_500  # of a client with a statement
    lock_wait: int = 800
    defects: Defects = field(default_factory=frozenset)


class NewTablet(Protocol):
    """A tablet that is made and that nobody leads yet."""

    @property
    def store(self) -> RowStore:
        """To be filled."""
        ...

    def finish(self) -> None:
        """It is there, with all that was put into its store. May be called from any thread."""
        ...

    def close(self) -> None:
        """If it is not finished, nothing of it is there."""
        ...


class Port(Protocol):
    """Of one process, as long as it lives."""

    @property
    def address(self) -> str:
        """Where messages reach it, and its successors."""
        ...

    def send(self, to: str, message: Message, *, early: bool = False) -> None:
        """Maybe it gets there; what was synced before is on the disk by then, unless it is sent `early`."""
        ...

    def after(self, milliseconds: int, action: Callable[..., None], *arguments: Any) -> None:
        """Do something later, unless the process is gone by then."""
        ...

    def turn(self, action: Callable[..., None], *arguments: Any) -> None:
        """Go on with something long, when others have had their turn, unless the process is gone by then."""
        ...

    def aside(self, work: Callable[[], None], then: Callable[..., None], *arguments: Any) -> None:
        """Do what waits for a disk, while others go on; then go on, unless the process is gone by then."""
        ...

    def elsewhere(self, work: Work, then: Callable[..., None], *arguments: Any) -> None:
        """Have a builder do something, then go on, with its answer as the last argument, which may be a refusal."""
        ...

    def make_tablet(self, address: str) -> NewTablet | None:
        """Begin to make a tablet; None: it is there. May be called from any thread."""
        ...

    def is_led(self, address: str) -> bool:
        """Whether a tablet has had a leader, as far as its server knows: what is sent there is not lost for want of one."""
        ...

    def now(self) -> int:
        """Milliseconds on the clock of its server, which is not quite that of others."""
        ...

    def note(self, note: Note) -> None:
        """What happened."""
        ...

    def take_slot(self) -> bool:
        """A slot for backfills on this server, if one is free."""
        ...

    def free_slot(self) -> None:
        """It is not needed any more."""
        ...
