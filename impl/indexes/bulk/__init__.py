"""Backfills in bulk: rows and entries as columns, which are read, routed, checked and stored by a few calls for many."""
