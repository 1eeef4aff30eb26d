"""Properties over several entities: which traces can judge them, what each needs, and whether it holds."""
