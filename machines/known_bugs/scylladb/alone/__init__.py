"""Mistakes that one promise alone notices, a file for each subject."""
