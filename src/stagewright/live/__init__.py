"""A cluster that runs, followed: as a page, and as lines of its changes."""
