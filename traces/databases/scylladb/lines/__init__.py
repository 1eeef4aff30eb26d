"""What single lines of ScyllaDB's log say, by component."""
