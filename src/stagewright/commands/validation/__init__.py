"""What `validate` does beside one run: engines, following, output."""
