"""Readers: one file for each form in which traces are found."""
