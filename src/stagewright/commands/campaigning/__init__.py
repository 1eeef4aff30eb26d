"""How `stagewright campaign` runs its seeds, and what it prints."""
