"""The lines of a ScyllaDB log that say what becomes of tables: each node writes them as it learns a change of the schema."""

from __future__ import annotations

from stagewright.traces.databases.scylladb.log.patterns import UUID, form

DROPPED = "dropped"  # a table, a view or a log of changes

LOGGERS = ("schema_tables",)
FORMS = (form(DROPPED, LOGGERS, "Dropping ", rf"Dropping \S+ id=(?P<table>{UUID}) version="),)
