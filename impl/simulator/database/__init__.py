"""A simulated cluster of whole nodes: clock, network, disks, group0, clients and operators, from one seed."""
