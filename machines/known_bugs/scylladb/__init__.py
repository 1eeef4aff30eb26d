"""Known bugs of ScyllaDB, one file for each machine."""
