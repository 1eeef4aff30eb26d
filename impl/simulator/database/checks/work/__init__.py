"""What nodes do for a coordinator, and what they say of it: orders, and rows that are streamed."""
