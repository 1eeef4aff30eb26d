"""What must survive a crash: committed control states in SQLite, one transaction a step."""

from stagewright.impl.store.control_store import (
    ControlStore as ControlStore,
    Entry as Entry,
    StoreError as StoreError,
)
from stagewright.impl.store.durable import durable as durable
