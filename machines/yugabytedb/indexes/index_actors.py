"""Who acts on an index: the master, the servers that learn its permissions, clients, PostgreSQL."""

from __future__ import annotations

from stagewright.spec import Actor, Entity, Fairness

MASTER = Actor("master leader")
CLIENT = Actor("client")
POSTGRES = Actor("postgres")
WEAK = Fairness.WEAK


class Server(Entity, scope=2):
    """A tablet server: its tablets of the indexed table have all applied one version of the schema."""
