"""Known bugs of the machines in `machines/yugabytedb/backfill/`, a file each."""
