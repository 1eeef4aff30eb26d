"""How a view is built from the rows that were there before it: tasks, their coordinator, their workers."""
