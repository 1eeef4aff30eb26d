"""What a node does for clients: their requests of one row, scans, and what logged writes wait for."""
