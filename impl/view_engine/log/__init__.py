"""`couchdb.log`: what the group processes do to partitions, in Couchbase's own words."""
