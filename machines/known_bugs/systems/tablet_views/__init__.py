"""Mistakes put back into the machine of `systems/tablet_views.py`, by what breaks."""
