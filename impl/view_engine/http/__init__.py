"""Views over HTTP, as CouchDB and Couchbase serve them."""
