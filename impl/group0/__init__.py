"""Group0: the log of commands that all nodes agree on, by compare-and-set on the state id.

`simulated` models it for runs that repeat, `sqlite` embeds it for the processes of one machine, `etcd` takes
it to several machines; `port` says what all of them do. `member` is a node's part: sans I/O, as nodes are.
"""

from stagewright.impl.group0.commands import (
    Command as Command,
    MachineStep as MachineStep,
    Mutation as Mutation,
    steps_of as steps_of,
)
from stagewright.impl.group0.port import (
    Commit as Commit,
    Committed as Committed,
    Conflict as Conflict,
    Deposed as Deposed,
    Entry as Entry,
    Forgotten as Forgotten,
    Group0 as Group0,
    Group0Error as Group0Error,
    Leadership as Leadership,
    Learned as Learned,
    Outcome as Outcome,
    Reading as Reading,
    Snapshot as Snapshot,
    UnavailableError as UnavailableError,
    Unknown as Unknown,
)
from stagewright.impl.group0.state_ids import (
    EMPTY as EMPTY,
    StateId as StateId,
    id_after as id_after,
    microseconds_of as microseconds_of,
)
