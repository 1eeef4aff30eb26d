"""The topology coordinator: every step of it is one of the topology state machine's definition."""
