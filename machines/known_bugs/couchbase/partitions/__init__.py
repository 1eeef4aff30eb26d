"""Known bugs of the machines in `machines/couchbase/partitions/`, a file each."""
