"""YugabyteDB: the logs of its masters."""
