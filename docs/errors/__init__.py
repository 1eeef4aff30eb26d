"""A page for each code of an error: `stagewright explain CODE` prints it."""
