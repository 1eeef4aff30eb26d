"""Known bugs of Couchbase, one file for each machine."""
