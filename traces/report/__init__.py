"""What a validation found: results, text, pages, files."""
