"""A cluster that runs, as a page that follows it."""
