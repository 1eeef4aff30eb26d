"""Known bugs of the machines of ScyllaDB."""
