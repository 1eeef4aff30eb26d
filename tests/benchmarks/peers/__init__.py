"""Who takes part: one module a contestant. Each says whether it can run here, and how it is run."""
