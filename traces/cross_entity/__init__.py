"""Properties over several entities: which traces can evaluate them, what each needs, and whether it holds."""
