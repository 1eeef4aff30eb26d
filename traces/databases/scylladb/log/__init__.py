"""ScyllaDB's log: prefixes, lines, their order and what they mean together."""
