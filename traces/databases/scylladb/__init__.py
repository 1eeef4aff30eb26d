"""ScyllaDB: its logs, and its tables of topology, tablets, tasks and requests."""
