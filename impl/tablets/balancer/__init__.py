"""The tablet load balancer: from what lies where, and what is on its way, to migrations and their reasons.

It does no I/O. The definition is `machines/scylladb/tablets/load_balancer.py`: each migration of a plan is a
`plan_migration` that it allows, and a plan is empty where it allows none. A caller that has a topology
change pending does not ask for a plan.
"""

from stagewright.impl.tablets.balancer.hosts import (
    Host as Host,
    HostState as HostState,
    Limits as Limits,
    TabletName as TabletName,
)
from stagewright.impl.tablets.balancer.planner import Plan as Plan, Verdict as Verdict, plan as plan
from stagewright.impl.tablets.balancer.reasons import (
    Asked as Asked,
    Blocked as Blocked,
    Drain as Drain,
    Even as Even,
    Kind as Kind,
    Migration as Migration,
    NoPlace as NoPlace,
    NoSource as NoSource,
)
from stagewright.impl.tablets.balancer.sketch import LoadSketch as LoadSketch
