"""What nodes, clients and operators say to each other.

Every message may be lost, late, repeated or overtaken. All of them are plain data: texts, numbers, bytes,
booleans, tuples of these, and enums whose values are texts; a key is the serialized partition key.
"""

from __future__ import annotations

from stagewright.impl.node.messages.cluster import (
    Banned as Banned,
    BarrierAck as BarrierAck,
    BarrierRequest as BarrierRequest,
    HostInfo as HostInfo,
    Joined as Joined,
    JoinReply as JoinReply,
    JoinRequest as JoinRequest,
    JoinResponse as JoinResponse,
    Order as Order,
    OrderDone as OrderDone,
    Phase as Phase,
    Work as Work,
)
from stagewright.impl.node.messages.operators import (
    STARTING as STARTING,
    TOO_FEW as TOO_FEW,
    Ask as Ask,
    CreateTable as CreateTable,
    GenerationsReply as GenerationsReply,
    GenerationsRequest as GenerationsRequest,
    Load as Load,
    NameReply as NameReply,
    NameRequest as NameRequest,
    NodeStatus as NodeStatus,
    OperatorReply as OperatorReply,
    OperatorRequest as OperatorRequest,
    StatusReply as StatusReply,
    StatusRequest as StatusRequest,
    TabletsReply as TabletsReply,
    TabletsRequest as TabletsRequest,
    TabletStatus as TabletStatus,
)
from stagewright.impl.node.messages.rows import (
    Cell as Cell,
    ClientRead as ClientRead,
    ClientReply as ClientReply,
    ClientScan as ClientScan,
    ClientWrite as ClientWrite,
    Level as Level,
    Outcome as Outcome,
    PullRows as PullRows,
    ReplicaRead as ReplicaRead,
    ReplicaReply as ReplicaReply,
    ReplicaRows as ReplicaRows,
    ReplicaScan as ReplicaScan,
    ReplicaWrite as ReplicaWrite,
    RowChunk as RowChunk,
    ScanReply as ScanReply,
    Settled as Settled,
    Unavailable as Unavailable,
)
from stagewright.impl.node.messages.tables import (
    AlterTable as AlterTable,
    CreateView as CreateView,
    DropTable as DropTable,
    DropView as DropView,
    MoveTablet as MoveTablet,
    RepairTable as RepairTable,
    ResizeTable as ResizeTable,
    SetBalancing as SetBalancing,
    TruncateTable as TruncateTable,
    ViewsReply as ViewsReply,
    ViewsRequest as ViewsRequest,
    WorkedOnTasks as WorkedOnTasks,
    WorkOnTasks as WorkOnTasks,
)

Message = (
    ClientWrite
    | ClientRead
    | ClientReply
    | ClientScan
    | ScanReply
    | OperatorRequest
    | NameRequest
    | NameReply
    | CreateTable
    | RepairTable
    | AlterTable
    | ResizeTable
    | MoveTablet
    | SetBalancing
    | CreateView
    | DropTable
    | TruncateTable
    | DropView
    | ViewsRequest
    | ViewsReply
    | OperatorReply
    | GenerationsRequest
    | GenerationsReply
    | StatusRequest
    | StatusReply
    | TabletsRequest
    | TabletsReply
    | ReplicaWrite
    | ReplicaRead
    | ReplicaReply
    | ReplicaScan
    | ReplicaRows
    | JoinRequest
    | JoinReply
    | JoinResponse
    | Joined
    | BarrierRequest
    | BarrierAck
    | Order
    | OrderDone
    | Settled
    | PullRows
    | RowChunk
    | WorkOnTasks
    | WorkedOnTasks
    | Banned
)
