"""Mistakes put back into the machine of `scylladb/topology/topology_control.py`, by what breaks."""
