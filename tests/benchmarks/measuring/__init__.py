"""Measures programs: CPU and memory of a whole process tree, in turns, on a machine that is described."""
