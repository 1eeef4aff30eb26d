"""Mistakes put back into the machine of `scylladb/views/view_coordinator.py`, by what breaks."""
