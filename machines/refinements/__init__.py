"""Which machine is seen as which other one: declared here, decided by `stagewright check`."""
