"""Whether an implementation does what its definition says, and refuses what it forbids.

Three suites drive an implementation through an `Adapter`: random runs that shrink (`stateful`), a tour of
all transitions, and all events that must be refused (`suites`, played by `play`).
"""

from stagewright.checker.conformance.adapter import (
    Adapter as Adapter,
    AdapterError as AdapterError,
    AdapterFactory as AdapterFactory,
    RefusedEvent as RefusedEvent,
)
from stagewright.checker.conformance.divergence import (
    ConformanceError as ConformanceError,
    Divergence as Divergence,
    Fault as Fault,
)
