"""A node of the database, sans I/O: requests of clients, replicas, barriers, sessions, its part of group0."""
