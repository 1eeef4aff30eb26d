"""The index of one design document: its group server, updater, cleaner and compactor."""
