"""Mistakes put back into the machine of `scylladb/views/view_building.py`, by what breaks."""
