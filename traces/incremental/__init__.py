"""A validation that goes on with the state of an earlier one."""
