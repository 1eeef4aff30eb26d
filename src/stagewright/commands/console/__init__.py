"""What all commands share: their streams, exit codes, progress, and the arguments that name a machine."""
