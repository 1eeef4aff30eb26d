"""What the engine records of its work: steps of the definitions in `machines/recorded/engine_*`."""
