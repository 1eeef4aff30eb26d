"""A table of tablets: a property over several of them, which the generated traces keep unless they are spoilt."""

from __future__ import annotations

from stagewright.machines.scylladb.tablets.tablet_migration import TabletMigration
from stagewright.machines.scylladb.tablets.tablet_stages import Kind, Stage
from stagewright.spec import Bool, Entity, Machine, Term, count, invariant, many

GROUP = "^(.*):"  # what the names of one table's tablets have in common


class Tablet(Entity, scope=2):
    """A tablet of the table."""


class Table(Machine):
    """The tablets of one table."""

    tablets = many(TabletMigration, over=Tablet)

    @invariant
    def one_moves_within_its_node(self) -> Bool:
        """At most one tablet of a table is streamed between the shards of a node at a time."""
        return count(self._moves_within_its_node(t) for t in Tablet) <= 1

    def _moves_within_its_node(self, t: Term[Tablet]) -> Bool:
        tablet = self.tablets[t]
        return (tablet.stage == Stage.streaming) & (tablet.kind == Kind.intranode_migration)
