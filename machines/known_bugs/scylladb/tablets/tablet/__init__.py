"""Mistakes put back into the machine of `scylladb/tablets/tablet.py`, by what breaks."""
