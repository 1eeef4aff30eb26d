"""Readers of what databases write: logs and tables, as traces of the machines of their documents.

A room of its own, for it alone of what reads traces knows machines: states, profiles and machines are named by
their types, so that a type checker sees a name that is not there.
"""
