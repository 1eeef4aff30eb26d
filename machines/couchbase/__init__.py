"""Couchbase's view engine."""
