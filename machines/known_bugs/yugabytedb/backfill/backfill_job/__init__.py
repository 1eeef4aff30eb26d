"""Mistakes put back into the machine of `yugabytedb/backfill/backfill_job.py`, by what breaks."""
