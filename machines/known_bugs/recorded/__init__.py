"""Mistakes put back into what the executable system records, by what is recorded."""
