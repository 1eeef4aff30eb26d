"""Decides refinements: `decide.py` over the explored states, `looks.py` what these look like, `verdicts.py` in words."""
