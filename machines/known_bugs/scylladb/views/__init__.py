"""Known bugs of the machines in `machines/scylladb/views/`, a file each."""
