"""A cluster of view engines as real processes: nodes that speak over sockets, and who manages them."""
