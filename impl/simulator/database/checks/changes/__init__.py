"""What is checked of logs of changes: where log rows go and lie, and what consumers read."""
