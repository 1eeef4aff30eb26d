"""Campaigns: many runs of the database, each drawn from its seed; what they met, and what fails, made small."""
