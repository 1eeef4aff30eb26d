"""Known bugs of the machines of Couchbase."""
