"""Known bugs of the machines in `machines/yugabytedb/indexes/`, a file each."""
