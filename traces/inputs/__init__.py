"""Which files are read, how they are told apart and split into tasks."""
