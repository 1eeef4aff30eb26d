"""Known bugs of the machines in `machines/scylladb/topology/`, a file each."""
