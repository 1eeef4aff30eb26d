"""Secondary indexes built while their table is written to, beside PostgreSQL and SQLite."""
