"""What `stagewright mutate` prints and writes."""
