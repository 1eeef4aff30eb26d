"""What a view is, and how its rows follow those of its base table as these are written."""
