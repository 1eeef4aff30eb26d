"""What a running system did, as steps of definitions: checked as they are taken, and written as traces."""
