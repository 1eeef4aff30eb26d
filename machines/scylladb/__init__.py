"""ScyllaDB: tablets, topology, materialized views, and change data capture."""
