"""Couchbase: the logs of its view engine, and the events of its rebalances."""
