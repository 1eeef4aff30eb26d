"""Known bugs of the machines in `machines/scylladb/cdc/`, a file each."""
