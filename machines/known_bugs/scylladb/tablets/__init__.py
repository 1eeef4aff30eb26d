"""Known bugs of the machines in `machines/scylladb/tablets/`, a file each."""
