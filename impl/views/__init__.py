"""Materialized views of tablet tables: their updates, and how they are built."""
