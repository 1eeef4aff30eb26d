"""Walk a definition step by step: as a page of a browser (`server`) or in a terminal (`terminal`)."""
