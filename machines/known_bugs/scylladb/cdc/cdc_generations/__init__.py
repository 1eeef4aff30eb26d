"""Mistakes put back into the machine of `scylladb/cdc/cdc_generations.py`, by what breaks."""
