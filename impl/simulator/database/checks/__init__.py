"""Whether a run was as it should be: by the definitions, by the rows, by what clients saw."""
