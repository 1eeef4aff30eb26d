"""The index of a design document: its file and trees, and the workers that update, clean and compact it."""
