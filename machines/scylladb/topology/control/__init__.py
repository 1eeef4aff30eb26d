"""What `topology_control.py` is made of: its record, its promises, and entries of its tables that none can tell."""
