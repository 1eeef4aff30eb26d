"""The system tables as a node has them: what group0's log comes to, under upstream's names and texts."""
