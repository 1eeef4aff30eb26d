"""Dumps of ScyllaDB's system tables."""
