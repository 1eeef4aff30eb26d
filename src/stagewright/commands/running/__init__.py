"""What `stagewright run` prints, and how it works through a script."""
