"""What of a definition the valid entities exercised."""
