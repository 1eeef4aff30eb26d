"""Campaigns over indexed tables: what a seed draws, how a run of it is checked, and small scenarios of what fails."""
