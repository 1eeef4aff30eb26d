"""Why an entity is a violation: the guard that failed, the nearest run, the excerpt."""
