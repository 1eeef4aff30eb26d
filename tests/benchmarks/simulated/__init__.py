"""What a simulated run of the database costs."""
