"""What a script does to a cluster, by what it is done to: nodes, tables, views."""
