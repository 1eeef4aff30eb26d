"""What masters, tablets and records of transactions let others know of themselves, and the traces made of it."""
