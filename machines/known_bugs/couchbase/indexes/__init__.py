"""Known bugs of the machines in `machines/couchbase/indexes/`, a file each."""
